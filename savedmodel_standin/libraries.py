"""The shared libraries that a set of files needs, directly and indirectly, as the system's ``ldd``
lists them.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

# "libm.so.6 => /lib/libm.so.6 (0x7f…)", "libm.so.6 => not found", and of the loader
# "/lib64/ld-linux-x86-64.so.2 (0x7f…)".
_LINE = re.compile(r"\s+(?:(?P<name>\S+) => )?(?P<place>/.*?|not found)(?: \(0x[0-9a-f]+\))?")


class Missing(Exception):
    """Raised for a library that cannot be found; ``path`` is the file that needs it."""

    def __init__(self, path: Path, library: str) -> None:
        super().__init__(f"{path} needs {library}, which is nowhere on this machine")
        self.path = path


def is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def needed(paths: Sequence[Path], own: Sequence[Path] = ()) -> dict[str, Path]:
    """Return ``{soname: file}`` of everything outside of the folders ``own``, the loader among it
    under its full path.

    A library inside of ``own`` is copied as what it is part of; what it needs is listed all the
    same. Raises OSError (there is no ``ldd``) and :class:`Missing`.
    """
    # Of one file alone, ldd does not say the name.
    listed = subprocess.run(
        ["ldd", *map(str, [*paths, *paths[:1]])],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    found: dict[str, Path] = {}
    inside = [folder.resolve() for folder in own]
    path = paths[0]
    for line in listed.stdout.splitlines():
        match = _LINE.fullmatch(line)
        if line.endswith(":") and not line[:1].isspace():
            path = Path(line[:-1])
        elif match is not None and match["place"] == "not found":
            raise Missing(path, match["name"])
        elif match is not None:
            place = Path(match["place"]).resolve()
            if not any(folder in place.parents for folder in inside):
                found.setdefault(match["name"] or match["place"], place)
    return found
