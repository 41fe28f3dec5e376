"""Write files that are always complete, through a temporary file and a rename."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Mapping
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write a file so that a reader never sees half of it.

    Removes the leftovers of killed writers. Raises OSError; the file is then unchanged.
    """
    write_set(path.parent, {path.name: text})


def write_set(folder: Path, texts: Mapping[str, str]) -> None:
    """Write files that belong together: name -> text. The last file is the seal: where it exists, the others belong to its set.

    A killed process leaves the old set, the new set, or complete files without a seal. Raises OSError; on a full disk the old set
    is then unchanged.
    """
    staged = {name: folder / f".{name}.{os.getpid()}.tmp" for name in texts}
    try:
        for name, text in texts.items():
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
                error.filename, error.filename2 = str(folder / name), None  # not a name that the caller does not know
        raise
    for name in texts:
        _sweep(folder, name)


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
