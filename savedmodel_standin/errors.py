"""The only kind of error of requests and loads: a code of ``tensorflow.error.Code`` and a text."""

from __future__ import annotations

from compat_matrix.workers.c_library import CODES

NUMBERS = {"OK": 0, **{name.removeprefix("TF_"): number for number, name in CODES.items()}}
HTTP = {
    "OK": 200, "CANCELLED": 499, "INVALID_ARGUMENT": 400, "DEADLINE_EXCEEDED": 504,
    "NOT_FOUND": 404, "ALREADY_EXISTS": 409, "PERMISSION_DENIED": 403, "RESOURCE_EXHAUSTED": 429,
    "FAILED_PRECONDITION": 400, "ABORTED": 409, "OUT_OF_RANGE": 400, "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503, "UNAUTHENTICATED": 401,
}  # fmt: skip
INTERNAL_SERVER_ERROR = 500  # UNKNOWN, INTERNAL, DATA_LOSS
GRPC_LIMIT = 1024  # characters of a message that go over gRPC


class ServingError(Exception):
    """``code`` is the name of a code; ``str()`` is how a status prints in logs and inside other
    messages.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code if code in NUMBERS else "UNKNOWN"
        self.message = message

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    @property
    def number(self) -> int:
        return NUMBERS[self.code]

    @property
    def http(self) -> int:
        return HTTP.get(self.code, INTERNAL_SERVER_ERROR)

    @property
    def grpc_message(self) -> str:
        return (
            self.message
            if len(self.message) <= GRPC_LIMIT
            else self.message[:GRPC_LIMIT] + "...TRUNCATED"
        )


def invalid(message: str) -> ServingError:
    """Return an INVALID_ARGUMENT error, the usual kind."""
    return ServingError("INVALID_ARGUMENT", message)
