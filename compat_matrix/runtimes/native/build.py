"""Compile the C++ loader for an installed TensorFlow.

The binary is kept in the cache folder, by wheel, sources, flags and compiler. A build is staged and
renamed; simultaneous builds wait for each other. Nothing here imports TensorFlow.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from compat_matrix.runtimes.native.wheel import NotForNative, Wheel, wheel_of
from compat_matrix.runtimes.places import RuntimeTrouble, home
from compat_matrix.runtimes.runtime import Runtime
from savedmodel_common.alone import alone
from savedmodel_common.writing import new_folder

SOURCES = Path(__file__).resolve().parent
BINARY = "cpp_worker"
COMPILERS = ("g++", "c++", "clang++")
BUILD_LIMIT = 1800  # seconds, on a busy machine; an idle one needs half a minute
SHOWN = 6000  # characters of the compiler's output
Report = Callable[[str], None]


class BuildError(RuntimeTrouble):
    """Raised when there is no binary and none could be made; the message gives the reason and the
    failed command.
    """


def why_not(runtime: Runtime) -> str | None:
    """Return why the C++ loader cannot be used in a runtime (its wheel, or a missing compiler);
    None when it can.
    """
    impossible = unsupported(runtime)
    if impossible:
        return impossible
    try:
        _place(wheel_of(runtime.python))
    except BuildError as error:
        return str(error)
    return None


def unsupported(runtime: Runtime) -> str | None:
    """Return why the runtime's wheel never allows a C++ loader; None when it does."""
    if runtime.tensorflow_version is None:
        return "there is no TensorFlow"
    try:
        wheel_of(runtime.python)
    except NotForNative as error:
        return str(error)
    return None


def examined(runtime: Runtime, consumer: str) -> Runtime:
    """Return the runtime.

    A reason why it has no C++ loader is entered in its ``lacks`` or ``unready``, under the
    consumer's name.
    """
    if consumer in runtime.lacks or runtime.tensorflow_version is None:
        return runtime
    impossible = unsupported(runtime)
    if impossible:
        return replace(runtime, lacks={**runtime.lacks, consumer: impossible})
    missing = why_not(runtime)
    return replace(runtime, unready={**runtime.unready, consumer: missing}) if missing else runtime


def build(runtime: Runtime, report: Report = lambda text: None) -> Path:
    """Return the program for a runtime; compile it if it does not exist yet.

    ``report`` is called with the progress.

    Raises :class:`BuildError`.
    """
    try:
        wheel = wheel_of(runtime.python)
    except NotForNative as error:
        raise BuildError(f"{runtime.name} has no C++ loader: {error}") from error
    place = _place(wheel)
    if (place / BINARY).is_file():
        return place / BINARY
    place.parent.mkdir(parents=True, exist_ok=True)
    with alone(place.with_suffix(".lock")):
        if (place / BINARY).is_file():  # built while this process waited
            return place / BINARY
        report(f"compiling the C++ loader for {runtime.name}; once, about half a minute")
        with new_folder(place) as staged:
            units = map(str, sorted(SOURCES.glob("*.cc")))
            _run(
                [*_compiler(), *flags(wheel), "-o", str(staged / BINARY), *units, *_link(wheel)],
                staged,
            )
    return place / BINARY


def provide(runtime: Runtime, report: Report) -> None:
    """Build the program if it does not exist yet, unless the wheel does not allow a C++ loader.

    Raises :class:`BuildError`.
    """
    if unsupported(runtime) is None:
        build(runtime, report)


def flags(wheel: Wheel) -> list[str]:
    """Return the compiler flags for a wheel.

    NDEBUG must be as in the wheel's build: the layout of some classes depends on it.
    """
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(wheel.new_strings)}"
    return [
        f"-std={wheel.standard}",
        abi,
        "-DNDEBUG",
        "-O1",
        "-pthread",
        "-isystem",
        str(wheel.include),
    ]


def _link(wheel: Wheel) -> list[str]:
    # We use no symbol of the library that registers the kernels, but it must be linked
    # nevertheless.
    keep = ["-Wl,--no-as-needed"] if sys.platform != "darwin" else []
    folders = dict.fromkeys(str(path.parent) for path in wheel.libraries)
    return [
        *keep,
        *(str(path) for path in wheel.libraries),
        *(f"-Wl,-rpath,{folder}" for folder in folders),
    ]


def _place(wheel: Wheel) -> Path:
    """Return the folder of the program for a wheel.

    Raises BuildError without a compiler, which is part of the key.
    """
    digest = hashlib.sha256()
    for path in sorted([*SOURCES.glob("*.cc"), *SOURCES.glob("*.h")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    facts = [
        _compiler(),
        _compiler_version(tuple(_compiler())),
        flags(wheel),
        _link(wheel),
        wheel.stamp,
    ]
    digest.update(json.dumps(facts).encode())
    return home() / "native" / digest.hexdigest()[:20]


def _compiler() -> list[str]:
    """Return the command of the C++ compiler: CXX, which may have arguments, else the first one
    found. Raises BuildError.
    """
    asked = shlex.split(os.environ.get("CXX", ""))
    if asked:
        if shutil.which(asked[0]):
            return asked
        raise BuildError(f"no C++ compiler: CXX is {os.environ['CXX']!r}, which is not on PATH")
    found = next((name for name in COMPILERS if shutil.which(name)), None)
    if found is None:
        raise BuildError(
            f"no C++ compiler ({', '.join(COMPILERS)}) on PATH; install g++ or set CXX"
        )
    return [found]


@functools.lru_cache(maxsize=8)
def _compiler_version(compiler: tuple[str, ...]) -> str:
    try:
        return subprocess.run(
            [*compiler, "--version"], capture_output=True, text=True, check=True, timeout=60
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise BuildError(
            f"the C++ compiler {shlex.join(compiler)} does not start: {error}"
        ) from error


def _run(arguments: list[str], folder: Path) -> None:
    try:
        subprocess.run(
            arguments,
            capture_output=True,
            text=True,
            check=True,
            timeout=BUILD_LIMIT,
            cwd=folder,
            errors="replace",
        )
    except subprocess.CalledProcessError as error:
        raise BuildError(
            f"the C++ loader does not compile:\n$ {shlex.join(arguments)}\n{error.stderr[:SHOWN]}"
        ) from error
    except (OSError, subprocess.SubprocessError) as error:
        raise BuildError(
            f"the C++ loader does not compile:\n$ {shlex.join(arguments)}\n{error}"
        ) from error
