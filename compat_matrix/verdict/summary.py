"""The verdict: the plan joined with results and ledger.

Pure functions.

Exit code, when several apply (the first of this list):

* 64 usage: nothing selected, wrong options (the command itself, there is no summary then),
* 4 a SETUP_ERROR or ENV_ERROR: the harness or the machine failed, so nothing else can be trusted,
* 1 a cell failed unexpectedly, or with another error than the recorded one, or did not fail as the
  op history predicts, or consumers that are one loader disagree, or a cell is UNSTABLE: its second
  try, in a fresh process, ended differently,
* 2 the ledger is stale: a listed cell passes, an entry is dead, too wide, overlapping or expired,
* 3 a planned cell has no result, the run did not come to its end, none of the questions about
  artifacts was answered, a name that the command line gave was not asked (`verdict.named`), or
  (with ``require``) a cell was NOT_RUN; with ``require`` "serving" only cells that a server must
  answer count,
* 0 as expected.

Cells left out on purpose (deselected, no TensorFlow in the runtime) do not make a run incomplete
unless ``require`` is set, as long as something was compared.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from packaging.version import Version

from compat_matrix.cells import tries
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import SERVING, Plan
from compat_matrix.cells.results import DESELECTED, Result, of_plan
from compat_matrix.verdict import agreement, named, prediction, referee
from compat_matrix.verdict.ledger import Ledger, LedgerReport, judge
from savedmodel_common.exit_codes import ExitCode

SCHEMA = 1
NO_RESULT = "no result: the run did not come to its end"
DISCREPANCIES = ("unexpected_fail", "wrong_error", "wrong_prediction", "unexpected_pass")


def summarise(
    plan: Plan,
    results: Iterable[Result],
    ledger: Ledger,
    today: datetime.date,
    run: Mapping[str, Any],
    ended: bool = True,
) -> dict[str, Any]:
    """Return ``summary.json`` as a dict.

    ``run`` is the content of ``run.json``; ``ended``: the run sealed its results.
    """
    by_cell = of_plan(results, plan)
    tool = Version(run["tool_version"]) if run.get("tool_version") else None
    report = judge(ledger, plan, by_cell, today, tool)
    seen = {cell_id for cell_id, result in by_cell.items() if result.outcome.observable}
    compared = sum(cell.id in seen for cell in plan if cell.sides)
    answered = sum(cell.id in seen for cell in plan if not (cell.is_production or cell.sides))
    not_run = _not_run(plan, by_cell)
    owed = [plan.by_id[item["cell"]] for item in not_run if item["reason"] != DESELECTED]
    not_asked = named.not_asked(run.get("named", {}), plan, by_cell)
    outcomes = Counter(
        by_cell[cell.id].outcome if cell.id in by_cell else Outcome.NOT_RUN for cell in plan
    )
    unexpected = _unexpected(report)
    not_applicable = outcomes[Outcome.NOT_APPLICABLE]
    servers = any(cell.is_served for cell in owed)
    observed = len(plan.cells) - not_applicable - outcomes[Outcome.NOT_RUN]
    unanswered = not answered and not all(cell.is_production for cell in owed)
    incomplete = not ended or not observed or unanswered or bool(not_asked)
    return {
        "schema": SCHEMA,
        "plan_id": plan.plan_id,
        "cells": len(plan.cells),
        "not_applicable": not_applicable,
        "planned": len(plan.cells) - not_applicable,
        "observed": observed,
        "answered": answered,
        "ended": ended,
        "partial": any(item["reason"] == DESELECTED for item in not_run),
        "by_outcome": {str(outcome): outcomes[outcome] for outcome in Outcome},
        "unexpected": unexpected,
        "second_tries": _second_tries(by_cell.values()),
        "not_carried": sum(
            len(result.details.get("not_carried", ())) for result in by_cell.values()
        ),
        "compared": compared,
        "disagreements": agreement.disagreements(
            plan, by_cell, {fact["cell"] for fact in unexpected}
        ),
        "divisions": referee.divisions(plan, by_cell),
        "not_run": not_run,
        "not_asked": not_asked,
        "left_out": named.checks_left_out(plan),
        "predictions": prediction.counts(
            (by_cell[cell.id], bool(ledger.entry_for(cell))) for cell in plan if cell.id in by_cell
        ),
        "ledger": vars(report),
        "versions": _versions(plan, by_cell),
        "run": dict(run),
        "exit_code": int(
            _exit_code(report, outcomes, not_run, incomplete, servers, run.get("require", False))
        ),
    }


def _unexpected(report: LedgerReport) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for kind in DISCREPANCIES:
        found += [{"kind": kind, **fact} for fact in getattr(report, kind)]
    return found


def _second_tries(results: Iterable[Result]) -> dict[str, int]:
    """Count the unexpected cells that were asked again, those of them that ended differently, and
    those that were not asked again."""
    noted = [result for result in results if tries.note_of(result)]
    asked = sum(map(tries.was_asked, noted))
    unstable = sum(result.outcome is Outcome.UNSTABLE for result in noted)
    return {"asked": asked, "unstable": unstable, "not_asked": len(noted) - asked}


def _not_run(plan: Plan, by_cell: Mapping[str, Result]) -> list[dict[str, Any]]:
    """Yield each cell that was not executed, with the reason and whether it was left out on
    purpose.
    """
    out = []
    for cell in plan:
        result = by_cell.get(cell.id)
        if result is None or result.outcome is Outcome.NOT_RUN:
            reason = result.message if result else NO_RESULT
            out.append(
                {
                    "cell": cell.id,
                    "reason": reason,
                    "on_purpose": bool(cell.decided) or reason == DESELECTED,
                }
            )
    return out


def _versions(plan: Plan, by_cell: Mapping[str, Result]) -> dict[str, dict[str, list[str]]]:
    """Return the versions that workers reported: consumer (or producer) -> component ->
    versions.
    """
    seen: dict[str, dict[str, set[str]]] = {}
    for cell in plan:
        name = cell.producer if cell.is_production else cell.consumer
        for component, version in (by_cell[cell.id].versions if cell.id in by_cell else {}).items():
            seen.setdefault(name, {}).setdefault(component, set()).add(str(version))
    versions: dict[str, dict[str, list[str]]] = {}
    for name, parts in sorted(seen.items()):
        versions[name] = {key: sorted(values) for key, values in sorted(parts.items())}
    return versions


def _exit_code(
    report: LedgerReport,
    outcomes: Mapping[Outcome, int],
    not_run: list[dict[str, Any]],
    incomplete: bool,
    servers: bool,
    require: bool | str,
) -> ExitCode:
    if any(outcome.harness_failure and count for outcome, count in outcomes.items()):
        return ExitCode.HARNESS_ERROR
    if report.unexpected_fail or report.wrong_error or report.wrong_prediction:
        return ExitCode.UNEXPECTED
    if report.stale:
        return ExitCode.STALE_EXPECTATION
    if incomplete or any(require is True or not item["on_purpose"] for item in not_run):
        return ExitCode.INCOMPLETE
    if servers and require == SERVING:
        return ExitCode.INCOMPLETE
    return ExitCode.AS_EXPECTED
