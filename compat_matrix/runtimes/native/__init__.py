"""The C++ loader: a worker program of ours, compiled against an installed wheel's own headers and libraries."""

from __future__ import annotations

from compat_matrix.runtimes.native.build import BINARY, BuildError, binary, build, command, examined, unsupported, why_not

__all__ = ["BINARY", "BuildError", "binary", "build", "command", "examined", "unsupported", "why_not"]
