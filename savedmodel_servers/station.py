"""The server of one set of tags: what it holds, what is loaded next, and who is to blame when it
falls.

It starts with an empty list of models, since a real server ends when one of its first models fails,
and gets its models through HandleReloadConfigRequest. A batch that kills the server makes suspects
of its models; they are loaded one at a time then, so that the one to blame is known. A server
without that request is started anew with every batch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from savedmodel_common import staging

from .client import Client, ModelRef, ServerError, ServingError, Timeout, Unreachable, VersionStatus
from .drivers.base import Driver
from .drivers.remote import RemoteDriver
from .launch import Launched, Launcher
from .loading import load
from .served import Connect, Limits, Served
from .verdicts import (
    HUNG,
    REFUSED,
    Fell,
    NoReload,
    NotServed,
    NotStarted,
    crashed,
    fallen,
    words_of,
)
from .watched import watched

IDLE_DEATHS = 3  # of a server, with nobody to blame, before it is given up
ALIVE_LIMIT = 5.0  # seconds for a sign of life after a request that got none


class ManagedStation:
    """A server that we start and stop."""

    def __init__(
        self, driver: Driver, place: Path, tags: Sequence[str], limits: Limits, connect: Connect
    ) -> None:
        self._limits = limits
        self._staging = staging.Staging(place / "models")
        self._launcher = Launcher(driver, self._staging.folder, place, tags, limits, connect)
        self._now: Launched | None = None
        self._held: dict[Path, tuple[staging.Staged, list[VersionStatus]]] = {}
        self._out: dict[Path, NotServed] = {}
        self._suspects: set[Path] = set()
        self._forgiven: set[Path] = set()  # models that had a server which somebody else killed
        self._deaths: list[str] = []
        self._static = False

    # Asking
    # ----------------------------------------------------------------------------------------------

    def bring(self, model: Path, ahead: Sequence[Path]) -> Served:
        """See ``Fleet.served``."""
        while True:
            if model in self._out:
                raise self._out[model].again()
            self._look()
            if model in self._held and self._now is not None:
                return self._served(self._now, model)
            batch = self._batch(model, ahead)
            try:
                self._hold(batch, ahead)
            except Fell as fall:
                self._blame(batch, fall)
                self._end()
            except NoReload:
                self._static = True
                self._end()

    def _look(self) -> None:
        """Check that the server lives.

        If it ended between two requests no model is blamed, until it has happened too often.
        """
        state = self._now.server.exit_state() if self._now else None
        if self._now is None or state is None:
            return
        self._deaths.append(f"{self._now.server.name} {state} while it was asked nothing")
        log = self._now.server.logs()
        self._end()
        if len(self._deaths) > IDLE_DEATHS:
            raise NotStarted(f"the server does not stay: {'; '.join(self._deaths)}", log)

    def _batch(self, model: Path, ahead: Sequence[Path]) -> list[Path]:
        """``model`` and those to load along with it."""
        chosen = [model]
        if model in self._suspects:
            return chosen
        room = self._limits.batch_bytes - staging.size(model)
        for other in dict.fromkeys(ahead):
            if len(chosen) >= self._limits.batch:
                break
            if (
                other in self._out
                or other in self._held
                or other in self._suspects
                or other in chosen
                or not other.is_dir()
            ):
                continue
            room -= staging.size(other)
            if room < 0:
                break
            chosen.append(other)
        return chosen

    def _hold(self, batch: list[Path], ahead: Sequence[Path]) -> None:
        """Make the server hold a batch, and of what it holds already no more than is asked for
        next. Raises Fell, NoReload.
        """
        fresh = [staged for staged in map(self._staged, batch) if staged is not None]
        if not fresh:
            return
        wanted = set() if self._static else set(ahead) - self._out.keys()
        kept = [path for path in self._held if path in wanted][: self._limits.batch - len(batch)]
        dropped = [self._held.pop(path)[0] for path in list(self._held) if path not in kept]
        try:
            if self._static:
                self._end()
            self._now = now = self._now or self._launcher.launch(fresh if self._static else [])
            mark = 0 if self._static else now.server.log_size()
            for staged in fresh:
                now.server.add(staged.name)
            everything = [*(self._held[path][0] for path in kept), *fresh]
            statuses = load(now, everything, fresh, self._limits.available, reload=not self._static)
        except BaseException:
            self._drop(fresh)
            raise
        finally:
            self._drop(
                dropped
            )  # after the server was told: it looks at all the models it has been told of
        self._judge_loaded(now, fresh, statuses, mark)

    def _staged(self, path: Path) -> staging.Staged | None:
        try:
            return self._staging.add(path)
        except (staging.Unstageable, OSError) as error:
            self._out[path] = NotServed(REFUSED, f"it cannot be put before a server: {error}")
            return None

    def _drop(self, models: Sequence[staging.Staged]) -> None:
        for staged in models:
            self._staging.remove(staged)

    def _judge_loaded(
        self,
        now: Launched,
        fresh: Sequence[staging.Staged],
        statuses: dict[str, list[VersionStatus]],
        mark: int,
    ) -> None:
        for staged in fresh:
            last = statuses[staged.name][-1]
            self._held[staged.model] = staged, statuses[staged.name]
            if last.state == "AVAILABLE":
                self._suspects.discard(staged.model)
                continue
            log = now.server.logs(mark)
            reason = (
                last.error_message or f"its state is {last.state}; the log says: {words_of(log)}"
            )
            self._out[staged.model] = NotServed(REFUSED, reason, last, log)

    # Blame
    # ----------------------------------------------------------------------------------------------

    def _blame(self, batch: list[Path], fall: Fell) -> None:
        """After a fall while ``batch`` was loaded: one model is out, or several are suspects."""
        suspects = [staged.model for staged in fall.suspects if staged.model in batch] or batch
        if (
            fall.state is not None
            and fall.state.from_outside
            and not self._forgiven.issuperset(suspects)
        ):
            self._forgiven.update(suspects)
            self._deaths.append(
                f"the server {fall.state} while {', '.join(path.name for path in suspects)} was"
                " loaded"
            )
            return
        if len(suspects) > 1:
            self._suspects.update(suspects)
            return
        self._out[suspects[0]] = fallen(fall, self._static)

    def _served(self, now: Launched, model: Path) -> Served:
        staged, statuses = self._held[model]
        marks = [0]

        def begin() -> None:
            if self._now is not now:
                raise Unreachable(
                    "its server was stopped meanwhile; ask the fleet again", "grpc", "any"
                )
            marks[0] = now.server.log_size()

        def judge(method: str, error: ServingError) -> None:
            self._judge_request(now, model, method, error, marks[0])

        grpc, rest = (one and watched(one, begin, judge) for one in (now.grpc, now.rest))
        assert grpc is not None
        return Served(ModelRef(staged.name), grpc, rest, statuses)

    def _judge_request(
        self, now: Launched, model: Path, method: str, error: ServingError, mark: int
    ) -> None:
        """After a request without an answer: has the server ended, or does it hang?

        Raises NotServed when it ended.
        """
        if self._now is not now:
            return
        state = now.ended_within(ALIVE_LIMIT if isinstance(error, Unreachable) else 0)
        where = f"while it was asked {method} over {error.transport}"
        if state is None:
            if isinstance(error, Timeout) and not now.answers(ALIVE_LIMIT):
                now.server.kill()
                self._out[model] = NotServed(
                    HUNG, f"the server answered nobody any more, {where}", log=now.server.logs(mark)
                )
                self._end()
            return
        verdict = crashed(state, where, now.server.logs(mark))
        if state.from_outside and model not in self._forgiven:
            self._forgiven.add(model)
            self._deaths.append(f"{now.server.name} {state} {where}")
        else:
            self._out[model] = verdict
        self._end()
        raise verdict from error

    # The end
    # ----------------------------------------------------------------------------------------------

    def _end(self) -> None:
        now, self._now = self._now, None
        self._drop([staged for staged, _ in self._held.values()])
        self._held.clear()
        if now is not None:
            now.close()

    def close(self) -> None:
        self._end()

    def report(self) -> dict[str, Any]:
        crashes = {str(path): why.reason for path, why in self._out.items() if why.kind != REFUSED}
        return {
            "started": self._launcher.started,
            "retried": [*self._launcher.retried, *self._deaths],
            "quarantined": crashes,
        }


class RemoteStation:
    """Somebody else's server, with the models that it has."""

    def __init__(self, driver: RemoteDriver, place: Path, limits: Limits, connect: Connect) -> None:
        self._model = driver.model
        self._limits = limits
        self._launcher = Launcher(driver, place, place, (), limits, connect)
        self._now: Launched | None = None

    def bring(self, model: Path, ahead: Sequence[Path]) -> Served:
        if self._now is None:
            self._now = self._launcher.launch([])
        ref = ModelRef(self._model or (model.parent.name if model.name == "model" else model.name))
        deadline = time.monotonic() + self._limits.available
        while True:
            statuses = self._statuses(self._now.grpc, ref)
            states = {one.state for one in statuses}
            if "AVAILABLE" in states:
                return Served(ref, self._now.grpc, self._now.rest, statuses)
            last = statuses[-1] if statuses else None
            if states <= {"END"}:
                reason = last.error_message if last else "it has no version"
                raise NotServed(REFUSED, reason or "its state is END", last)
            if time.monotonic() > deadline:
                raise NotServed(
                    HUNG,
                    f"not available after {self._limits.available:g} s: {sorted(states)}",
                    last,
                )
            time.sleep(0.5)

    def _statuses(self, client: Client, ref: ModelRef) -> list[VersionStatus]:
        try:
            return client.status(ref, limit=self._limits.up)
        except ServerError as error:
            if error.code == "NOT_FOUND":
                raise NotServed(
                    REFUSED, f"the server has no model {ref.name!r}: {error.message}"
                ) from None
            raise

    def close(self) -> None:
        if self._now is not None:
            self._now.close()
            self._now = None

    def report(self) -> dict[str, Any]:
        return {"started": 0, "retried": self._launcher.retried, "quarantined": {}}
