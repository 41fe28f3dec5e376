"""The HTML page: a pure function that says first what is unexpected, escapes everything and fits
its own links.
"""

from __future__ import annotations

import html.parser
import itertools
import re

import pytest

from compat_matrix.report.html import evidence_text, plain, render

CONSUMERS = ("c_api", "tf2")


def cell(case, consumer, check):
    return {
        "id": f"{case}/fixture@1.15.5/{consumer}@2.21.0/{check}",
        "case": case,
        "producer": "fixture",
        "producer_version": "1.15.5",
        "consumer": consumer,
        "consumer_version": "2.21.0",
        "check": check,
    }


def result(of, outcome, **more):
    return {
        "cell": of["id"],
        "outcome": outcome,
        "expected": outcome == "PASS",
        "versions": {"tensorflow": "2.21.0"},
        **more,
    }


@pytest.fixture
def run():
    cells = [
        cell(case, consumer, check)
        for case in ("alpha", "beta")
        for consumer in CONSUMERS
        for check in ("load", "values")
    ]
    results = [result(c, "PASS", timings={"load": 0.5}) for c in cells]
    counts = {"PASS": len(cells)}
    summary = {"exit_code": 0, "planned": len(cells), "cells": len(cells), "observed": len(cells), "plan_id": "abc",
               "not_run": [], "ledger": {"unexpected_fail": [], "dead_entry": []}, "by_outcome": counts,
               "compared": 0, "ended": True, "disagreements": [], "divisions": []}  # fmt: skip
    return {"cells": cells}, results, summary


class Page(html.parser.HTMLParser):
    """Collects ids, links to them, and the text."""

    def __init__(self, source):
        super().__init__()
        self.ids, self.links, self.text, self.tags = [], [], "", []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "a" and attributes["href"].startswith("#"):
            self.links.append(attributes["href"][1:])

    def handle_data(self, data):
        self.text += data


def test_a_clean_run_says_so(run):
    text = Page(render(*run)).text
    assert "Everything as expected" in text
    assert "8 of 8 planned cells observed" in text
    assert text.count("2/2 pass") == 4


def test_what_is_unexpected_comes_before_the_matrix(run):
    plan, results, summary = run
    results[1] = result(
        plan["cells"][1],
        "FAIL_VALUE",
        message="element [0] is 2.0, expected 1.0",
        error_class="x.Y",
        replay="replay me",
    )
    summary.update(exit_code=1, by_outcome={"PASS": 7, "FAIL_VALUE": 1})
    page = Page(
        render(*run, None, {plan["cells"][1]["id"]: {"stderr": "what the worker said last"}})
    )
    assert "1 unexpected result" in page.text
    assert "worker said last" in page.text
    assert page.text.index("element [0] is 2.0") < page.text.index("Matrix")
    assert "replay me" in page.text
    assert "1/2 pass" in page.text


def test_cells_that_fail_alike_are_one_cause(run):
    plan, results, summary = run
    for number in (1, 3, 5):
        said = {"message": f"no op at line {number}", "message_normalised": "no op at line #"}
        results[number] = result(plan["cells"][number], "LOAD_ERROR", **said)
    results[7] = result(
        plan["cells"][7], "LOAD_ERROR", message="no file", message_normalised="no file"
    )
    summary.update(exit_code=1, by_outcome={"PASS": 4, "LOAD_ERROR": 4})
    source = render(plan, results, summary)
    first = source.partition('<h2 id="unexpected">')[2].partition("</ul>")[0]
    assert first.count("<li>") == 2 and "3 cells:" in first and first.count('href="#cell-') == 4
    assert "4 unexpected results" in Page(source).text


def test_two_answers_of_one_loader_are_shown_with_both_cells(run):
    summary = run[2]
    said = {"outcome": "PASS", "error_class": None}
    sides = {
        name: {"cell": f"alpha/fixture@1.15.5/{name}@2.21.0/load", **said} for name in CONSUMERS
    }
    pair = {
        "cell": "alpha/fixture@1.15.5/c_api+tf2@2.21.0/load",
        "differs": "answers",
        "message": "r1 differs",
        "sides": sides,
    }
    summary.update(exit_code=1, compared=8, disagreements=[{**pair, "expected": False}])
    page = Page(render(*run))
    assert "1 unexpected result" in page.text and "r1 differs" in page.text
    assert (
        {f"cell-alpha-fixture-1.15.5-{name}-2.21.0-load" for name in CONSUMERS}
        <= set(page.links)
        <= set(page.ids)
    )
    summary.update(exit_code=0, disagreements=[{**pair, "expected": True}])
    assert "Everything as expected" in Page(render(*run)).text
    assert "answers (known)" in Page(render(*run)).text


