"""Run the selected cells in the plain past and in others, and compare the results
(`compat_matrix.verdict.pasts`).
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from compat_matrix.cells.plan import LEDGER_FILE, PLAN_FILE, RESULTS_FILE, Plan
from compat_matrix.cells.results import Result, of_plan, read_results
from compat_matrix.engine import running
from compat_matrix.engine.running import Order
from compat_matrix.engine.sessions import RunError
from compat_matrix.plan.shuffled import shuffled
from compat_matrix.report import pasts as report
from compat_matrix.runtimes.pasts import CELL, PLAIN, Past
from compat_matrix.verdict import Ledger
from compat_matrix.verdict.pasts import Difference, compared, differences, exit_code
from savedmodel_common.exit_codes import leading
from savedmodel_common.sole_writer import LOCK_FILE, sole_writer
from savedmodel_common.writing import write_text

PASTS_FILE = "pasts.json"
SCHEMA = 1


@dataclass(frozen=True)
class Lived:
    """A run in one past: its folder, its summary, and its results by cell."""

    past: Past
    folder: str
    summary: dict[str, Any]
    results: dict[str, Result]

    @property
    def exit_code(self) -> int:
        return int(self.summary["exit_code"])


def in_past(order: Order, seed: int) -> Order:
    """Return an order for a run in the past of a seed. Past 0 keeps the order of the cells."""
    plan = order.plan if seed == PLAIN else shuffled(order.plan, seed)
    return replace(
        order, plan=plan, past=Past.of_seed(seed), options=(*order.options, "--past", str(seed))
    )


def carry_out(
    out: Path, order: Order, count: int, console: Console | None = None
) -> dict[str, Any]:
    """Run the order in the pasts 0 to ``count``, each in a folder of its own; write and return
    ``pasts.json``.

    ``console``: where the report is printed, in place of stdout. Raises what `running.carry_out`
    raises.
    """
    width = len(str(count))  # paths of one length: they are in exported names of tables
    folders = {seed: f"past-{seed:0{width}}" for seed in range(count + 1)}
    _refuse_others(out)
    with sole_writer(out):
        (out / PASTS_FILE).unlink(missing_ok=True)
        for left in out.glob("past-*"):
            if left.name not in folders.values():
                shutil.rmtree(left)
        lived = [_lived(out, folder, in_past(order, seed)) for seed, folder in folders.items()]
        summary = _compared(order, lived)
        write_text(out / PASTS_FILE, json.dumps(summary, indent=1) + "\n")
    report.render(summary, out, console or running.stdout_console())
    return summary


def _refuse_others(out: Path) -> None:
    """Raises RunError for a folder that holds something else than runs in pasts."""
    for path in out.iterdir() if out.is_dir() else ():
        ours = path.name in (PASTS_FILE, LOCK_FILE) or (
            path.name.startswith("past-") and (path / PLAN_FILE).is_file()
        )
        if not ours:
            raise RunError(
                f"{out} holds files that are not from a run with --pasts: {path.name}. Choose"
                " another folder"
            )


def _lived(out: Path, folder: str, order: Order) -> Lived:
    """Run an order in its folder; its own report is not printed."""
    assert order.past is not None
    summary = running.carry_out(out / folder, order, Console(quiet=True))
    plan = Plan.read(out / folder / PLAN_FILE)
    results = of_plan(read_results(out / folder / RESULTS_FILE), plan)
    ledger = Ledger.read(out / folder / LEDGER_FILE)
    for result in running.judged(list(results.values()), plan, ledger):
        results[result.cell] = result
    return Lived(order.past, folder, summary, results)


def _compared(order: Order, lived: list[Lived]) -> dict[str, Any]:
    """Return the content of ``pasts.json``."""
    plain, *others = lived
    pairs, found = 0, []
    for other in others:
        pairs += len(compared(order.plan, plain.results, other.results))
        ways = (plain.folder, other.folder)
        found += list(differences(order.plan, plain.results, other.results, other.past.seed, ways))
    codes = [one.exit_code for one in lived]
    return {
        "schema": SCHEMA,
        "pasts": [_facts(one) for one in lived],
        "compared": pairs,
        "differences": [{**one.to_json(), "replay": _replay(order, one, others)} for one in found],
        "exit_code": leading(*codes, exit_code(pairs, found)),
    }


def _facts(one: Lived) -> dict[str, Any]:
    given = {name: one.summary[name] for name in ("observed", "exit_code")}
    return {"past": one.past.to_json(), "text": str(one.past), "folder": one.folder, **given}


def _replay(order: Order, found: Difference, others: Iterable[Lived]) -> list[str]:
    """Return the commands that repeat both sides of a difference.

    A cell whose process has other cells in its past depends on them, so the whole selection is
    repeated.
    """
    past = next(one.past for one in others if one.past.seed == found.past)
    selection = [f"--cell {found.cell}"]
    if past.fresh != CELL:
        selection = [
            f"--{axis.replace('_', '-')} {shlex.quote(','.join(names))}"
            for axis, names in order.selection.items()
            if axis != "k"
        ]
        selection += [f"-k {shlex.quote(text)}" for text in order.selection.get("k", ())]
    given = [*order.options, *running.folder_options(order.folders)]
    words = " ".join([*map(shlex.quote, given), *selection])
    return [
        f"savedmodel-compat matrix run --out replay-{seed} -n 1 --past {seed} {words}".rstrip()
        for seed in (PLAIN, found.past)
    ]
