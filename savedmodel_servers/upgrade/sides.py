"""The two sides of an upgrade, the two orders, and the steps of each."""

from __future__ import annotations

from typing import NamedTuple

OLD, NEW = "old", "new"
SERVERS_FIRST, EXPORTERS_FIRST = "upgrade servers first", "exporters first"
SERVER, EXPORT = "server", "export"


class Place(NamedTuple):
    """The state of an upgrade: which server answers, with which export."""

    server: str
    export: str

    def __str__(self) -> str:
        return f"the {self.server} server with the {self.export} export"


START, END = Place(OLD, OLD), Place(NEW, NEW)
BETWEEN = {SERVERS_FIRST: Place(NEW, OLD), EXPORTERS_FIRST: Place(OLD, NEW)}
ORDERS = tuple(BETWEEN)
BY_FIRST = {"servers": SERVERS_FIRST, "exporters": EXPORTERS_FIRST}  # what goes first -> the order


def places(order: str) -> tuple[Place, ...]:
    """Return the places that clients see on the way forward and back."""
    return START, BETWEEN[order], END, BETWEEN[order], START


def step(before: Place, after: Place) -> str:
    """Describe the step between two places that differ in one thing."""
    if before.server != after.server:
        return f"switch to the {after.server} server"
    return f"switch to the {after.export} export"
