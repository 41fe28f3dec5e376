"""The shared libraries that a set of files needs, directly and indirectly, found as by the dynamic loader."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from compat_matrix.serving.standin import elf

_USUAL = ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib")


class Missing(Exception):
    """Raised for a library that cannot be found; ``path`` is the file that needs it."""

    def __init__(self, path: Path, library: str) -> None:
        super().__init__(f"{path} needs {library}, which is nowhere on this machine")
        self.path = path


def of(paths: Iterable[Path], own: Sequence[Path]) -> dict[str, Path]:
    """``{soname: file}`` of everything outside of the folders ``own``, the loader among it under its full path.

    A library inside of ``own`` is copied as what it is part of; what it needs is looked for all the same. Raises
    :class:`Missing`.
    """
    found: dict[str, Path] = {}
    seen: set[Path] = set()
    inside = [folder.resolve() for folder in own]
    pending: list[tuple[Path, tuple[str, ...]]] = [(path, ()) for path in paths]
    usual = _folders()
    while pending:
        path, inherited = pending.pop()
        real = path.resolve()
        if real in seen:
            continue
        seen.add(real)
        needs = elf.read(path)
        search = (*needs.search, *inherited)
        if needs.interpreter:
            found[needs.interpreter] = Path(needs.interpreter).resolve()
        for library in needs.libraries:
            place = next((Path(folder, library) for folder in (*search, *usual) if Path(folder, library).is_file()), None)
            if place is None:
                raise Missing(path, library)
            if not any(folder in place.resolve().parents for folder in inside):
                found.setdefault(library, place.resolve())
            pending.append((place, search))
    return found


def _folders() -> list[str]:
    """Return the loader's default folders, and the folders of /etc/ld.so.conf."""
    named = []
    files = [Path("/etc/ld.so.conf"), *sorted(Path("/etc/ld.so.conf.d").glob("*.conf"))]
    for path in files:
        if path.is_file():
            named += [line.strip() for line in path.read_text("utf-8").splitlines() if line.startswith("/")]
    multiarch = sorted(str(path) for path in Path("/usr/lib").glob("*-linux-gnu"))
    return [*named, *multiarch, *_USUAL]
