"""The coverage of a gate: what it left out by default, and names of the command line that it did
not ask. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compat_matrix.cells.plan import PRODUCE
from compat_matrix.checks import CHECKS, SERVE_CHECKS
from compat_matrix.gate.pairs import Pair, Run
from compat_matrix.verdict import named

AXES = ("check", "case", "producer", "consumer")


@dataclass(frozen=True)
class Coverage:
    """Attributes:
    left_out: axis -> what no pair is about, without the axes that the command line narrowed. Checks
    are always listed.
    named: the names of the command line that no observation is about (`verdict.named`).
    """

    left_out: dict[str, list[str]]
    named: list[dict[str, str]]


def coverage(pairs: Sequence[Pair], facts: Iterable[Mapping[str, Any]]) -> Coverage:
    """Return what the ``pairs`` do not cover; ``facts`` are those about the pairs that were
    observed on either side.
    """
    facts = list(facts)
    runs: dict[str, Run] = {}
    for pair in pairs:
        for side in pair.sides:
            runs[str(side.run.out)] = side.run
    asked: dict[str, set[str]] = {axis: set() for axis in AXES}
    for fact in facts:
        for axis in AXES:
            asked[axis].add(str(fact[axis]))
    left_out: dict[str, set[str]] = {axis: set() for axis in AXES}
    by_name: list[dict[str, str]] = []
    for run in runs.values():
        for axis, names in named.left_out(run.plan, asked, run.named).items():
            left_out[axis].update(names)
        by_name += [
            one for one in named.not_asked(run.named, run.plan, run.results) if one not in by_name
        ]
    left_out["check"] = _known_checks(runs.values()) - asked["check"]
    order = [*CHECKS, *SERVE_CHECKS]
    return Coverage(
        {axis: _sorted(names, order) for axis, names in left_out.items() if names}, by_name
    )


def _known_checks(runs: Iterable[Run]) -> set[str]:
    """Return the checks that could be made of what the runs ask: workers, servers, or both."""
    known: set[str] = set()
    for run in runs:
        for cell in run.plan:
            if not cell.is_production:
                known.update(SERVE_CHECKS if cell.is_served else CHECKS)
    return known - {PRODUCE}


def _sorted(names: Collection[str], order: Sequence[str]) -> list[str]:
    return sorted(
        names, key=lambda name: (order.index(name) if name in order else len(order), name)
    )
