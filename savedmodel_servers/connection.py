"""One HTTP connection to an untrusted server: one limit for the time of the whole exchange, and one
for its size.
"""

from __future__ import annotations

import http.client
import math
import socket
import time
from typing import Any, NamedTuple

MAX_BODY_BYTES = 2**26  # of JSON, which takes twenty times its size as Python's objects

_CHUNK = 2**16


class Response(NamedTuple):
    """The answer of a server."""

    status: int
    body: bytes


class Refused(Exception):
    """Raised when there is no connection or it broke."""


class TooLate(Exception):
    """Raised when the time limit is over."""


class NotHttp(Exception):
    """Raised when the answer is not HTTP or too large."""


class Connection:
    """A connection that is kept open between exchanges and reopened if the server has closed it.

    ``host``: an IPv6 address without brackets; ``max_bytes``: the largest body.
    """

    def __init__(self, host: str, port: int, max_bytes: int = MAX_BODY_BYTES) -> None:
        self._max_bytes = max_bytes
        self._http = _Http(host, port)

    def close(self) -> None:
        self._http.close()

    def exchange(self, verb: str, path: str, body: bytes | None, limit: float) -> Response:
        """Send a request and read the whole answer.

        Raises Refused, TooLate, NotHttp; the connection is closed then.
        """
        self._http.deadline = time.monotonic() + limit
        try:
            return self._exchange(verb, path, body)
        except BaseException:
            self._http.close()
            raise

    def _exchange(self, verb: str, path: str, body: bytes | None) -> Response:
        if self._http.is_stale():
            self._http.close()
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            self._http.request(verb, path, body, headers)
            answer = self._http.getresponse()
            return Response(answer.status, self._read(answer))
        except (OSError, http.client.HTTPException) as error:
            raise _explained(error) from error

    def _read(self, answer: http.client.HTTPResponse) -> bytes:
        promised = answer.length
        if promised is not None and promised > self._max_bytes:
            raise NotHttp(f"the answer promises {promised} bytes; {self._max_bytes} are read")
        parts, size = [], 0
        while part := answer.read(_CHUNK):
            size += len(part)
            if size > self._max_bytes:
                raise NotHttp(f"the answer has more than {self._max_bytes} bytes")
            parts.append(part)
        if promised is not None and size < promised:
            raise Refused(f"the connection broke after {size} of {promised} bytes")
        return b"".join(parts)


def _explained(error: Exception) -> Exception:
    if isinstance(error, (TimeoutError, socket.timeout)):  # one class since Python 3.10
        return TooLate()
    if isinstance(error, (OSError, http.client.IncompleteRead)):  # incl. RemoteDisconnected
        return Refused(str(error) or type(error).__name__)
    return NotHttp(f"not HTTP: {type(error).__name__}: {str(error)[:200]!r}")


class _Http(http.client.HTTPConnection):
    """The library's connection, on a socket that knows the deadline of the exchange: the library's
    limit holds only for each read.
    """

    deadline = math.inf

    def connect(self) -> None:
        error: OSError = OSError(f"no address for {self.host}")
        for family, kind, protocol, _, address in socket.getaddrinfo(
            self.host, self.port, type=socket.SOCK_STREAM
        ):
            opened = _Socket(family, kind, protocol)
            opened.of = self
            try:
                opened.settimeout(self.left())
                opened.connect(address)
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as failure:
                opened.close()
                error = failure
            else:
                self.sock = opened
                return
        raise error

    def is_stale(self) -> bool:
        """Return whether the server has closed the connection or sent unrequested data.

        Check first, since a request is sent only once.
        """
        if self.sock is None:
            return False
        try:
            self.sock.setblocking(False)
            self.sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True

    def left(self) -> float:
        """Return the seconds to the deadline. Raises TimeoutError."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class _Socket(socket.socket):
    of: _Http

    def recv_into(self, *args: Any) -> int:
        self.settimeout(self.of.left())
        return super().recv_into(*args)

    def sendall(self, *args: Any) -> None:
        self.settimeout(self.of.left())
        super().sendall(*args)  # one limit for everything
