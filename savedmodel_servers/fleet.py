"""Many models, few servers: models are staged below one folder and handed to a running server in
batches.

    with Fleet(drivers.of("standin"), work) as fleet:
        served = fleet.served(model, ahead=[(next_model, ("serve",)), ...])
        served.grpc.predict(served.ref, "", {...}, limit=30)

There is one server per set of tags, since a server loads only one set. A model that harms its
server affects only itself.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from .drivers.base import Driver, ServerIdentity
from .drivers.remote import RemoteDriver
from .served import LIMITS, SERVE, Connect, connect
from .served import Limits as Limits
from .served import Served as Served
from .station import ManagedStation, RemoteStation
from .verdicts import NotServed as NotServed
from .verdicts import NotStarted as NotStarted


class Fleet:
    """The servers of one driver.

    ``work``: a folder for staged models (removed at the end) and the evidence (kept).
    """

    def __init__(
        self, driver: Driver, work: Path, limits: Limits = LIMITS, connect: Connect = connect
    ) -> None:
        self._driver, self._work, self._limits, self._connect = (
            driver,
            work.absolute(),
            limits,
            connect,
        )
        self._stations: dict[tuple[str, ...], ManagedStation | RemoteStation] = {}
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

    def served(
        self,
        model: Path,
        tags: Iterable[str] = SERVE,
        ahead: Sequence[tuple[Path, Iterable[str]]] = (),
    ) -> Served:
        """Make a model available and return it.

        Args:
          model: a folder with a SavedModel.
          tags: the tags of the MetaGraph to serve.
          ahead: the models that will be requested next, in order; some of them are loaded in
            advance.

        Raises:
          NotServed: the model is not available, or killed its server now or earlier.
          NotStarted: there is no server, and no model is to blame.
          NotHere: what the driver needs is not on this machine.
          EngineTrouble: the machine failed, again and again.
        """
        key = tuple(sorted(set(tags)))
        if not key or any("," in tag or not tag for tag in key):
            how = "by commas, and takes none at all for `serve`"
            raise NotServed(
                "refused", f"a server cannot be given the tags {list(key)}: it separates them {how}"
            )
        if key not in self._stations:
            self._stations[key] = self._station(key)
        same = [path.absolute() for path, others in ahead if tuple(sorted(set(others))) == key]
        return self._stations[key].bring(model.absolute(), same)

    def _station(self, tags: tuple[str, ...]) -> ManagedStation | RemoteStation:
        if isinstance(self._driver, RemoteDriver):
            return RemoteStation(self._driver, self._work, self._limits, self._connect)
        place = self._work / f"server-{len(self._stations) + 1}"
        return ManagedStation(self._driver, place, tags, self._limits, self._connect)

    def report(self) -> dict[str, Any]:
        """Return the cost of the run: ``started`` servers, ``retried`` troubles of the machine,
        ``quarantined`` models with their reasons.
        """
        started, retried = 0, list(self._driver.retried)
        quarantined: dict[str, str] = {}
        for station in self._stations.values():
            one = station.report()
            started += one["started"]
            retried += one["retried"]
            quarantined.update(one["quarantined"])
        return {"started": started, "retried": retried, "quarantined": quarantined}

    def close(self) -> None:
        """Stop all servers and collect their evidence.

        Nothing of them is left, even after an interruption.
        """
        try:
            for station in self._stations.values():
                station.close()
        finally:
            self._driver.close()
            for place in self._work.glob("server-*/models"):
                with suppress(OSError):
                    shutil.rmtree(place)
