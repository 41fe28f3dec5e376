"""The page of readers is made of a record, which fits the kit of today."""

import json

import pytest

from docs import readers
from savedmodel_kit import artifacts, constraints
from savedmodel_kit.hostile.catalogue import hostile_files

RECORD = json.loads(readers.RECORD.read_text())


def test_the_record_has_every_reader_and_no_unknown_constraint():
    known = constraints.read()
    assert set(RECORD) == {reader.name for reader in readers.READERS}
    for found in RECORD.values():
        assert set(found["kept"]) | set(found["broken"]) <= set(known)


def test_the_record_was_made_of_the_hostile_files_of_today():
    assert {found["hostile"] for found in RECORD.values()} == {len(hostile_files())}
    assert max(found["artifacts"] for found in RECORD.values()) <= len(artifacts.committed())


def test_the_node_reader_reaches_l1_on_every_artifact():
    sound, hostile = RECORD["node_reader"]["levels"]["L1"]
    assert sound[0] == sound[1]
    assert hostile[0] == hostile[1]
    assert RECORD["node_reader"]["broken"] == []


def test_the_page_names_what_breaks_a_constraint():
    page = readers.page()
    assert "| [`netron`](#netron) | L1 |" in page
    assert "## checkpoint_reader" in page
    assert "every constraint" in page
    assert "| SM-BUNDLE-7 | `hostile/flipped_value`" in page


@pytest.mark.parametrize(
    ("fault", "shown"),
    [
        ("a | b\n<c>", "a \\| b &lt;c>"),
        ("\ufffd", "\\ufffd"),
        ("x" * 200, "x" * 160 + "..."),
    ],
)
def test_a_fault_is_short_and_printable(fault, shown):
    assert readers._short(fault) == shown
