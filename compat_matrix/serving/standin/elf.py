"""Read from an ELF file's headers what it needs to be loaded: the loader, the libraries, and their places."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 1, 5, 15, 29
_MAX_HEADER = 1 << 24  # bytes of a table of headers or of strings


class NotElf(ValueError):
    """Raised for a file that is not a valid 64-bit little-endian ELF file."""


@dataclass(frozen=True)
class Needs:
    """``interpreter`` is the dynamic loader (executables have one); ``search`` holds the folders the file itself names."""

    interpreter: str | None
    libraries: tuple[str, ...]
    search: tuple[str, ...]


def is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def read(path: Path) -> Needs:
    """Read the needs of a file. Raises :class:`NotElf`."""
    with path.open("rb") as file:

        def at(offset: int, size: int) -> bytes:
            if not 0 <= size <= _MAX_HEADER:
                raise NotElf(f"{path}: a header of {size} bytes")
            file.seek(offset)
            data = file.read(size)
            if len(data) != size:
                raise NotElf(f"{path}: ends inside a header")
            return data

        head = at(0, 64)
        if head[:6] != b"\x7fELF\x02\x01":
            raise NotElf(f"{path}: no 64-bit little-endian ELF file")
        (table,) = struct.unpack_from("<Q", head, 32)
        width, count = struct.unpack_from("<HH", head, 54)
        segments = [struct.unpack("<IIQQQQQQ", at(table + index * width, 56)) for index in range(count)]
        loads = [(segment[3], segment[2], segment[5]) for segment in segments if segment[0] == _PT_LOAD]
        interpreter = next((at(s[2], s[5]).rstrip(b"\0").decode() for s in segments if s[0] == _PT_INTERP), None)
        dynamic = next((at(s[2], s[5]) for s in segments if s[0] == _PT_DYNAMIC), b"")
        entries = [struct.unpack_from("<qQ", dynamic, start) for start in range(0, len(dynamic) - 15, 16)]
        strings = next((value for tag, value in entries if tag == _DT_STRTAB), None)

        def text(offset: int) -> str:
            if strings is None:
                raise NotElf(f"{path}: no table of strings")
            place = next(
                (file_at + strings - start for start, file_at, size in loads if start <= strings < start + size), strings
            )
            file.seek(place + offset)
            return file.read(4096).split(b"\0")[0].decode()

        needed = tuple(text(value) for tag, value in entries if tag == _DT_NEEDED)
        search = [text(value) for tag, value in entries if tag in (_DT_RPATH, _DT_RUNPATH)]
    origin = str(path.resolve().parent)
    folders = [folder.replace("$ORIGIN", origin).replace("${ORIGIN}", origin) for given in search for folder in given.split(":")]
    return Needs(interpreter, needed, tuple(folder for folder in folders if folder))
