"""Programs in a process that has imported TensorFlow and done nothing else."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from fork_server import ForkServer

_server = ForkServer("tensorflow", "reference_impl.api")


def run(
    program: str | Path,
    *arguments: object,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Do as ``python -c PROGRAM ARGUMENTS...`` does, or ``python PROGRAM`` for the path of a file,
    in a fork.

    Returns the exit code and all that was written. TensorFlow and Keras are imported already: a
    variable of ``environment`` that they read at their import has no effect.
    """
    head = [str(program)] if isinstance(program, Path) else ["-c", program]
    return _server.run(head, *arguments, cwd=cwd, environment=environment)


def printed(
    program: str | Path,
    *arguments: object,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Return what a program printed that ended without an error."""
    done = run(program, *arguments, cwd=cwd, environment=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
