"""The picture of the README is a whole report, and needs nothing from another site."""

import html
import re

from compat_matrix.cells.plan import Cell, Plan
from compat_matrix.verdict import DEFAULT_PATH, Ledger
from docs import picture


def test_the_picture_shows_a_whole_report():
    drawn = picture.PICTURE.read_text(encoding="utf-8")
    text = html.unescape(re.sub(r"<[^>]*>", " ", drawn)).replace("\xa0", " ")
    for artifact in (*picture.CASES, *picture.FIXTURES):
        assert f"{artifact}/" in text
    for consumer in (
        "tf2",
        "v1_session",
        "c_api",
        "cpp",
        "reference",
        "reference_to_tf2",
        "tf2_to_reference",
    ):
        assert re.search(rf"\b{consumer}\b", text), consumer
    planned, observed, not_run = map(
        int, re.search(r"planned (\d+), observed (\d+), not run (\d+)", text).groups()
    )
    assert planned == observed > 100 and not_run == 0
    assert "exit 0: as expected" in text
    assert "\u2026" not in text  # nothing is cut
    assert "@font-face" not in drawn and not re.search(r"url\(.?https?:", drawn)


def test_the_expectations_of_the_picture_are_those_that_select_its_cells():
    fixture, consumer, check = "half_plus_two", "tf2", "checkpoint"
    cells = (Cell(fixture, "fixture", "1.15.5", consumer, "2.21.0", check, "local", fixture),)
    text = picture.expectations(Plan(cells))
    kept, ours = Ledger.parse(text), Ledger.read(DEFAULT_PATH)
    assert 0 < len(kept.entries) < len(ours.entries)
    assert [entry.reason for entry in kept.entries] == [
        ours.entry_for(cell).reason for cell in cells
    ]
