"""A model that a server has made available, the limits of its server, and the clients that ask
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .client import Client, ModelRef, VersionStatus
from .drivers.base import Endpoint

if TYPE_CHECKING:
    from reference_impl.format.schema import SignatureDef

SERVE = ("serve",)


@dataclass(frozen=True)
class Limits:
    """Seconds, and how many models a server holds at a time.

    ``up``: from the start of the process to its first answer. ``available``: without any model of a
    batch making progress.
    """

    up: float = 60.0
    available: float = 300.0
    batch: int = 16
    batch_bytes: int = 1 << 30


LIMITS = Limits()


@dataclass(frozen=True)
class Served:
    """A model that a server has made available.

    ``rest`` None: the server has no REST API.

    A call of either client raises NotServed when the server ended in it. After that, or after
    ``served`` of another model, ask the fleet again.
    """

    ref: ModelRef
    grpc: Client
    rest: Client | None
    statuses: Sequence[VersionStatus]


Connect = Callable[[Endpoint], "tuple[Client, Client | None]"]


def connect(
    endpoint: Endpoint, known: Mapping[str, Mapping[str, SignatureDef]] | None = None
) -> tuple[Client, Client | None]:
    """Return the clients of both transports.

    Args:
      endpoint: the ports of the server.
      known: the SignatureDefs of models, by name and key, that a client goes by whatever the server
        says of them.
    """
    from .grpc_client import GrpcClient
    from .rest_client import RestClient

    rest = (
        None
        if endpoint.rest_port is None
        else RestClient(endpoint.host, endpoint.rest_port, known=known)
    )
    return GrpcClient(endpoint.host, endpoint.grpc_port), rest
