"""Ask all the time: a thread for each transport queries the current server, and judges answers.

A new place is asked without a pause until it counts as checked. Then the threads pause between
questions, so that the server that starts or switches meanwhile gets the processor.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass

from savedmodel_servers.client import (
    GRPC,
    REST,
    Client,
    ServingError,
)
from savedmodel_servers.drivers import Endpoint
from savedmodel_servers.served import connect
from savedmodel_servers.upgrade.clients import (
    REQUEST_LIMIT,
    WAYS,
    Clients,
    Lost,
    Question,
    ask,
    wrong,
)

ROUNDS = 3  # of all questions over each transport, before a place counts as checked
PAUSE = 0.01  # seconds between two questions to a place that counts as checked


@dataclass(frozen=True)
class Aim:
    """The target of requests, and the exports that may answer there."""

    endpoint: Endpoint
    exports: frozenset[str]


class Load:
    """A context manager that asks what the clients ask, from the first ``aim`` until it is left.

    The clients are those of the old export from beginning to end: they encode requests and read
    answers by its SignatureDefs, whichever export answers. ``patience``: seconds without any answer
    before :meth:`settle` gives up.
    """

    def __init__(self, clients: Clients, patience: float = 2 * REQUEST_LIMIT) -> None:
        self._clients, self._patience = clients, patience
        self._aim: Aim | None = None
        self._stop = False
        self._failure: str | None = None
        self._changed = threading.Condition()
        self._answered: Counter[str] = Counter()  # since the last aim, by transport
        self._asked: dict[str, list[Question]] = {}  # by transport
        for question in clients.questions:
            self._asked.setdefault(WAYS[question.way], []).append(question)
        self._wanted = {name: ROUNDS * len(questions) for name, questions in self._asked.items()}
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Load:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop = True
        for thread in self._threads:
            thread.join()

    def aim(self, endpoint: Endpoint, *exports: str) -> None:
        """Send requests here from now on; one of these exports answers."""
        with self._changed:
            self._aim = Aim(endpoint, frozenset(exports))
            self._answered.clear()
        if not self._threads:
            self._threads = [
                threading.Thread(target=self._go_on, args=(name,), name=name, daemon=True)
                for name in self._asked
            ]
            for thread in self._threads:
                thread.start()

    def settle(self) -> dict[str, int]:
        """Wait until every question was answered several times since the last aim.

        Return the number of answers by transport.

        Raises Lost: an answer was wrong or missing at any time.
        """
        with self._changed:
            while self._failure is None and not all(map(self._is_checked, self._wanted)):
                if not self._changed.wait(self._patience):
                    raise Lost(f"no answer within {self._patience:g} s")
            if self._failure is not None:
                raise Lost(self._failure)
            return dict(self._answered)

    def _is_checked(self, transport: str) -> bool:
        """Return whether every question was answered several times since the last aim."""
        return self._answered[transport] >= self._wanted[transport]

    def _go_on(self, transport: str) -> None:
        client: Client | None = None
        aimed: Endpoint | None = None
        try:
            while not self._stop:
                for question in self._asked[transport]:
                    if self._stop:
                        break
                    aim = self._aim
                    assert aim is not None
                    if client is None or aim.endpoint is not aimed:
                        client, aimed = self._client(transport, aim.endpoint, client), aim.endpoint
                    self._count(transport, aim, self._one(client, question, aim))
                    if self._is_checked(transport):
                        time.sleep(PAUSE)
        except (
            Exception
        ) as error:  # our own error: do not leave others waiting for answers that never come
            self._count(transport, None, f"{type(error).__name__}: {error}")
        finally:
            if client is not None:
                client.close()

    def _client(self, transport: str, endpoint: Endpoint, before: Client | None) -> Client:
        """Return a client of one transport, replacing the previous one."""
        if before is not None:
            before.close()
        grpc, rest = connect(endpoint, self._clients.signatures)
        if transport == GRPC:
            if rest is not None:
                rest.close()
            return grpc
        grpc.close()
        if rest is None:
            raise Lost(f"the server has no {REST} API, which clients of the old server use")
        return rest

    def _one(self, client: Client, question: Question, aim: Aim) -> str:
        """Ask one question. Return what went wrong, or ""."""
        try:
            got = ask(client, question)
        except ServingError as error:
            return f"{question}: {error}"
        assert self._aim is not None
        # The export may have been switched while this request was under way.
        differs = wrong(question, got, aim.exports | self._aim.exports)
        return f"{question}: {differs}" if differs else ""

    def _count(self, transport: str, aim: Aim | None, failure: str) -> None:
        with self._changed:
            if failure:
                self._failure, self._stop = self._failure or failure, True
            elif aim is self._aim:
                self._answered[transport] += 1
            self._changed.notify_all()
