"""``serve_grpc``: every request over gRPC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compat_matrix.checks.kind import Check

if TYPE_CHECKING:
    from compat_matrix.checks.served import ServedCell

CHECK = Check(
    "serve_grpc",
    "Predict, Classify and Regress over gRPC answer as recorded",
    place=2,
    asks=True,
    like="values",
    served=True,
)


def check(cell: ServedCell) -> dict[str, Any]:
    """Send every request over gRPC; return details of a pass."""
    # They need packages that the other checks do not.
    from savedmodel_servers.checks import serve
    from savedmodel_servers.checks.wire import wire_of

    return serve.check_grpc(wire_of(cell))
