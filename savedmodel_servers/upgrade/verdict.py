"""Decide which order of an upgrade works, from the pairs and the answers lost on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from savedmodel_common.exit_codes import ExitCode
from savedmodel_servers.upgrade.asking import Pair
from savedmodel_servers.upgrade.sides import (
    BETWEEN,
    END,
    NEW,
    ORDERS,
    START,
)

EITHER, NEITHER, UNDECIDED = "either", "neither", "not decided"


@dataclass
class Way:
    """One order. ``works`` None: unknown; ``reason`` says why it is unknown or does not work."""

    order: str
    works: bool | None = None
    reason: str = ""
    trouble: bool = False  # caused by the machine or the harness
    steps: list[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "order": self.order,
            "works": self.works,
            "reason": self.reason,
            "steps": self.steps,
        }

    def went(self, steps: list[dict[str, Any]], failed: str) -> None:
        """Take over the result under load."""
        self.works, self.reason, self.steps = not failed, failed, steps


def from_pairs(order: str, pairs: Sequence[Pair]) -> Way:
    """Return the verdict of the pairs on an order.

    If all of them work, nothing is decided and there is no reason.

    A new export without an answer on record decides nothing here: the clients' requests are asked
    of it under load.
    """
    on_way: list[Pair] = []
    missing = []
    for place in (START, BETWEEN[order], END):
        there = [pair for pair in pairs if pair.place == place]
        on_way += there
        if not there:
            missing.append(place)
    for pair in on_way:
        if pair.failed:
            return Way(order, False, f"{pair.model}: {pair.place} does not work ({pair.failed})")
    for pair in on_way:
        if pair.unknown and not awaits_clients(pair):
            return not_asked(order, pair)
    return Way(order, None, f"{missing[0]} was not asked" if missing else "")


def awaits_clients(pair: Pair) -> bool:
    """Return whether only the clients' requests can tell what a pair does."""
    return pair.silent and pair.place.export == NEW


def not_asked(order: str, pair: Pair) -> Way:
    """Return the verdict on an order that has a pair whose result is unknown."""
    return Way(
        order, None, f"{pair.model}: {pair.place} could not be asked ({pair.unknown})", pair.trouble
    )


def line(ways: Sequence[Way]) -> str:
    """Return the verdict in one line: an order, "either", "neither, because ...", or "not decided,
    because ...".

    What failed is named beside what is not known.
    """
    unknown = [way for way in ways if way.works is None]
    if unknown:
        return f"{UNDECIDED}, because {_one_line(_reasons([way for way in ways if not way.works]))}"
    working = [way.order for way in ways if way.works]
    if not working:
        return f"{NEITHER}, because {_one_line(_reasons(ways))}"
    return EITHER if len(working) == len(ORDERS) else working[0]


def exit_code(ways: Sequence[Way], wanted: str | None = None) -> ExitCode:
    """Return the exit code.

    ``wanted``: the order that must work; without it, any order suffices.
    """
    asked = [way for way in ways if wanted in (None, way.order)]
    if wanted is None and any(way.works is None for way in ways):
        return ExitCode.HARNESS_ERROR if any(way.trouble for way in ways) else ExitCode.INCOMPLETE
    if any(way.works for way in asked):
        return ExitCode.AS_EXPECTED
    if all(way.works is False for way in asked):
        return ExitCode.UNEXPECTED
    return ExitCode.HARNESS_ERROR if any(way.trouble for way in asked) else ExitCode.INCOMPLETE


def _reasons(ways: Sequence[Way]) -> str:
    if len({way.reason for way in ways}) == 1:
        return ways[0].reason
    mixed = len({way.works for way in ways}) > 1
    return "; ".join(
        f"{way.order}{' fails' if mixed and way.works is False else ''}: {way.reason}"
        for way in ways
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())
