"""The order of the cells of a plan in another past."""

from __future__ import annotations

import random
from dataclasses import replace

from compat_matrix.cells.plan import Cell, Plan

PRODUCTION, QUESTION, COMPARISON = range(3)


def shuffled(plan: Plan, seed: int) -> Plan:
    """Return the plan with its artifacts, and the cells of each artifact, in an order drawn from a
    seed.

    The production of an artifact stays before its questions, and these before the comparisons of
    two cells. If many runtimes answer, all productions stay before the questions, and the runtimes
    keep their order.
    """
    draw = random.Random(seed)
    artifacts = {cell.artifact_id for cell in plan}
    places = {artifact: draw.random() for artifact in sorted(artifacts)}
    own = {cell_id: draw.random() for cell_id in sorted(plan.by_id)}
    runtimes = {name: index for index, name in enumerate(plan.runtimes if plan.in_phases else ())}

    def place(cell: Cell) -> tuple[object, ...]:
        asking = plan.in_phases and not cell.is_production
        return (
            asking,
            runtimes.get(cell.runtime, 0),
            places[cell.artifact_id],
            cell.artifact_id,
            _kind(cell),
            own[cell.id],
        )

    return replace(plan, cells=tuple(sorted(plan, key=place)))


def _kind(cell: Cell) -> int:
    if cell.is_production:
        return PRODUCTION
    return COMPARISON if cell.sides else QUESTION
