"""``serve_rest``: every request over REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compat_matrix.checks.kind import Check

if TYPE_CHECKING:
    from compat_matrix.checks.served import ServedCell

CHECK = Check(
    "serve_rest",
    "the same over REST, in columns and rows; both transports answer the same",
    place=3,
    asks=True,
    like="values",
    served=True,
)


def check(cell: ServedCell) -> dict[str, Any]:
    """Send every request over REST; return details of a pass."""
    # They need packages that the other checks do not.
    from savedmodel_servers.checks import serve
    from savedmodel_servers.checks.wire import wire_of

    return serve.check_rest(wire_of(cell))
