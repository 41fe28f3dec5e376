"""One host for each runtime, started on first use."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from compat_matrix.cells.registry import OURS, Registry
from compat_matrix.hosts.host import Host
from compat_matrix.runtimes.runtime import Runtime


class Hosts:
    """The hosts by runtime.

    Each starts on first use; leaving the context ends all of them.

    ``folder`` is for the logs of the workers. ``warm`` keeps the workers of every runtime;
    otherwise of one at a time. ``cases`` and ``generators`` are folders of producers in place of
    ours. ``tolerance``: rtol and atol of the user, in place of those that artifacts state.
    """

    def __init__(
        self,
        folder: Path,
        warm: bool = False,
        registry: Registry = OURS,
        cases: Path | None = None,
        generators: Path | None = None,
    ) -> None:
        self.folder, self.warm, self.registry = folder, warm, registry
        self._places = cases, generators
        self.tolerance: tuple[float, float] | None = None
        self.runtimes: dict[str, Runtime] = {}
        self._hosts: dict[str, Host] = {}

    def __enter__(self) -> Hosts:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def know(self, runtimes: Iterable[Runtime]) -> None:
        """Add runtimes, which are then found by name."""
        self.runtimes.update({runtime.name: runtime for runtime in runtimes})

    def of(self, runtime: str) -> Host:
        """Return the host of a runtime. Raises KeyError for an unknown runtime."""
        key = runtime if self.warm else ""
        if key not in self._hosts:
            self._hosts[key] = Host(self.folder / key, self.runtimes, *self._places)
        host = self._hosts[key]
        host.registry, host.tolerance = self.registry, self.tolerance
        host.know(self.runtimes)
        return host

    def release(self) -> None:
        """Free the models that cells share; the workers stay."""
        for host in self._hosts.values():
            host.release()

    def close(self) -> None:
        """End all workers and servers."""
        while self._hosts:
            self._hosts.popitem()[1].__exit__()
