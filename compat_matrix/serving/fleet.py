"""Many models, few servers: models are staged below one folder and handed to a running server in batches.

    with Fleet(drivers.of("standin"), work) as fleet:
        served = fleet.served(model, ahead=[(next_model, ("serve",)), ...])
        served.grpc.predict(served.ref, "", {...}, limit=30)

There is one server per set of tags, since a server loads only one set. A model that harms its server affects only itself.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from .client import Client, ModelRef, VersionStatus
from .drivers.base import Driver, Endpoint, ServerIdentity
from .verdicts import NotServed as NotServed
from .verdicts import NotStarted as NotStarted

SERVE = ("serve",)


@dataclass(frozen=True)
class Limits:
    """Seconds, and how many models a server holds at a time.

    ``up``: from the start of the process to its first answer. ``available``: without any model of a batch making progress.
    """

    up: float = 60.0
    available: float = 300.0
    batch: int = 16
    batch_bytes: int = 1 << 30


@dataclass(frozen=True)
class Served:
    """A model that a server has made available. ``rest`` None: the server has no REST API.

    A call of either client raises NotServed when the server ended in it. After that, or after ``served`` of another model, ask
    the fleet again.
    """

    ref: ModelRef
    grpc: Client
    rest: Client | None
    statuses: Sequence[VersionStatus]


class Station(Protocol):
    """The server of one set of tags."""

    def bring(self, model: Path, ahead: Sequence[Path]) -> Served: ...

    def close(self) -> None: ...

    def report(self) -> dict[str, Any]: ...


Connect = Callable[[Endpoint], "tuple[Client, Client | None]"]


def connect(endpoint: Endpoint) -> tuple[Client, Client | None]:
    """Return the clients of both transports."""
    from .grpc_client import GrpcClient
    from .rest_client import RestClient

    rest = None if endpoint.rest_port is None else RestClient(endpoint.host, endpoint.rest_port)
    return GrpcClient(endpoint.host, endpoint.grpc_port), rest


class Fleet:
    """The servers of one driver. ``work``: a folder for staged models (removed at the end) and the evidence (kept)."""

    def __init__(self, driver: Driver, work: Path, limits: Limits = Limits(), connect: Connect = connect) -> None:
        self._driver, self._work, self._limits, self._connect = driver, work.absolute(), limits, connect
        self._stations: dict[tuple[str, ...], Station] = {}
        self._closed: dict[str, Any] | None = None

    def __enter__(self) -> Fleet:
        self._work.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def identity(self) -> ServerIdentity:
        """The identity of the servers. Raises NotHere."""
        return self._driver.identify()

    def served(self, model: Path, tags: Iterable[str] = SERVE, ahead: Sequence[tuple[Path, Iterable[str]]] = ()) -> Served:
        """Make a model available and return it.

        Args:
          model: a folder with a SavedModel.
          tags: the tags of the MetaGraph to serve.
          ahead: the models that will be requested next, in order; some of them are loaded in advance.

        Raises:
          NotServed: the model is not available, or killed its server now or earlier.
          NotStarted: there is no server, and no model is to blame.
          NotHere: what the driver needs is not on this machine.
          EngineTrouble: the machine failed, again and again.
        """
        key = tuple(sorted(set(tags)))
        if not key or any("," in tag or not tag for tag in key):
            how = "by commas, and takes none at all for `serve`"
            raise NotServed("refused", f"a server cannot be told the tags {list(key)}: it separates them {how}")
        if key not in self._stations:
            self._stations[key] = self._station(key)
        same = [path.absolute() for path, others in ahead if tuple(sorted(set(others))) == key]
        return self._stations[key].bring(model.absolute(), same)

    def _station(self, tags: tuple[str, ...]) -> Station:
        from .drivers.remote import RemoteDriver
        from .station import ManagedStation, RemoteStation

        if isinstance(self._driver, RemoteDriver):
            return RemoteStation(self._driver, self._work, self._limits, self._connect)
        place = self._work / f"server-{len(self._stations) + 1}"
        return ManagedStation(self._driver, place, tags, self._limits, self._connect)

    def report(self) -> dict[str, Any]:
        """Return the cost of the run: ``started`` servers, ``retried`` troubles of the machine, ``quarantined`` models with their
        reasons.
        """
        reports = [station.report() for station in self._stations.values()]
        return {
            "started": sum(one["started"] for one in reports),
            "retried": [*self._driver.retried, *(text for one in reports for text in one["retried"])],
            "quarantined": {name: why for one in reports for name, why in one["quarantined"].items()},
        }

    def close(self) -> None:
        """Stop all servers and collect their evidence. Nothing of them is left, even after an interruption."""
        try:
            for station in self._stations.values():
                station.close()
        finally:
            self._driver.close()
            for place in self._work.glob("server-*/models"):
                with suppress(OSError):
                    shutil.rmtree(place)
