"""docs/evidence/real_servers.md and the ledger tell one story of real servers, and each row of the page says who
saw it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import SERVING, STANDIN, Cell
from compat_matrix.cells.results import Result
from compat_matrix.checks.table import SERVE_CHECKS
from compat_matrix.verdict import DEFAULT_PATH, Ledger
from compat_matrix.verdict.entries import Entry

PAGE = Path(__file__).parents[2] / "docs/evidence/real_servers.md"
SEEN = re.compile(r"2\.\d+\.\d+, 20\d\d-\d\d-\d\d|derived")
COLUMNS = {SERVING: 2, STANDIN: 3}
LEDGER = Ledger.read(DEFAULT_PATH)


class Told(NamedTuple):
    """What the page says of a server, a model and a check."""

    server: str
    case: str
    check: str


def rows(title: str) -> list[list[str]]:
    """The rows of the one table of a section."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def of_page() -> dict[Told, str]:
    found: dict[Told, str] = {}
    for cells in rows("Models that fail on servers"):
        for case in re.findall(r"`(\w+)`", cells[0]):
            for check in re.findall(r"`(\w+)`", cells[1]):
                for server, column in COLUMNS.items():
                    told = Told(server, case, check)
                    assert told not in found, f"{told} is there twice"
                    found[told] = cells[column]
    return {told: outcome for told, outcome in found.items() if outcome != "passes"}


def entries() -> Iterator[tuple[Told, Entry]]:
    for entry in LEDGER.entries:
        for server in COLUMNS:
            for case in entry.case if entry.asks(server) else ():
                for check in SERVE_CHECKS:
                    if entry.names_question(case, entry.producer[0], server, check):
                        yield Told(server, case, check), entry


def outcomes(entry: Entry) -> str:
    """The outcomes that a server can have, as the page writes them.

    LOAD_ERROR is one of our own loaders.
    """
    names = [str(one) for one in (entry.outcome, *entry.others) if one is not Outcome.LOAD_ERROR]
    return " or ".join(names) + (f" ({entry.error_class})" if entry.error_class else "")


def test_the_ledger_expects_of_servers_what_the_page_says() -> None:
    assert {told: outcomes(entry) for told, entry in entries()} == of_page()


@pytest.mark.parametrize(
    "title", ["What a real server was seen to do", "Models that fail on servers"]
)
def test_each_row_says_who_saw_it(title: str) -> None:
    found = rows(title)
    assert len(found) >= 25
    assert [cells for cells in found if not SEEN.fullmatch(cells[-1])] == []


def as_real(check: str, producer: str, outcome: str, message: str = "") -> bool | None:
    """Judge what a real 2.15.1 was seen to do with an unknown op in a function."""
    cell = Cell(
        "unservable_unknown_op", producer, "2.15.1", SERVING, "2.15.1", check, "serving", "x"
    )
    error = "NOT_FOUND" if message else None
    result = Result(
        "plan",
        cell.id,
        Outcome(outcome),
        error_class=error,
        message=message,
        message_normalised=message,
    )
    return LEDGER.judged(cell, result).expected


@pytest.mark.parametrize("producer", ["tf2", "reference"])
def test_the_six_cells_of_an_unknown_op_are_expected_of_a_real_server(producer: str) -> None:
    text = (
        "request serving_default-0 over {}: Op type not registered 'Acme>Mix' in binary running on"
        " host."
    )
    assert as_real("serve", producer, "PASS") is True
    assert as_real("serve_grpc", producer, "CALL_ERROR", text.format("grpc")) is True
    assert as_real("serve_rest", producer, "CALL_ERROR", text.format("rest")) is True
    assert as_real("serve", producer, "REJECTED", text) is False
