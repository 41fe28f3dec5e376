"""Starting one server and waiting until it answers: the first of the two clocks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from savedmodel_common import interrupts
from savedmodel_common.staging import Staged

from .client import Client, ModelRef, ServerError, ServingError
from .drivers.base import Driver, Endpoint, EngineTrouble, ExitState, Server
from .served import Connect, Limits
from .verdicts import Fell, NotStarted, words_of

CONFIG = "models.config"
NOBODY = ModelRef(
    "savedmodel_compat_is_it_up"
)  # a model that no server has: the error in the answer is a sign of life
ANSWER_LIMIT = 5.0  # seconds for one sign of life
ATTEMPTS = 3
PAUSES = (0.02, 0.5)  # seconds between two looks, from and to


@dataclass(frozen=True)
class Launched:
    """A server that answers, and its clients.

    ``seen``: the folder of models as the server sees it.
    """

    server: Server
    endpoint: Endpoint
    grpc: Client
    rest: Client | None
    seen: str
    connect: Connect

    def ended_within(self, limit: float) -> ExitState | None:
        """Return how the server ended, now or within ``limit`` seconds: a connection may break
        before the process ends.
        """
        deadline = time.monotonic() + limit
        while True:
            state = self.server.exit_state()
            if state is not None or time.monotonic() > deadline:
                return state
            time.sleep(0.05)

    def answers(self, limit: float) -> bool:
        return signs_of_life(self.grpc, limit) is None

    def close(self) -> None:
        for client in (self.grpc, self.rest):
            if client is not None:
                with suppress(ServingError, OSError):
                    client.close()
        self.server.stop()


class Launcher:
    """Starts the servers of one set of tags, one after the other."""

    def __init__(
        self,
        driver: Driver,
        folder: Path,
        evidence: Path,
        tags: Sequence[str],
        limits: Limits,
        connect: Connect,
    ) -> None:
        self._driver, self._folder, self._evidence = driver, folder, evidence
        self._tags, self._limits, self._connect = tuple(tags), limits, connect
        self._broken: NotStarted | None = None
        self.started = 0
        self.retried: list[str] = []

    def launch(self, models: Sequence[Staged]) -> Launched:
        """Start a server that answers and holds ``models``.

        Raises NotStarted, Fell (with models), NotHere, EngineTrouble.

        A server that could not be started without models is not tried again: it would fail in the
        same way for each model.
        """
        if self._broken is not None:
            raise NotStarted(self._broken.reason, self._broken.log)
        seen = self._driver.seen(self._folder)
        if self._driver.manages:
            (self._folder / CONFIG).write_text(config_text(models, seen), encoding="utf-8")
        for left in reversed(range(ATTEMPTS)):
            server = self._driver.start(
                self._folder, self._flags(seen), self._evidence / f"start-{self.started + 1}"
            )
            self.started += 1
            try:
                return self._up(server, seen, bool(models))
            except EngineTrouble as trouble:
                server.stop()
                if not trouble.passing or not left:
                    raise
                self.retried.append(str(trouble))
            except NotStarted as broken:
                server.stop()
                self._broken = broken
                raise
            except BaseException:
                server.stop()
                raise
        raise AssertionError("unreachable")

    def _flags(self, seen: str) -> list[str]:
        flags = [
            f"--model_config_file={seen}/{CONFIG}",
            "--max_num_load_retries=0",
            "--load_retry_interval_micros=0",
        ]
        return (
            flags
            if set(self._tags) == {"serve"}
            else [*flags, f"--saved_model_tags={','.join(self._tags)}"]
        )

    def _up(self, server: Server, seen: str, holding: bool) -> Launched:
        # A server with models does not answer before they are loaded.
        limit = self._limits.up + (self._limits.available if holding else 0)
        deadline, pause, why = time.monotonic() + limit, PAUSES[0], "its ports are not known"
        while True:
            interrupts.check()
            state = server.exit_state()
            doubt = server.doubt(answered=False)
            if doubt is not None:
                raise EngineTrouble(f"{server.name}: {doubt}", passing=True)
            if state is not None and holding:
                raise Fell(state, log=server.logs())
            if state is not None and state.from_outside:
                raise EngineTrouble(f"{server.name} {state} before it answered", passing=True)
            if state is not None:
                log = server.logs()
                raise NotStarted(
                    f"the server {state} before it answered; the log says: {words_of(log)}", log
                )
            launched, why = self._try(server, seen)
            if launched is not None:
                return launched
            if time.monotonic() > deadline:
                if holding:
                    raise Fell(None, waited=limit, log=server.logs())
                log = server.logs()
                raise NotStarted(
                    f"the server did not answer within {limit:g} s ({why}); its log ends:"
                    f" {words_of(log)}",
                    log,
                )
            time.sleep(pause)
            pause = min(pause * 1.5, PAUSES[1])

    def _try(self, server: Server, seen: str) -> tuple[Launched | None, str]:
        """Make one attempt to get an answer; return None and the reason if there is none."""
        endpoint = server.endpoint()
        if endpoint is None:
            return None, "its ports are not known"
        grpc, rest = self._connect(endpoint)
        launched = None
        try:
            # REST first: a server starts it last, and a refused gRPC channel waits for a second by
            # itself.
            why = (rest and signs_of_life(rest, ANSWER_LIMIT)) or signs_of_life(grpc, ANSWER_LIMIT)
            if why is None:
                doubt = server.doubt(answered=True)
                if doubt is not None:
                    raise EngineTrouble(f"{server.name}: {doubt}", passing=True)
                launched = Launched(server, endpoint, grpc, rest, seen, self._connect)
            return launched, why or ""
        finally:
            if launched is None:
                for client in filter(None, (grpc, rest)):
                    client.close()


def signs_of_life(client: Client, limit: float) -> str | None:
    """Return None when the server gives any answer; else the reason."""
    try:
        client.status(NOBODY, limit=limit)
    except ServerError:
        return None
    except ServingError as error:
        return str(error)
    return None


def config_text(models: Sequence[Staged], seen: str) -> str:
    """Return the text of ``--model_config_file``.

    It is never empty, even without models: a server could not read an empty file.
    """
    one = '  config {{ name: "{0}" base_path: "{1}/{0}" model_platform: "tensorflow" }}\n'
    return (
        "model_config_list {\n"
        + "".join(one.format(staged.name, _quoted(seen)) for staged in models)
        + "}\n"
    )


def _quoted(path: str) -> str:
    return path.replace("\\", "\\\\").replace('"', '\\"')
