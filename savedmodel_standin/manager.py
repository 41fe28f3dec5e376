"""Loads aspired versions and unloads others, one after the other, so that a version always serves.

The rules follow the real server's AvailabilityPreservingPolicy: a version that is no longer aspired
is unloaded once another one is ready, or when none is aspired. A failed version stays failed until
it is aspired anew.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from savedmodel_standin import log
from savedmodel_standin.errors import ServingError
from savedmodel_standin.servable import Servable
from savedmodel_standin.states import (
    AVAILABLE,
    END,
    LOADING,
    START,
    UNLOADING,
    Bus,
    servable_id,
)

NEW, BUSY, READY, FAILED = "new", "busy", "ready", "failed"

Load = Callable[[str, int, str], Servable]  # model name, version, folder


class _Harness:
    """One version that the manager knows."""

    def __init__(self, name: str, version: int, path: str) -> None:
        self.name, self.version, self.path = name, version, path
        self.id = servable_id(name, version)
        self.state = NEW
        self.aspired = True
        self.servable: Servable | None = None


class Manager:
    """Args: how to load, where to publish, and the retries and threads of the command line."""

    def __init__(
        self, load: Load, bus: Bus, retries: int, interval_micros: int, threads: int
    ) -> None:
        self._load, self._bus = load, bus
        self._retries, self._interval = retries, max(interval_micros, 0) / 1e6
        self._known: dict[str, dict[int, _Harness]] = {}
        self._aspired: dict[str, Mapping[int, str]] = {}
        self._changed = threading.Condition()
        self._threads = max(threads, 1)
        self._running = 0
        self._pool = ThreadPoolExecutor(max_workers=64, thread_name_prefix="load")
        threading.Thread(target=self._manage, name="manager", daemon=True).start()

    def set_threads(self, threads: int) -> None:
        """Set how many versions are loaded or unloaded at once."""
        with self._changed:
            self._threads = max(threads, 1)
            self._changed.notify_all()

    def aspire(self, name: str, versions: Mapping[int, str]) -> None:
        """Aspire exactly these versions of a model: ``{version: folder}``."""
        with self._changed:
            self._aspired[name] = dict(versions)
            self._changed.notify_all()

    @contextlib.contextmanager
    def held(self, name: str, version: int | None) -> Iterator[tuple[Servable, int]]:
        """Return the servable and its version, the latest ready one if ``version`` is None; it is
        not unloaded meanwhile.

        Raises :class:`ServingError`: NOT_FOUND.
        """
        servable, found = self._take(name, version)
        try:
            yield servable, found
        finally:
            servable.give_back()

    def _take(self, name: str, version: int | None) -> tuple[Servable, int]:
        with self._changed:  # an unload begins with this lock held
            ready = {
                found: harness
                for found, harness in self._known.get(name, {}).items()
                if harness.state == READY
            }
            wanted = max(ready, default=None) if version is None else version
            harness = ready.get(wanted) if wanted is not None else None
            if harness is None or harness.servable is None:
                request = f"Latest({name})" if version is None else f"Specific({name}, {version})"
                raise ServingError("NOT_FOUND", f"Servable not found for request: {request}")
            harness.servable.take()
            return harness.servable, harness.version

    def _manage(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._running < self._threads)
                action = self._next()
                if action is None:
                    self._changed.wait()
                    continue
                action[1].state = BUSY
                self._running += 1
            self._pool.submit(self._run, *action)

    def _run(self, action: Callable[[_Harness], None], harness: _Harness) -> None:
        try:
            action(harness)
        except BaseException as error:  # a fault of ours would leave the model LOADING forever
            log.error("manager", f"{harness.id}: {type(error).__name__}: {error}")
            self._settle(harness, FAILED)
            self._bus.publish(
                harness.name, harness.version, END, ServingError("INTERNAL", f"stand-in: {error!r}")
            )
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _next(self) -> tuple[Callable[[_Harness], None], _Harness] | None:
        """Return the next action. The caller holds the lock."""
        for name, aspired in self._aspired.items():
            known = self._known.setdefault(name, {})
            for harness in list(known.values()):
                harness.aspired = harness.version in aspired
                if not harness.aspired and harness.state in (NEW, FAILED):
                    del known[harness.version]
            for version, path in aspired.items():
                if version not in known:
                    known[version] = _Harness(name, version, path)
                    self._bus.publish(name, version, START)
        for name, known in self._known.items():
            idle = [
                harness
                for harness in known.values()
                if harness.state == READY and not harness.aspired
            ]
            replaced = any(harness.state == READY and harness.aspired for harness in known.values())
            if idle and (replaced or not self._aspired.get(name)):
                return self._unload, min(idle, key=lambda harness: harness.version)
        for known in self._known.values():
            fresh = [harness for harness in known.values() if harness.state == NEW]
            if fresh:
                return self._bring_up, max(fresh, key=lambda harness: harness.version)
        return None

    def _settle(self, harness: _Harness, state: str) -> None:
        with self._changed:
            harness.state = state
            self._changed.notify_all()

    def _bring_up(self, harness: _Harness) -> None:
        log.info("manager", f"Approving load for servable version {harness.id}")
        log.info("manager", f"Loading servable version {harness.id}")
        self._bus.publish(harness.name, harness.version, LOADING)
        error = self._try(harness)
        if error is None:
            log.info("manager", f"Successfully loaded servable version {harness.id}")
            self._settle(harness, READY)
            self._bus.publish(harness.name, harness.version, AVAILABLE)
        else:
            self._settle(harness, FAILED)
            self._bus.publish(harness.name, harness.version, END, error)

    def _try(self, harness: _Harness) -> ServingError | None:
        """Load with the configured number of retries. Returns the last error."""
        what, tries = f"Loading servable: {harness.id}", 0
        while True:
            if tries:
                log.info("manager", f"Retrying of {what} retry: {tries}")
            try:
                harness.servable = self._load(harness.name, harness.version, harness.path)
                return None
            except ServingError as caught:
                error = caught
            log.error("manager", f"{what} failed: {error}")
            tries += 1
            if tries > self._retries:
                log.info(
                    "manager", f"Retrying of {what} exhausted max_num_retries: {self._retries}"
                )
                return error
            with self._changed:
                if self._changed.wait_for(
                    lambda: harness.version not in self._aspired.get(harness.name, {}),
                    self._interval,
                ):
                    log.info("manager", f"Retrying of {what} was cancelled.")
                    return error

    def _unload(self, harness: _Harness) -> None:
        log.info("manager", f"Quiescing servable version {harness.id}")
        self._bus.publish(harness.name, harness.version, UNLOADING)
        servable, harness.servable = harness.servable, None
        log.info("manager", f"Unloading servable version {harness.id}")
        if servable is not None:
            servable.close()
        log.info("manager", f"Done unloading servable version {harness.id}")
        with self._changed:
            del self._known[harness.name][harness.version]
        self._bus.publish(harness.name, harness.version, END)
