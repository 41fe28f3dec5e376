"""The report on a terminal: the table of the matrix, as wide as the terminal is."""

from __future__ import annotations

import datetime
import io

import pytest
from rich.console import Console

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell, Plan
from compat_matrix.cells.results import DESELECTED, Observation, Result
from compat_matrix.report.terminal import matrix_tables, render
from compat_matrix.verdict import Ledger
from compat_matrix.verdict.summary import summarise

CONSUMERS = [f"consumer_{number}" for number in range(9)]
PLAN = Plan(
    tuple(
        [
            Cell(case, "fixture", "1.15.5", name, "2.21.0", check, "local", "x")
            for case in ("short", "a_rather_long_name_of_a_case")
            for name in [*CONSUMERS, "not_asked"]
            for check in ("load", "values")
        ]
    )
)


def printed(width):
    results = {}
    for cell in PLAN:
        if cell.consumer == "not_asked":
            results[cell.id] = Result.not_executed(
                PLAN.plan_id, cell.id, Outcome.NOT_RUN, DESELECTED
            )
        else:
            results[cell.id] = Result.observed(PLAN.plan_id, cell.id, Observation(Outcome.PASS))
    console = Console(file=io.StringIO(), width=width)
    for table in matrix_tables(PLAN, results, {cell.artifact_id for cell in PLAN}, width):
        console.print(table)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [80, 120, 400])
def test_every_consumer_that_was_asked_has_a_column_that_can_be_read(width):
    text = printed(width)
    assert all(len(line) <= width for line in text.splitlines())
    headers = [
        word for line in text.splitlines() for word in line.split() if word.startswith("consumer")
    ]
    assert headers == CONSUMERS  # each once, in full
    assert "not_asked" not in text
    assert text.count("pass 2") == 2 * len(CONSUMERS)
    tables = text.count("artifact ")
    assert (tables == 1) == (width == 400)
    assert text.count("short/fixture@1.15.5") == tables


@pytest.mark.parametrize("width", [80, 120])
def test_no_outcome_is_cut(width):
    """The longest outcome is longer than the names of most consumers."""
    results = {}
    for cell in PLAN:
        results[cell.id] = Result.observed(
            PLAN.plan_id, cell.id, Observation(Outcome.FAIL_STRUCTURE)
        )
        results[cell.id].expected = True
    console = Console(file=io.StringIO(), width=width)
    for table in matrix_tables(PLAN, results, {cell.artifact_id for cell in PLAN}, width):
        console.print(table)
    text = console.file.getvalue()
    assert "\u2026" not in text and text.count("FAIL_STRUCTURE") == 2 * (len(CONSUMERS) + 1)
    assert all(
        line.rstrip()[-1] in "┓┃┩│┘" and len(line.rstrip()) <= width for line in text.splitlines()
    )


def test_one_consumer_has_a_column_however_narrow_the_terminal_is():
    assert printed(20).count("\u250f") == len(CONSUMERS)


def test_productions_alone_have_a_table_too():
    cell = Cell("made", "tf2", "2.21.0", "-", "", "produce", "local", "x", "local")
    plan = Plan((cell,))
    failed = Result.observed(plan.plan_id, cell.id, Observation(Outcome.TIMEOUT))
    (table,) = matrix_tables(plan, {cell.id: failed}, {cell.artifact_id}, 120)
    assert [column.header for column in table.columns] == ["artifact", "made"]
    assert table.row_count == 1


def test_of_an_error_of_a_graph_the_informative_line_is_shown():
    cell = Cell("case", "fixture", "1.15.5", "tf2", "2.21.0", "values", "local", "x")
    plan = Plan((cell,))
    message = (
        "request 0-f: Graph execution error:\n\nDetected at node a/b defined at (most recent call"
        ' last):\n  File "x"\nBad value\n'
    )
    result = Result.observed(
        plan.plan_id,
        cell.id,
        Observation(Outcome.CALL_ERROR, "x.Error", message + "\t [[{{node a/b}}]]"),
    )
    summary = summarise(plan, [result], Ledger(), datetime.date(2026, 11, 24), {})
    console = Console(file=io.StringIO(), width=100)
    render(plan, [result], summary, console)
    assert "      x.Error request 0-f: Bad value (node 'a/b')\n" in console.file.getvalue()


def test_a_run_about_many_releases_says_how_much_of_what_they_wrote_passes():
    versions = ("1.15.5", "2.0.4", "2.9.3", "2.10.1")
    cells = [
        Cell("short", "fixture", version, "tf2", "2.21.0", "load", "local", "x")
        for version in versions
    ]
    plan = Plan(tuple(cells))
    results = [Result.observed(plan.plan_id, one.id, Observation(Outcome.PASS)) for one in cells]
    summary = summarise(plan, results, Ledger(), datetime.date(2026, 1, 1), {})
    console = Console(file=io.StringIO(), width=200)
    render(plan, results, summary, console)
    said = "written by 4 TensorFlow releases, 1.15.5 to 2.10.1: 4 of 4 artifacts pass everything"
    assert said in console.file.getvalue().splitlines()
