"""The cells of exports: those of the matrix, those that run nothing, and the final comparison of all answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from compat_matrix.cells.consumers import CPP, Consumer
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell, Decision, Plan
from compat_matrix.checks import CHECKS
from compat_matrix.exports.options import ALL, ANSWERING, FORMAT, STILL, Options
from compat_matrix.plan.planning import Axes, cell_of, expand, fixture_artifact
from compat_matrix.requests.given import Prepared
from compat_matrix.runtimes.native import build as native
from compat_matrix.runtimes.runtime import LOCAL, Runtime
from compat_matrix.verdict import Ledger

NO_FINGERPRINT = "the export has no fingerprint.pb"


def plan_of(
    prepared: Sequence[Prepared],
    consumers: Mapping[str, Consumer],
    runtimes: Sequence[Runtime],
    options: Options,
    ledger: Ledger,
    tool: str,
) -> Plan:
    """Return all cells for ``prepared``; ``tool``: the version of this project. Raises PlanError for names that do not fit into a
    cell id."""
    limit = None if options.limit == Options.limit else options.limit
    artifacts = [replace(fixture_artifact(item.directory), timeout=limit) for item in prepared]
    examined = tuple(r if r.server or CPP not in consumers else native.examined(r, CPP) for r in runtimes)
    asked = tuple(check for check in CHECKS if options.makes(check))
    plan = expand(artifacts, consumers, {name: CHECKS[name] for name in asked}, Axes(examined, checks=asked), ledger)
    cells: list[Cell] = []
    for item, artifact in zip(prepared, artifacts):
        cells += [cell_of(artifact, FORMAT, tool, check, LOCAL, _decided(check, item)) for check in STILL if options.makes(check)]
    cells += [cell for cell in plan if options.makes(cell.check)]
    compares = any(options.makes(check) for check in ANSWERING)
    for item, artifact in zip(prepared, artifacts):
        if options.makes("asked"):
            cells.append(cell_of(artifact, ALL, tool, "asked", LOCAL, _left_out(item)))
        if options.makes("compared") or compares:  # never left out: a check that compared nothing must not pass
            cells.append(cell_of(artifact, ALL, tool, "compared", LOCAL, None))
    return Plan(tuple(cells), narrowed=True)


def _decided(check: str, item: Prepared) -> Decision | None:
    if check == "fingerprint" and not (item.directory / "model" / "fingerprint.pb").is_file():
        return Decision(Outcome.NOT_APPLICABLE, NO_FINGERPRINT)
    return None


def _left_out(item: Prepared) -> Decision | None:
    """Return NOT_RUN if signatures cannot be asked. This is not a failure of the export unless ``require`` is set."""
    return Decision(Outcome.NOT_RUN, "; ".join(item.left_out)) if item.left_out else None
