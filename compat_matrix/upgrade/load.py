"""Send requests without a break: one thread for each transport queries the current server and compares every answer."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from compat_matrix.checks.serve import PARSED
from compat_matrix.requests.compare import EXACT
from compat_matrix.serving.client import GRPC, REST, Client, ModelRef, ServingError
from compat_matrix.serving.drivers import Endpoint
from compat_matrix.serving.served import connect
from compat_matrix.upgrade.client_requests import ClientRequest

ROUNDS = 3  # of all requests over each transport, before a place counts as checked
REQUEST_LIMIT = 60.0  # seconds for one answer


class Lost(Exception):
    """A client did not get the right answer."""


@dataclass(frozen=True)
class Aim:
    """The target of requests, and the exports whose answers are right."""

    endpoint: Endpoint
    exports: frozenset[str]


class Load:
    """A context manager that asks the requests again and again, from the first ``aim`` until it is left.

    ``patience``: seconds without any answer before :meth:`settle` gives up.
    """

    def __init__(self, requests: Sequence[ClientRequest], patience: float = 2 * REQUEST_LIMIT) -> None:
        self._requests, self._patience = requests, patience
        self._aim: Aim | None = None
        self._stop = False
        self._failure: str | None = None
        self._changed = threading.Condition()
        self._answered: Counter[str] = Counter()  # since the last aim, by transport
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Load:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop = True
        for thread in self._threads:
            thread.join()

    def aim(self, endpoint: Endpoint, *exports: str) -> None:
        """Send requests here from now on; the answers of these exports are right."""
        with self._changed:
            self._aim = Aim(endpoint, frozenset(exports))
            self._answered.clear()
        if not self._threads:
            transports = [GRPC] + [REST] * (endpoint.rest_port is not None and any(one.rest for one in self._requests))
            self._threads = [
                threading.Thread(target=self._ask, args=(transport,), name=transport, daemon=True) for transport in transports
            ]
            for thread in self._threads:
                thread.start()

    def settle(self) -> dict[str, int]:
        """Wait until every request was answered several times since the last aim; return the number of answers by transport.

        Raises Lost: an answer was wrong or missing at any time.
        """
        asked = {GRPC: len(self._requests), REST: sum(one.rest for one in self._requests)}
        wanted = {thread.name: ROUNDS * asked[thread.name] for thread in self._threads}
        with self._changed:
            while self._failure is None and any(self._answered[name] < count for name, count in wanted.items()):
                if not self._changed.wait(self._patience):
                    raise Lost(f"no answer within {self._patience:g} s")
            if self._failure is not None:
                raise Lost(self._failure)
            return dict(self._answered)

    def _ask(self, transport: str) -> None:
        client: Client | None = None
        aimed: Aim | None = None
        try:
            while not self._stop:
                for request in self._requests:
                    if self._stop or (transport == REST and not request.rest):
                        continue
                    aim = self._aim
                    assert aim is not None
                    if client is None or aim is not aimed:
                        # A client knows the signatures of a model; another export may have others.
                        client, aimed = _client(transport, aim.endpoint, client), aim
                    self._count(transport, aim, self._one(client, request, aim))
        except Exception as error:  # our own error: do not leave others waiting for answers that never come
            self._count(transport, None, f"{type(error).__name__}: {error}")
        finally:
            if client is not None:
                client.close()

    def _one(self, client: Client, request: ClientRequest, aim: Aim) -> str:
        """Ask one request. Return what went wrong, or ""."""
        what = f"{request.model}: request {request.id} over {client.transport}: "
        try:
            got = client.predict(ModelRef(request.model), request.signature, request.inputs, limit=REQUEST_LIMIT)
        except ServingError as error:
            return what + str(error)
        assert self._aim is not None
        # The export may have been switched while this request was under way.
        wrong = request.wrong(got, aim.exports | self._aim.exports, PARSED if client.transport == REST else EXACT)
        return what + wrong if wrong else ""

    def _count(self, transport: str, aim: Aim | None, failure: str) -> None:
        with self._changed:
            if failure:
                self._failure, self._stop = self._failure or failure, True
            elif aim is self._aim:
                self._answered[transport] += 1
            self._changed.notify_all()


def _client(transport: str, endpoint: Endpoint, before: Client | None) -> Client:
    """Return a client of one transport, replacing the previous one."""
    if before is not None:
        before.close()
    grpc, rest = connect(endpoint)
    if transport == GRPC:
        if rest is not None:
            rest.close()
        return grpc
    grpc.close()
    assert rest is not None
    return rest
