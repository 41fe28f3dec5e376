"""What a gate leaves behind: JSON by its schema, a comment that fits, valid JUnit, a page that
escapes, a first screen.
"""

from __future__ import annotations

import html.parser
import io
import json
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pytest
from gate_folders import NEW, OLD, SIDES, answered, cell, run
from rich.console import Console

import compat_matrix
from compat_matrix.gate.compare import compare
from compat_matrix.gate.drift import drifts
from compat_matrix.gate.pairs import pairs_of_run
from compat_matrix.report import gate_html, gate_junit, gate_markdown, gate_terminal

SCHEMA = json.loads((Path(compat_matrix.__path__[0]) / "schemas" / "gate.schema.json").read_text())
EVIL = (
    "<script>alert(1)</script> | `x` [a](http://evil) @team #1 \x1b[31m\u202e\x00 **b**\nsecond"
    " line"
)
ONE, NEXT = np.float32([1, 2]), np.float32([1, np.nextafter(np.float32(2), np.float32(9))])


def compared(out, *what, **options):
    """Facts and verdict of committed artifacts: (case, outcome of the baseline, outcome of the
    candidate).
    """
    cells = []
    for case, *outcomes in what:
        for version, outcome in zip((OLD, NEW), outcomes):
            one = cell(case, "1.15.5", version, producer="fixture")
            outcome = (
                outcome(one)
                if callable(outcome)
                else outcome
                if isinstance(outcome, tuple)
                else (outcome,)
            )
            cells.append((one, *outcome))
    facts, verdict = compare(pairs_of_run(run(out, *cells), OLD, NEW), SIDES, drifts, **options)
    jsonschema.Draft202012Validator(SCHEMA).validate(verdict)
    return facts, verdict


# As TensorFlow 2.21 writes it for a signature whose Assert fails.
GRAPH_ERROR = """request serving_default-0: Graph execution error:

Detected at node 'StatefulPartitionedCall/assert_less/Assert/AssertGuard/Assert' defined at (most recent call last):
<stack traces unavailable>
Detected at node 'StatefulPartitionedCall/assert_less/Assert/AssertGuard/Assert' defined at (most recent call last):
<stack traces unavailable>
Detected at node 'StatefulPartitionedCall/assert_less/Assert/AssertGuard/Assert' defined at (most recent call last):
<stack traces unavailable>
2 root error(s) found.
  (0) INVALID_ARGUMENT:  assertion failed: [the longest is too long]
\t [[{{node StatefulPartitionedCall/assert_less/Assert/AssertGuard/Assert}}]]
  (1) INVALID_ARGUMENT:  assertion failed: [the longest is too long]
0 successful operations.
0 derived errors ignored. [Op:__inference_signature_wrapper_12]"""


def test_the_cause_of_a_graph_error_is_shown_and_not_its_front(tmp_path):
    facts, verdict = compared(
        tmp_path,
        ("asserting", "PASS", ("CALL_ERROR", {"error_class": "x.E", "message": GRAPH_ERROR})),
    )
    console = Console(file=io.StringIO(), width=200)
    gate_terminal.render(verdict, console)
    reports = {
        "terminal": console.file.getvalue(),
        "gate.md": gate_markdown.render(verdict),
        "gate.html": gate_html.render(verdict),
        "junit.xml": gate_junit.of_gate(facts, verdict),
    }
    for name, text in reports.items():
        assert "too long" in text, name
        assert "stack traces unavailable" not in text, name
    assert "too long" in verdict["causes"][0]["cause"]


@pytest.fixture
def all_kinds(tmp_path):
    """One pair of each class, with a hostile message where there is one."""
    broken = ("LOAD_ERROR", {"error_class": "x.Y", "message": EVIL})
    passes = lambda one: ("PASS", answered(tmp_path, one, ONE, rtol=1e-6))  # noqa: E731
    drifts_ = lambda one: ("PASS", answered(tmp_path, one, ONE, NEXT, rtol=1e-6))  # noqa: E731
    return compared(
        tmp_path,
        ("regressed", "PASS", broken),
        ("gone", "PASS", "RULED_OUT"),
        ("drifting", passes, drifts_),
        ("other", "CRASH", broken),
        ("fixed", broken, "PASS"),
        ("new", "RULED_OUT", "PASS"),
        ("harness", "PASS", "SETUP_ERROR"),
        ("waiting", "PASS", ("NOT_RUN", "interrupted")),
        ("failing", broken, broken),
        ("alike", "PASS", "PASS"),
    )


