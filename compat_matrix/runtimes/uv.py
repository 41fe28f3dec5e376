"""Find and run uv, the program that makes environments."""

from __future__ import annotations

import functools
import shutil
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from packaging.version import Version

from compat_matrix.runtimes.places import RuntimeTrouble, environment
from compat_matrix.runtimes.records import interpreter

# Variables that would make uv use another environment, install something else, or contradict an
# option.
CHANGING = (
    *(
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "UV_PYTHON_PREFERENCE",
        "UV_CONSTRAINT",
        "UV_OVERRIDE",
        "UV_SYSTEM_PYTHON",
    ),
    "UV_COMPILE_BYTECODE",
)
_ONE_THREAD = threading.Lock()
TAIL = 40  # lines of uv's error that are shown


class UvTrouble(RuntimeTrouble):
    """Raised when uv is missing or ended with an error; ``offline``: because a package index could
    not be reached.
    """

    def __init__(self, message: str, offline: bool = False) -> None:
        super().__init__(message)
        self.offline = offline


def find() -> str:
    """Return the binary of the package ``uv``, else the one on PATH. Raises :class:`UvTrouble`."""
    # The package asks sysconfig, whose first use is not safe in two threads (Python 3.11).
    with _ONE_THREAD:
        return _found()


@functools.lru_cache(maxsize=1)
def _found() -> str:
    try:
        from uv import find_uv_bin

        return str(find_uv_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
    if found is None:
        raise UvTrouble("uv makes the environments and is not here: pip install uv")
    return found


def make(place: Path, python: str) -> None:
    """Make an environment of an interpreter, without packages, in an empty folder.

    Raises :class:`UvTrouble`.
    """
    run(["venv", "--quiet", "--relocatable", "--no-project", "--python", python, str(place)])


def install(
    place: Path, version: str | None, arguments: Sequence[str], given: str | None = None
) -> None:
    """Install into an environment of a Python ``version``; ``arguments`` say what.

    Raises :class:`UvTrouble`.
    """
    # uv can compile what it installs since Python 3.8; else the first import does.
    compiling = (
        [] if version is not None and Version(version) < Version("3.8") else ["--compile-bytecode"]
    )
    run(
        ["pip", "install", "--quiet", *compiling, "--python", str(interpreter(place)), *arguments],
        given,
    )


def run(arguments: Sequence[str], given: str | None = None) -> str:
    """Run uv with ``given`` as standard input and return its standard output.

    Raises :class:`UvTrouble` with uv's error.
    """
    try:
        done = subprocess.run(
            [find(), *arguments],
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            text=True,
            env={**environment(*CHANGING), "NO_COLOR": "1"},
            check=False,
        )
    except OSError as error:
        raise UvTrouble(f"uv: {error}") from error
    if done.returncode:
        complaint = "\n".join(done.stderr.strip().splitlines()[-TAIL:])
        offline = any(
            sign in done.stderr
            for sign in ("error sending request", "dns error", "Network connectivity is disabled")
        )
        raise UvTrouble(
            f"uv {' '.join(arguments[:2])} failed ({done.returncode}):\n{complaint}", offline
        )
    return done.stdout
