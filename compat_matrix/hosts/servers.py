"""Model servers, as far as the harness knows them: it starts them through a door of its own.

Servers need packages that the harness does not (gRPC, an engine for containers), and their clients
are a package above this one, `savedmodel_servers`. It is found by an entry point of the group
`savedmodel_compat.servers`, and does what :class:`Starter` says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from compat_matrix.runtimes.runtime import Runtime
from savedmodel_common import entry_points

STARTER = "starter"  # the name of the entry point


class Servers(Protocol):
    """The running servers of one runtime; the first starts when a model is requested."""

    def versions(self) -> dict[str, str]:
        """Return what the servers say of themselves, for a result: kind, TensorFlow, image."""

    def close(self) -> None:
        """Stop all servers and collect their logs."""


class Starter(Protocol):
    """Starts model servers, and describes them as runtimes."""

    def runtime(self, spec: str, build: Callable[[], None] | None = None) -> Runtime:
        """Return the server ``spec`` as a runtime of a plan, which is not ready where it is
        missing.

        ``build`` makes a missing image of the stand-in. Raises ValueError for an invalid spec.
        """

    def start(self, spec: str, work: Path) -> Servers:
        """Return the servers of ``spec``; logs and staged models lie below ``work``."""

    def build_standin_image(self, say: Callable[[str], Any]) -> None:
        """Make the image of the stand-in if there is an engine and no image yet, and ``say`` its
        id.

        Without an engine nothing is made: the plan tells what is missing.
        """


def starter() -> Starter:
    """Return what starts model servers."""
    made: Starter = entry_points.own(entry_points.SERVERS)[STARTER].load()
    return made


def runtimes_of(specs: Sequence[str], build: Callable[[], None] | None = None) -> list[Runtime]:
    """Return servers as runtimes: see :meth:`Starter.runtime`."""
    if not specs:
        return []
    made = starter()
    return [made.runtime(spec, build) for spec in specs]