def test_known_failures_carry_their_reason(run):
    plan, results, _summary = run
    results[0] = {**result(plan["cells"][0], "CRASH"), "expected": True, "expectation": 3}
    page = Page(
        render(*run, {3: {"kind": "bug", "reason": "because of the weather", "issue": None}})
    )
    assert "of the weather" in page.text
    assert "CRASH (known)" in page.text
    assert "Nothing." in page.text


def test_a_cell_without_result_is_shown_as_not_run(run):
    plan, results, summary = run
    del results[0]
    summary["not_run"] = [
        {"cell": plan["cells"][0]["id"], "reason": "interrupted", "on_purpose": False}
    ]
    page = Page(render(*run))
    assert "1 cell: interrupted" in page.text
    assert "NOT_RUN" in page.text


def test_artifacts_that_were_not_selected_are_left_out_of_the_matrix(run):
    plan, results, summary = run
    summary["not_run"] = [
        {"cell": c["id"], "reason": "deselected", "on_purpose": True}
        for c in plan["cells"]
        if c["case"] == "beta"
    ]
    results = [r for r in results if r["cell"].startswith("alpha")]
    page = Page(render(plan, results, summary))
    assert "row-alpha-fixture-1.15.5" in page.ids
    assert "row-beta-fixture-1.15.5" not in page.ids


def test_stale_entries_block(run):
    _plan, _results, summary = run
    summary["ledger"]["dead_entry"] = [{"entry": 4, "title": "entry 5 (gone/*/load -> CRASH)"}]
    text = Page(render(*run)).text
    assert "What blocks" in text
    assert "entry 5 (gone/*/load -> CRASH) selects no cell" in text  # in words, not as JSON


def test_an_expectation_that_was_only_not_asked_does_not_block(run):
    summary = run[2]
    summary["ledger"]["listed_not_run"] = [
        {"entry": 4, "title": "entry 5", "cells": ["beta/fixture@1.15.5/tf2@2.21.0/load"]}
    ]
    text = Page(render(*run)).text
    assert "What blocks" not in text and "1 expectation " in text


def test_a_selection_is_told_from_what_could_not_be_run(run):
    plan, results, summary = run
    left_out = [
        {"cell": f"{number}/a@1/b@1/load", "reason": "deselected", "on_purpose": True}
        for number in range(1500)
    ]
    summary.update(planned=8 + 1500, not_run=left_out, by_outcome={"PASS": 8, "NOT_RUN": 1500})
    page = Page(render(plan, results, summary))
    assert "8 of 8 selected cells observed" in page.text and "0 not run" in page.text
    assert "1,500 more cells" in page.text
    assert "NOT_RUN" not in page.text and "1499/a@1" not in page.text
    summary["not_run"] = [{**entry, "reason": "no disk"} for entry in left_out]
    page = Page(render(plan, results, summary))
    assert "1,500 cells: no disk" in page.text and "0/a@1/b@1/load" in page.text
    assert "and 1,300 more: summary.json" in page.text and "1499/a@1" not in page.text


def test_names_from_models_cannot_write_html_or_terminal_escapes(run):
    plan, results, _summary = run
    evil = "<script>alert(1)</script>\x1b[31m\u202e"
    plan["cells"][0]["case"] = evil
    results[0] = result(
        plan["cells"][0],
        "LOAD_ERROR",
        message=evil,
        details={evil: [evil]},
        evidence={"log": 'a"b<c.txt'},
    )
    source = render(*run)
    assert "<script>alert" not in source
    assert not re.search("[\x1b\u202e]", source)


def test_every_link_leads_to_an_id_and_ids_are_unique(run):
    page = Page(render(*run))
    assert set(page.links) <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))


def test_the_page_needs_nothing_from_outside(run):
    source = render(*run)
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", source)
    assert "default-src 'none'" in source


def test_equal_results_give_equal_bytes(run):
    assert render(*run) == render(*run)


