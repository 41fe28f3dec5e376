"""The generated part of the page of the benchmarks: written from the record, between two lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks import record
from benchmarks.record import Measurement
from benchmarks.tables import summary
from savedmodel_common.writing import write_text

PAGE = Path(__file__).parents[1] / "docs/evidence/benchmarks.md"
BEGIN, END = "<!-- Begin: python -m benchmarks.run --record -->", "<!-- End -->"


def replaced(page: str, part: str) -> str:
    """Return the text of a page with another generated part.

    Raises ValueError if the page has no place for it.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no lines {BEGIN} and {END}")
    return f"{before}{begin}\n{part}\n{end}{after}"


def filled(measurements: Sequence[Measurement]) -> str:
    """Return the page with its generated part made from the measurements."""
    return replaced(PAGE.read_text(encoding="utf-8"), summary(measurements))


def is_stale() -> bool:
    """Return whether the page differs from the record."""
    return filled(record.read()) != PAGE.read_text(encoding="utf-8")


def write(measurements: Sequence[Measurement]) -> None:
    """Write the page."""
    write_text(PAGE, filled(measurements))
