"""Write files and folders that are always complete: under a temporary name first, then renamed."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the file into an OSError that does not name one: a full disk is noticed by a stream,
    which has no name.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def write_text(path: Path, text: str) -> None:
    """Write a file so that a reader never sees half of it.

    Removes the leftovers of killed writers. Raises OSError; the file is then unchanged.
    """
    write_set(path.parent, {path.name: text})


def write_set(folder: Path, texts: Mapping[str, str]) -> None:
    """Write files that belong together: name -> text.

    The last file is the seal: where it exists, the others belong to its set.

    A killed process leaves the old set, the new set, or complete files without a seal. Raises
    OSError; on a full disk the old set is then unchanged.
    """
    staged = {name: folder / f".{name}.{os.getpid()}.tmp" for name in texts}
    try:
        for name, text in texts.items():
            with naming(folder / name):
                staged[name].write_text(text, encoding="utf-8")
        if len(texts) > 1:
            (folder / list(texts)[-1]).unlink(missing_ok=True)
        for name, temporary in staged.items():
            temporary.replace(folder / name)
    except BaseException as error:
        for name, temporary in staged.items():
            with contextlib.suppress(OSError):
                temporary.unlink()
            if isinstance(error, OSError) and error.filename == str(temporary):
                error.filename = str(folder / name)  # not a name that the caller does not know
                if error.filename2 is not None:
                    del error.filename2
        raise
    for name in texts:
        _sweep(folder, name)


@contextlib.contextmanager
def new_folder(place: Path) -> Iterator[Path]:
    """Yield an empty folder beside ``place``.

    It becomes ``place`` when the block ends without an error, else it is removed.

    The caller holds a lock on ``place`` (`alone`): what other makers left beside it, who can only
    have been killed, is removed.
    """
    for left in place.parent.glob(f".{glob.escape(place.name)}.*.tmp"):
        shutil.rmtree(left, ignore_errors=True)
    with _beside(place) as folder:
        staged = folder / "new"
        staged.mkdir()
        yield staged
        if place.exists():
            place.rename(folder / "old")
        staged.rename(place)


@contextlib.contextmanager
def new_file(place: Path) -> Iterator[Path]:
    """Yield a name beside ``place`` for a file, which becomes ``place`` when the block ends without
    an error. Raises OSError.
    """
    staged = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    try:
        with naming(place):
            yield staged
            staged.replace(place)
    finally:
        staged.unlink(missing_ok=True)


def discard(place: Path) -> None:
    """Remove a folder, if it exists. It is renamed first, so that ``place`` is never half of it."""
    if place.exists():
        with _beside(place) as folder:
            place.rename(folder / "old")


@contextlib.contextmanager
def _beside(place: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=f".{place.name}.", suffix=".tmp", dir=place.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(folder: Path, name: str) -> None:
    for left in folder.glob(f".{glob.escape(name)}.*.tmp"):
        writer = left.name[len(name) + 2 : -len(".tmp")]
        if writer.isdecimal() and not _runs(int(writer)):
            left.unlink(missing_ok=True)


def _runs(pid: int) -> bool:
    """Return whether such a process exists."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
