"""Facts about an installed TensorFlow for a C++ program, read from its files.

Nothing here imports TensorFlow.
"""

from __future__ import annotations

import functools
import json
import mmap
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import compat_matrix.workers
from compat_matrix.runtimes.places import environment

PROGRAMS = Path(next(iter(compat_matrix.workers.__path__)))
ASK_LIMIT = 120  # seconds for a Python to start, on a cold and busy machine
HEADER = Path("tensorflow/cc/saved_model/loader.h")
# Functions that every release exports, except for the mangled names of std::string (libstdc++ old
# or new, libc++) and string_view.
LOAD = re.compile(
    rb"_ZN10tensorflow14LoadSavedModelERKNS_14SessionOptionsERKNS_10RunOptionsERK(Ss|NSt)"
)
PARSE = re.compile(
    rb"_ZN10tensorflow15ParseTensorNameE(St17basic_string_view|NSt3__1\d+basic_string_view|N4absl)"
)
OLD_STRING, OLD_VIEW = b"Ss", b"N4absl"


class NotForNative(Exception):
    """Raised for a wheel that does not allow a C++ loader with any compiler; the message says
    why.
    """


@dataclass(frozen=True)
class Wheel:
    """The files of one installed TensorFlow.

    ``new_strings``: built with the C++11 ABI of libstdc++.
    """

    include: Path
    libraries: tuple[Path, ...]
    standard: str
    new_strings: bool

    @property
    def stamp(self) -> list[list[object]]:
        """Return names, sizes and times of the linked files; they differ for another
        installation.
        """
        return [
            [str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in self.libraries
        ]


@functools.lru_cache(maxsize=64)
def wheel_of(python: Path) -> Wheel:
    """Return the TensorFlow installed beside an interpreter, which is started to find it.

    Raises :class:`NotForNative`.
    """
    command = [str(python), str(PROGRAMS), "wheel_facts"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            timeout=ASK_LIMIT,
            env=environment(),
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", "") or ""
        raise NotForNative(
            f"{python} does not say where its TensorFlow is: {error} {said[-500:]}".rstrip()
        ) from error
    facts = json.loads(done.stdout)
    if facts["error"]:
        raise NotForNative(facts["error"])
    folder = Path(facts["folder"])
    libraries = [Path(path).resolve() for path in facts["libraries"]]
    if not (folder / "include" / HEADER).is_file():
        raise NotForNative(f"the wheel has no header {HEADER}")
    kernels = libraries[-1]
    new_strings, standard = _dialect(kernels)
    if kernels.name.startswith(
        "_pywrap"
    ):  # an extension module, which needs the interpreter's symbols
        if facts["python_library"] is None:
            raise NotForNative(f"{kernels.name} needs libpython, and this Python has no shared one")
        libraries.append(Path(facts["python_library"]).resolve())
    return Wheel(folder / "include", tuple(libraries), standard, new_strings)


def _dialect(library: Path) -> tuple[bool, str]:
    """Return whether the library that exports ``LoadSavedModel`` uses the new std::string, and its
    C++ standard.

    The names of its symbols show both. Raises :class:`NotForNative` when no library exports the
    function.
    """
    with (
        library.open("rb") as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        strings = LOAD.search(content)
        if strings is None:
            raise NotForNative(f"{library.name} exports no tensorflow::LoadSavedModel")
        # absl::string_view is std::string_view in C++17, otherwise a separate class with its
        # members in another order.
        views = PARSE.search(content)
        return strings[1] != OLD_STRING, "c++14" if views and views[1] == OLD_VIEW else "c++17"
