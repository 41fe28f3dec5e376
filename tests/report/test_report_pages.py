"""What all pages have in common: a title with run, versions and date, a filter, and no column of
broken words on a phone.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from gate_folders import SIDES, cell, run

from compat_matrix import report
from compat_matrix.gate.compare import compare
from compat_matrix.gate.pairs import pairs_of_folders
from compat_matrix.report import gate_html, gate_markdown, html
from savedmodel_migration.migrate import report as migration
from savedmodel_migration.migrate.records import Record, Status

TEMPLATES = {
    path.name: path.read_text()
    for path in (Path(report.__path__[0]) / "templates").glob("*.html.j2")
}
STYLE = (Path(report.__path__[0]) / "templates" / "style.css.j2").read_text()
WHEN = "2026-11-23T05:30:12+00:00"


def title_of(page):
    return re.search(r"<title>(.*?)</title>", page, re.DOTALL)[1]


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_a_table_on_a_phone_is_stacked_or_scrolls(name):
    """A table of several columns on 360 pixels breaks every word: its rows become blocks there, or
    it scrolls in a box.
    """
    for found in re.finditer(r"<table([^>]*)>", TEMPLATES[name]):
        before, classes = (
            TEMPLATES[name][: found.start()],
            re.findall(r"[\w-]+", found[1].partition("=")[2]),
        )
        assert {"stack", "matrix"} & set(classes) or before.endswith('<div class="scroll">'), found[
            0
        ]
    phone = STYLE.partition("@media (max-width:720px)")[2]
    assert ".stack td, .stack th { display:block" in phone and ".matrix tr { display:block" in phone
    assert ".scroll { overflow-x:auto }" in STYLE


@pytest.mark.parametrize(
    ("versions", "started", "title"),
    [
        (["2.21.0", "2.9.1", "2.21.0"], WHEN, "matrix, TensorFlow 2.9.1, 2.21.0, 2026-11-23 05:30"),
        (["2.4.0", "1.15.5", "2.12.1", "2.21.0"], "", "matrix, TensorFlow 1.15.5 to 2.21.0"),
        ([], "", "matrix"),
    ],
)
def test_a_title_has_run_versions_and_date(versions, started, title):
    assert html.title("matrix", versions, started) == title


def test_the_page_of_a_run_has_its_title():
    summary = {"exit_code": 0, "planned": 0, "cells": 0, "observed": 0, "answered": 0, "plan_id": "abc", "not_run": [],
               "ledger": {}, "by_outcome": {}, "compared": 0, "ended": True, "disagreements": [], "divisions": [], "run": {"started": WHEN},
               "versions": {"tf2": {"tensorflow": ["2.21.0"], "numpy": ["2.0"]}}}  # fmt: skip
    page = html.render({"cells": []}, [], summary)
    assert title_of(page).endswith(": matrix, TensorFlow 2.21.0, 2026-11-23 05:30")
    page = html.render(
        {"cells": []}, [], summary, about={"names": {"m": "exports/<m>"}, "causes": []}
    )
    assert ": check, " in title_of(page)


def test_the_pages_of_a_gate_have_the_date_of_the_later_run(tmp_path):
    runs = [
        run(tmp_path / side, (cell(producer="fixture", written="1.15.5", read=OLD), "PASS"))
        for side, OLD in SIDES_OF
    ]
    runs = [
        type(one)(one.out, one.plan, one.results, one.registry, when)
        for one, when in zip(runs, ("", WHEN))
    ]
    _, verdict = compare(pairs_of_folders(*runs), SIDES, lambda pair: [])
    assert (
        title_of(gate_html.render(verdict))
        == "nothing blocks: gate, TensorFlow 2.20.0 to 2.21.0, 2026-11-23 05:30"
    )
    assert "2026" in gate_markdown.render(verdict).splitlines()[0]


SIDES_OF = (("a", "2.20.0"), ("b", "2.21.0"))


@pytest.mark.parametrize("pages", [{}, {name: f"pages/{name}.html" for name in "abc"}])
def test_the_page_of_a_migration_begins_with_what_needs_action_and_has_a_filter(pages):
    records = [
        Record("a", "a", status=Status.MIGRATED),
        Record("b", "b", status=Status.REFUSED, reason='no "session"'),
        Record("c", "c", status=Status.FAILED, reason="the disk is full"),
    ]
    page = migration.as_html(records, pages, "2.21.0", WHEN)
    assert title_of(page) == "migration of 3 models, TensorFlow 2.21.0, 2026-11-23 05:30"
    shown = re.findall(
        r'class="[^"]*filtered" data-status="(\w+)" data-action="(\w+)" data-text="([^"]*)"', page
    )
    assert [item[:2] for item in shown] == [
        ("failed", "yes"),
        ("refused", "yes"),
        ("migrated", "no"),
    ]
    assert shown[1][2] == "b no &#34;session&#34;"
    assert {"failed", "refused", "migrated"} <= set(re.findall(r'<option value="(\w+)">', page))
    ids = set(re.findall(r'id="(m\d+)"', page))
    assert set(re.findall(r'href="#(m\d+)"', page)) <= ids


def test_a_filter_finds_what_it_filters():
    """The ids of the selects are data attributes of every item."""
    filtered = {name: text for name, text in TEMPLATES.items() if "<select id=" in text}
    assert filtered
    for name, text in filtered.items():
        assert (
            '{% include "filter.html.j2" %}' in text and 'id="q"' in text and 'id="shown"' in text
        ), name
        attributes = {*re.findall(r'<select id="(\w+)"', text), "text"}
        assert [attribute for attribute in attributes if f'data-{attribute}="' not in text] == [], (
            name
        )