def many(out, count):
    """``count`` regressions, each for a reason of its own."""
    return compared(
        out,
        *(
            (f"case{i}", "PASS", ("CRASH", {"message": f"reason {'x' * 150} {i}"}))
            for i in range(count)
        ),
    )


# Markdown
# --------------------------------------------------------------------------------------------------


def test_the_comment_says_what_blocks_first(all_kinds):
    text = gate_markdown.render(all_kinds[1])
    assert text.startswith(f"### ❌ TensorFlow {OLD} → {NEW}: ") and "environment" in text
    assert (
        text.index("#### What blocks") < text.index("regressed | <code>") < text.index("<details>")
    )
    assert text.count("<details>") == text.count("</details>") == 2
    assert "| drifted | 1 | 0 | 0 |" in text


def test_a_clean_gate_is_a_short_comment(tmp_path):
    text = gate_markdown.render(compared(tmp_path, ("alike", "PASS", "PASS"))[1])
    assert text.startswith(
        f"### ✅ TensorFlow {OLD} → {NEW}: nothing blocks\n\nOK&#58; all 1 pairs alike"
    )
    assert "<details>" not in text


@pytest.mark.parametrize("count", [5, 200, 3000])
def test_the_comment_fits_whatever_happened_and_says_what_was_cut(tmp_path, count):
    verdict = many(tmp_path, count)[1]
    text = gate_markdown.render(verdict)
    assert len(text.encode()) <= gate_markdown.LIMIT == 65_536
    assert ("Cut here:" in text) == (count > 5)
    assert text.count("<details>") == text.count("</details>")
    assert text.endswith("gate.json and gate.html.</sub>\n")


@pytest.mark.parametrize("limit", [3000, 5000, 9000])
def test_a_smaller_limit_is_kept_too(tmp_path, limit):
    text = gate_markdown.render(many(tmp_path, 60)[1], limit)
    assert len(text.encode()) <= limit
    assert "Cut here:" in text
    assert text.count("<details>") == text.count("</details>")


def test_a_message_is_no_markdown(all_kinds):
    text = gate_markdown.render(all_kinds[1])
    for made in ("<script>", "](http", "@team", "`x`", "**b**", "\x1b", "\u202e", "\x00"):
        assert made not in text
    rows = [line for line in text.splitlines() if "alert" in line]
    assert rows
    assert {line.count("|") for line in rows} <= {6, 7}  # the borders of the two tables


# JUnit
# --------------------------------------------------------------------------------------------------


def suite_of(text):
    """The suite, checked against what every reader of JUnit relies on."""
    root = ElementTree.fromstring(text)
    assert root.tag == "testsuites"
    (suite,) = root
    cases = suite.findall("testcase")
    for element in (root, suite):
        assert int(element.get("tests")) == len(cases)
        for state, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(element.get(name)) == len(suite.findall(f"testcase/{state}"))
    for case in cases:
        assert case.get("name")
        assert case.get("classname")
        assert float(case.get("time")) >= 0
        assert len(case) <= 1
    return suite, cases


def test_every_pair_is_a_test_case(all_kinds):
    suite, cases = suite_of(gate_junit.of_gate(*all_kinds))
    states = {
        case.get("name").split("/")[0]: case[0].tag if len(case) else "passed" for case in cases
    }
    assert states == {
        "regressed": "failure",
        "gone": "failure",
        "drifting": "passed",
        "other": "skipped",
        "fixed": "passed",
        "new": "passed",
        "harness": "error",
        "waiting": "skipped",
        "failing": "skipped",
        "alike": "passed",
    }
    assert {p.get("name"): p.get("value") for p in suite.findall("properties/property")} == {
        "baseline": OLD,
        "candidate": NEW,
    }
    failure = next(case for case in cases if case.get("name").startswith("regressed"))
    assert failure.get("classname") == "reads.regressed"
    assert "baseline: PASS" in failure[0].text
    assert "\\x1b[31m\\u202e" in failure[0].text


def test_a_blocking_drift_fails_its_test_case(tmp_path):
    passes = lambda one: ("PASS", answered(tmp_path, one, ONE, rtol=1e-6))  # noqa: E731
    drifting = lambda one: ("PASS", answered(tmp_path, one, ONE, NEXT, rtol=1e-6))  # noqa: E731
    _, (case,) = suite_of(
        gate_junit.of_gate(*compared(tmp_path, ("d", passes, drifting), fail_on_drift=True))
    )
    assert (
        "request r: y: element [1] is 2.0000002, was 2.0 (1 of 2 differ by at most 1 ulp)"
        in case[0].text
    )


# HTML, JSON, terminal
# --------------------------------------------------------------------------------------------------


