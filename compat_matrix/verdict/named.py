"""The names that a command line gave, and that nobody was asked about, such as a consumer whose
compiler is missing.

To leave out by default is the choice of this program, and the report lists it. A name is the choice
of the user: a run that did not ask it is incomplete.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import NO_CONSUMER, Cell
from compat_matrix.cells.results import Result

Named = Mapping[str, Sequence[str]]  # an axis of AXES -> the names or patterns that were given
AXES: Mapping[str, Callable[[Cell], str]] = {
    "case": lambda cell: cell.case,
    "producer": lambda cell: cell.producer,
    "consumer": lambda cell: cell.consumer,
    "check": lambda cell: cell.check,
    "runtime": lambda cell: cell.runtime,
    "cell": lambda cell: cell.id,
}
NOBODY = "no cell of the plan is about it"


def not_asked(
    named: Named, cells: Iterable[Cell], results: Mapping[str, Result]
) -> list[dict[str, str]]:
    """Return the names that no observation is about, each with its axis and the reason.

    A production that was refused answers for its artifact: nothing more can be asked of it.

    Args:
      named: the names; other axes than those of :data:`AXES` are ignored.
      cells: of the plan, or of that part of it which counts.
      results: cell id -> its result; a cell without one was not asked.
    """
    cells = list(cells)
    refused = {
        cell.artifact_id for cell in cells if cell.is_production and _failed(results.get(cell.id))
    }
    asked = [
        cell for cell in cells if _observed(results.get(cell.id)) or cell.artifact_id in refused
    ]
    found = []
    for axis, patterns in named.items():
        if axis in AXES:
            known = {AXES[axis](cell) for cell in asked}
            # A run of artifacts that exist has no production to ask.
            given = [name for name in dict.fromkeys(patterns) if name != NO_CONSUMER]
            silent = [name for name in given if not fnmatch.filter(known, name)]
            found += [
                {"axis": axis, "name": name, "reason": _reason(axis, name, cells, results)}
                for name in silent
            ]
    return found


def words(found: Sequence[Mapping[str, str]]) -> str:
    """Return the names as text: ``consumer cpp (no compiler)``."""
    return "; ".join(f"{one['axis']} {one['name']} ({one['reason']})" for one in found)


def left_out(
    cells: Iterable[Cell], asked: Mapping[str, Collection[str]], narrowed: Named
) -> dict[str, list[str]]:
    """Return, for each axis that was not narrowed, what the plan has and nobody was asked about.

    Args:
      asked: axis -> the names with an observation.
      narrowed: the names that were given: on their axes everything else was left out by the user.
    """
    cells = [cell for cell in cells if not cell.sides]
    found: dict[str, list[str]] = {}
    for axis in asked:
        if axis != "check" and not narrowed.get(axis):
            known = {
                AXES[axis](cell) for cell in cells if axis != "consumer" or not cell.is_production
            }
            found[axis] = sorted(known - set(asked[axis]))
    return found


def checks_left_out(cells: Iterable[Cell]) -> dict[str, list[str]]:
    """Return runtime -> the checks that the plan asks of another runtime and not of this one.

    A grid, and a matrix of several TensorFlows, ask one check of most artifacts
    (`plan.planning.Axes`).
    """
    asked: dict[tuple[bool, str], set[str]] = {}
    every: dict[bool, set[str]] = {}  # the checks of servers, and those of the others
    for cell in cells:
        if not cell.is_production:
            asked.setdefault((cell.is_served, cell.runtime), set()).add(cell.check)
            every.setdefault(cell.is_served, set()).add(cell.check)
    found = {}
    for (served, runtime), checks in asked.items():
        missing = sorted(every[served] - checks)
        if missing:
            found[runtime] = missing
    return found


def _observed(result: Result | None) -> bool:
    return result is not None and result.outcome.observable


def _failed(result: Result | None) -> bool:
    return result is not None and result.outcome.observable and result.outcome is not Outcome.PASS


def _reason(axis: str, pattern: str, cells: Iterable[Cell], results: Mapping[str, Result]) -> str:
    for cell in cells:
        if fnmatch.fnmatchcase(AXES[axis](cell), pattern):
            result = results.get(cell.id)
            reason = cell.decided.reason if cell.decided else (result.message if result else "")
            if reason:
                return reason
    return NOBODY
