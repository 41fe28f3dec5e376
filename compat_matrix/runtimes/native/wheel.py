"""What a C++ program has to know of an installed TensorFlow, read from its files. Nothing here imports TensorFlow."""

from __future__ import annotations

import functools
import json
import mmap
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import compat_matrix.workers

PROGRAMS = Path(next(iter(compat_matrix.workers.__path__)))
ASK_LIMIT = 120  # seconds for a Python to start, on a cold and busy machine
HEADER = Path("tensorflow/cc/saved_model/loader.h")
LOAD = b"_ZN10tensorflow14LoadSavedModelERKNS_14SessionOptionsERKNS_10RunOptionsERK"  # and then how std::string is called
OLD_STRING, NEW_STRING = b"Ss", b"NSt7__cxx1112basic_string"


class NotForNative(Exception):
    """This wheel does not allow a C++ loader, whatever compiler there is; the message says why."""


@dataclass(frozen=True)
class Wheel:
    """The files of one installed TensorFlow. ``new_strings``: built with the C++11 ABI of libstdc++."""

    include: Path
    libraries: tuple[Path, ...]
    standard: str
    new_strings: bool

    @property
    def stamp(self) -> list[list[object]]:
        """Names, sizes and times of what a program is linked with: another installation is another stamp."""
        return [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in self.libraries]


@functools.lru_cache(maxsize=64)
def wheel_of(python: Path) -> Wheel:
    """The TensorFlow installed beside an interpreter, which is asked for it. Raises :class:`NotForNative`."""
    command = [str(python), str(PROGRAMS), "wheel_facts"]
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}  # as a worker is started
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=ASK_LIMIT, env=clean)
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", "") or ""
        raise NotForNative(f"{python} does not say where its TensorFlow is: {error} {said[-500:]}".rstrip()) from error
    facts = json.loads(done.stdout)
    if facts["error"]:
        raise NotForNative(facts["error"])
    folder = Path(facts["folder"])
    libraries = [Path(path).resolve() for path in facts["libraries"]]
    if not (folder / "include" / HEADER).is_file():
        raise NotForNative(f"the wheel has no header {HEADER}")
    kernels = libraries[-1]
    new_strings = _new_strings(kernels)
    extension = kernels.name.startswith("_pywrap")
    if extension:  # the interpreter's symbols are missing in it
        if facts["python_library"] is None:
            raise NotForNative(f"{kernels.name} needs libpython, and this Python has no shared one")
        libraries.append(Path(facts["python_library"]).resolve())
    # absl's string_view is another type in C++17. The headers of the releases with libtensorflow_cc refuse C++14.
    return Wheel(folder / "include", tuple(libraries), "c++14" if extension else "c++17", new_strings)


def _new_strings(library: Path) -> bool:
    """How the library that exports ``LoadSavedModel`` names std::string. Raises :class:`NotForNative` when none is exported."""
    with library.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found = content.find(LOAD)
        kind = content[found + len(LOAD) : found + len(LOAD) + len(NEW_STRING)] if found >= 0 else b""
    if kind.startswith(OLD_STRING):
        return False
    if kind == NEW_STRING or kind.startswith(b"NSt3__1"):  # libc++ has one ABI only
        return True
    raise NotForNative(f"{library.name} exports no tensorflow::LoadSavedModel")