class Page(html.parser.HTMLParser):
    def __init__(self, source):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def test_the_page_has_every_pair_that_is_not_alike_and_filters(all_kinds):
    page = Page(gate_html.render(all_kinds[1]))
    pairs = [attrs for tag, attrs in page.tags if tag == "details"]
    assert {attrs["data-kind"] for attrs in pairs} == {
        fact["kind"] for fact in all_kinds[1]["facts"]
    }
    assert len(pairs) == 9
    assert {attrs["data-blocks"] for attrs in pairs} == {"yes", "no"}
    assert {attrs["id"] for tag, attrs in page.tags if tag == "select"} == {
        "kind",
        "role",
        "blocks",
    }
    assert (
        page.text.index("What blocks")
        < page.text.index("What else changed")
        < page.text.index("Every pair")
    )
    assert "2.0000002" in page.text


def test_every_report_names_the_command_that_finds_the_release_of_a_regression(tmp_path):
    verdict = compared(tmp_path, ("regressed", "PASS", ("CRASH", {"message": "reason"})))[1]
    verdict["baseline"]["label"], verdict["candidate"]["label"] = "2.4.4", "2.21.0"
    command = "savedmodel-compat gate bisect " + verdict["facts"][0]["candidate"]["cell"]
    for text in (
        gate_html.render(verdict).replace("<wbr>", ""),
        gate_markdown.render(verdict),
        screen(verdict).replace("\n", " "),
    ):
        assert command in text.replace("&#64;", "@")
        assert "--from 2.4 --to 2.21" in text


@pytest.mark.parametrize(
    ("accepted", "label", "colour"),
    [
        (True, "vanished (known)", "known"),
        (False, "vanished (known, blocks without --accept-known)", "unexpected"),
    ],
)
def test_label_and_colour_of_a_known_failure_follow_the_verdict(accepted, label, colour, tmp_path):
    verdict = compared(
        tmp_path, ("gone", "PASS", "RULED_OUT"), ("alike", "PASS", "PASS"), accept_known=accepted
    )[1]
    assert (verdict["facts"][0]["known"], verdict["exit_code"]) == (True, 0 if accepted else 1)
    source = gate_html.render(verdict)
    assert f'<span class="tag {colour}">{label}</span>' in source
    assert ("tag unexpected" in source) is not accepted
    assert label in gate_markdown.render(verdict) and label in screen(verdict, full=True)


def test_what_decides_the_exit_code_is_red(tmp_path):
    verdict = compared(tmp_path, ("harness", "PASS", "SETUP_ERROR"), ("fixed", "CRASH", "PASS"))[1]
    source = gate_html.render(verdict)
    assert (
        source.count('<span class="tag unexpected">harness error</span>') == 2
    )  # of the cause and of the pair
    assert source.count('<span class="tag pass">fixed</span>') == 2


def test_the_page_holds_no_text_of_a_message_as_markup(all_kinds):
    source = gate_html.render(all_kinds[1])
    assert "<script>alert" not in source
    assert "&lt;script&gt;alert(1)" in source
    for char in ("\x1b", "\u202e", "\x00"):
        assert char not in source
    assert [tag for tag, _ in Page(source).tags].count("script") == 1
    assert "http://" not in source.replace("http://evil", "")


def test_reports_are_functions_of_the_results(all_kinds):
    facts, verdict = all_kinds
    for render in (gate_markdown.render, gate_html.render):
        assert render(verdict) == render(json.loads(json.dumps(verdict)))
    assert gate_junit.of_gate(facts, verdict) == gate_junit.of_gate(
        json.loads(json.dumps(facts)), verdict
    )


def screen(verdict, full=False):
    console = Console(file=io.StringIO(), width=120, force_terminal=False)
    gate_terminal.render(verdict, console, ["out/gate.html"], full)
    return console.file.getvalue()


def test_the_first_screen_says_what_blocks_and_why(tmp_path):
    lines = screen(many(tmp_path, 100)[1]).splitlines()
    first = "\n".join(lines[:24])
    assert first.startswith(
        f"gate: {OLD} (tensorflow=={OLD}) -> {NEW} (tensorflow=={NEW})\nBLOCKED: 100 regressed, of"
        " 100 pairs"
    )
    assert "regressed, 1 pair: reason xxx" in first
    assert "case0 · tf2 · reads" in first
    assert lines[-1] == "exit 1: blocked"
    assert len(lines) < 48


def test_the_screen_is_not_steered_by_a_message(all_kinds):
    text = screen(all_kinds[1])
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "HARNESS ERROR in 1 of 10 pairs" in text
