"""Runtimes and the processes that run in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compat_matrix.runtimes.host import Host
    from compat_matrix.runtimes.runtime import Runtime, local_runtime

__all__ = ["Host", "Runtime", "local_runtime"]

_HOMES = {"Host": "host", "Runtime": "runtime", "local_runtime": "runtime"}


def __getattr__(name: str) -> Any:
    """Imported when asked for: listing runtimes needs no NumPy, a host does."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
