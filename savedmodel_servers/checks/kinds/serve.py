"""``serve``: every MetaGraph becomes AVAILABLE, and its metadata are right, over both
transports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compat_matrix.checks.kind import Check

if TYPE_CHECKING:
    from savedmodel_servers.checks.wire import Wire

CHECK = Check(
    "serve",
    "the server makes it AVAILABLE; the metadata it shows are the SignatureDefs",
    place=1,
    like="load",
    served=True,
)


def check(wire: Wire) -> dict[str, Any]:
    """Check over both transports that every MetaGraph becomes AVAILABLE with the right metadata;
    return details of a pass.
    """
    from savedmodel_servers.checks import serve  # needs packages that the other checks do not

    return serve.check_serve(wire)
