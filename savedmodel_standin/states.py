"""The states that each version of each model has passed, and waiting for a state."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import NamedTuple

from savedmodel_standin.errors import ServingError

START, LOADING, AVAILABLE, UNLOADING, END = "START", "LOADING", "AVAILABLE", "UNLOADING", "END"


class Entry(NamedTuple):
    """The last state of a version; ``error`` is why it ended, where it ended badly."""

    state: str
    error: ServingError | None


def servable_id(name: str, version: int) -> str:
    return f"{{name: {name} version: {version}}}"


class Monitor:
    """The published states. A new monitor does not know earlier states."""

    def __init__(self) -> None:
        self._states: dict[str, dict[int, Entry]] = {}
        self._changed = threading.Condition()

    def publish(self, name: str, version: int, entry: Entry) -> None:
        with self._changed:
            self._states.setdefault(name, {})[version] = entry
            self._changed.notify_all()

    def versions(self, name: str) -> dict[int, Entry]:
        """Return the versions, newest first."""
        with self._changed:
            return dict(sorted(self._states.get(name, {}).items(), reverse=True))

    def wait(self, names: Iterable[str]) -> dict[tuple[str, int], Entry]:
        """Wait, without limit, until some version of each is AVAILABLE or at its END; returns
        those.
        """
        wanted = list(names)
        reached: dict[tuple[str, int], Entry] = {}

        def all_there() -> bool:
            reached.clear()
            for name in wanted:
                for version, entry in sorted(self._states.get(name, {}).items(), reverse=True):
                    # Without an error it was unloaded: an earlier life of a model that is loaded
                    # again.
                    if entry.state == AVAILABLE or (entry.state == END and entry.error):
                        reached[name, version] = entry
                        break
                else:
                    return False
            return True

        with self._changed:
            self._changed.wait_for(all_there)
            return dict(reached)


class Bus:
    """Publishes states to every monitor."""

    def __init__(self) -> None:
        self._monitors: list[Monitor] = []

    def monitor(self) -> Monitor:
        monitor = Monitor()
        self._monitors.append(monitor)
        return monitor

    def forget(self, monitor: Monitor) -> None:
        self._monitors.remove(monitor)

    def publish(
        self, name: str, version: int, state: str, error: ServingError | None = None
    ) -> None:
        for monitor in list(self._monitors):
            monitor.publish(name, version, Entry(state, error))
