"""Runtimes and the processes that run in them."""

from __future__ import annotations

from compat_matrix.runtimes.host import Host
from compat_matrix.runtimes.runtime import Runtime, local_runtime

__all__ = ["Host", "Runtime", "local_runtime"]
