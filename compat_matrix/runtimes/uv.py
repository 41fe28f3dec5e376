"""uv, the program that makes environments: where it is and how it is run."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Sequence

from packaging.version import Version

from compat_matrix.runtimes.places import RuntimeTrouble

# What would make uv look at another environment, install something else than what it is asked for, or contradict an option.
CHANGING = (
    *("PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX", "UV_PYTHON_PREFERENCE", "UV_CONSTRAINT", "UV_OVERRIDE", "UV_SYSTEM_PYTHON"),
    "UV_COMPILE_BYTECODE",
)
TAIL = 40  # lines of uv's complaint that are shown


class UvTrouble(RuntimeTrouble):
    """uv is missing, or ended with an error; ``offline``: because a package index could not be reached."""

    def __init__(self, message: str, offline: bool = False) -> None:
        super().__init__(message)
        self.offline = offline


@functools.lru_cache(maxsize=1)
def find() -> str:
    """The binary that comes with the package ``uv``, else the one on PATH. Raises :class:`UvTrouble`."""
    try:
        from uv import find_uv_bin

        return str(find_uv_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
    if found is None:
        raise UvTrouble("uv makes the environments and is not here: pip install uv")
    return found


def compiling(python: str | None) -> list[str]:
    """The option with which uv compiles what it installs; it can from Python 3.8 on, before the first import does."""
    return [] if python is not None and Version(python) < Version("3.8") else ["--compile-bytecode"]


def run(arguments: Sequence[str], given: str | None = None) -> str:
    """Run uv, with ``given`` as standard input; its standard output. Raises :class:`UvTrouble` with what it complained of."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(CHANGING)}
    try:
        done = subprocess.run(
            [find(), *arguments],
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            text=True,
            env={**kept, "NO_COLOR": "1"},
            check=False,
        )
    except OSError as error:
        raise UvTrouble(f"uv: {error}") from error
    if done.returncode:
        complaint = "\n".join(done.stderr.strip().splitlines()[-TAIL:])
        offline = any(sign in done.stderr for sign in ("error sending request", "dns error", "Network connectivity is disabled"))
        raise UvTrouble(f"uv {' '.join(arguments[:2])} failed ({done.returncode}):\n{complaint}", offline)
    return done.stdout
