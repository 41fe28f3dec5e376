"""``serve``: every MetaGraph becomes AVAILABLE, and its metadata are right, over both
transports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compat_matrix.checks.kind import Check

if TYPE_CHECKING:
    from compat_matrix.checks.served import ServedCell

CHECK = Check(
    "serve",
    "the server makes it AVAILABLE; the metadata it shows are the SignatureDefs",
    place=1,
    like="load",
    served=True,
)


def check(cell: ServedCell) -> dict[str, Any]:
    """Check over both transports that every MetaGraph becomes AVAILABLE with the right metadata;
    return details of a pass.
    """
    # They need packages that the other checks do not.
    from savedmodel_servers.checks import serve
    from savedmodel_servers.checks.wire import wire_of

    return serve.check_serve(wire_of(cell))
