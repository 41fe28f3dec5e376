"""The door of this package to the harness: servers as runtimes of a plan, and as running servers.

`compat_matrix.hosts.servers` describes it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from compat_matrix.runtimes.runtime import Runtime
from savedmodel_servers import drivers, servers
from savedmodel_servers.drivers import engine
from savedmodel_servers.drivers.base import NotHere, ServerIdentity
from savedmodel_servers.fleet import Fleet
from savedmodel_standin import image


class FleetOfRuntime:
    """The servers of one runtime."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    def versions(self) -> dict[str, str]:
        """Return what the servers say of themselves. Raises NotHere."""
        return identified(self.fleet.identity)

    def close(self) -> None:
        """Stop all servers and collect their logs."""
        self.fleet.close()


class Starter:
    """Starts model servers, and describes them as runtimes."""

    def runtime(self, spec: str, build: Callable[[], None] | None = None) -> Runtime:
        """Return the server ``spec`` as a runtime. Raises ValueError for an invalid spec."""
        return servers.server_runtime(spec, build)

    def start(self, spec: str, work: Path) -> FleetOfRuntime:
        """Return the servers of ``spec``. Raises ValueError for an invalid spec."""
        return FleetOfRuntime(Fleet(drivers.of(spec), work).__enter__())

    def build_standin_image(self, say: Callable[[str], Any]) -> None:
        """Make the image of the stand-in, and ``say`` its id; nothing without an engine."""
        try:
            client = engine.connect()
        except NotHere:
            return
        try:
            say(image.build(client))
        finally:
            client.close()


STARTER = Starter()


def identified(server: ServerIdentity) -> dict[str, str]:
    """Return the versions that a server reports, for a result."""
    known = {
        "kind": server.kind,
        "tensorflow": server.version,
        "image": server.image,
        "digest": server.digest,
    }
    known |= {name: value for name, value in server.details.items() if isinstance(value, str)}
    return {name: value for name, value in known.items() if value}