def test_long_evidence_is_cut_with_a_note():
    assert evidence_text("x" * 5000).endswith("1000 more characters")
    assert plain("a\x07b\nc") == "a\\x07b\nc"


def test_a_version_skew_is_named_where_the_cell_is(run):
    plan, results, summary = run
    skew = {"kind": "unknown_op", "text": "unknown op '<b>\u202eFoo': since 2.21"}
    results[0].update(outcome="LOAD_ERROR", expected=False, message="no op", details={"skew": skew})
    page = Page(render(plan, results, summary))
    assert page.text.count("skew: unknown op '<b>\\u202eFoo': since 2.21") == 2
    assert "\u202e" not in page.text


# The first is the worst: what makes all else untrustworthy, then deaths, errors, wrong answers,
# refusals, and what is well.
SEVERITY = (
    "SETUP_ERROR", "ENV_ERROR", "CRASH", "TIMEOUT", "LOAD_ERROR", "CALL_ERROR", "FAIL_VALUE",
    "FAIL_SIGNATURE", "FAIL_STRUCTURE", "REJECTED", "NOT_RUN", "PASS",
)  # fmt: skip


@pytest.mark.parametrize(("worse", "better"), list(itertools.combinations(SEVERITY, 2)))
@pytest.mark.parametrize("order", [1, -1])
def test_a_field_shows_the_worst_of_its_cells(run, worse, better, order):
    """Whatever comes first in the plan.

    All are expected: what is not expected comes before all that is.
    """
    plan, results, summary = run
    for number, outcome in enumerate([worse, better][::order]):
        results[number] = {
            **result(plan["cells"][number], outcome),
            "expected": True,
            "message": "why",
        }
    page = render(plan, results, summary)
    field = page[page.index('<td data-label="c_api 2.21.0">') :].partition("</td>")[0]
    shown = re.search(r"<small>([A-Z_]+)(?: \(known\))?: ([a-z, ]+)</small>", field)
    assert shown, field
    assert shown[1] == worse
    assert shown[2] == plan["cells"][[worse, better][::order].index(worse)]["check"]


def test_a_field_shows_what_is_unexpected_before_what_is_worse(run):
    plan, results, summary = run
    results[0] = {**result(plan["cells"][0], "CRASH"), "expected": True}
    results[1] = {**result(plan["cells"][1], "REJECTED"), "expected": False}
    field = (
        render(plan, results, summary)
        .partition('<td data-label="c_api 2.21.0">')[2]
        .partition("</td>")[0]
    )
    assert "REJECTED: values" in field and "CRASH" not in field


def test_the_outcomes_are_counted_with_the_best_first(run):
    plan, results, summary = run
    summary["by_outcome"] = dict.fromkeys(SEVERITY, 1)
    counts = render(plan, results, summary).partition('<ul class="counts"')[2].partition("</ul>")[0]
    assert re.findall(r"<li>([A-Z_]+) ", counts) == list(reversed(SEVERITY))
    summary["by_outcome"]["NOT_APPLICABLE"] = 3  # neither good nor bad
    counts = render(plan, results, summary).partition('<ul class="counts"')[2].partition("</ul>")[0]
    assert re.findall(r"<li>([A-Z_]+) ", counts) == [*reversed(SEVERITY), "NOT_APPLICABLE"]


def test_what_each_release_wrote_has_a_table_of_its_own(run):
    plan, results, summary = run
    assert 'id="writers"' not in render(*run)  # of one release
    for version in ("2.0.4", "2.4.4", "2.10.1"):
        written = [
            {
                **cell("gamma", "tf2", "values"),
                "id": f"gamma/fixture@{version}/tf2@2.21.0/values",
                "producer_version": version,
            }
        ]
        plan["cells"] += written
        results += [result(one, "LOAD_ERROR" if version == "2.4.4" else "PASS") for one in written]
    summary.update(exit_code=1)
    source = render(plan, results, summary)
    table = source.partition('id="writers"')[2].partition('id="matrix"')[0]
    places = [table.index(f">{version}<") for version in ("1.15.5", "2.0.4", "2.4.4", "2.10.1")]
    assert places == sorted(places)
    assert "unexpected: gamma" in table.replace("<wbr>", "")
    assert table.count("2/2") == len(CONSUMERS) and table.count("0/1") == 1
