"""Results, the verdict on a run, its terminal report, the comparison of two runs."""

import io
import json
import time
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from matrix_world import TODAY, entry
from referencing import Registry, Resource
from rich.console import Console

import compat_matrix
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell, Decision, Plan
from compat_matrix.cells.results import (
    DESELECTED,
    Observation,
    Result,
    ResultsError,
    normalise,
    one_line,
    read_results,
    write_results,
)
from compat_matrix.report import progress as progress_module
from compat_matrix.report import terminal
from compat_matrix.report.progress import Progress, unexpected
from compat_matrix.verdict import Ledger
from compat_matrix.verdict.summary import NO_RESULT, summarise

SCHEMAS = {
    path.name: json.loads(path.read_text())
    for path in (Path(compat_matrix.__path__[0]) / "schemas").glob("*.json")
}
REGISTRY = Registry().with_resources(
    (name, Resource.from_contents(schema)) for name, schema in SCHEMAS.items()
)
RUN = {
    "schema": 1,
    "started": "2025-06-01T00:00:00+00:00",
    "seconds": 1.5,
    "require": False,
    "selection": {},
    "processes": 1,
    "tool_version": None,
    "revision": None,
    "python": "3.11.1",
    "platform": "x",
}


def validate(data, name):
    jsonschema.Draft202012Validator(SCHEMAS[name], registry=REGISTRY).validate(data)


def cell(index, decided=None, consumer="tf2", version="2.21.0"):
    return Cell(
        f"c{index}", "fixture", "1.15.5", consumer, version, "load", "local", "x", decided=decided
    )


def result(plan, one, outcome, error_class=None, message="", ledger=None):
    if Outcome(outcome).observable:
        out = Result.observed(
            plan.plan_id,
            one.id,
            Observation(outcome, error_class, message, versions={"tensorflow": "2.21.0"}),
        )
        return (ledger or Ledger()).judged(one, out)
    return Result.not_executed(plan.plan_id, one.id, Outcome(outcome), message)


def summary_of(outcomes, *entries, require=False, plan=None):
    """The summary of one cell per outcome: a name, a (name, error class, message), or None for a
    cell without result.
    """
    ledger = Ledger.parse("schema = 1\n" + "\n".join(entries))
    plan = plan or Plan(tuple(cell(index) for index in range(len(outcomes))))
    results = []
    for one, outcome in zip(plan, outcomes):
        if outcome is not None:
            results.append(
                result(
                    plan, one, *([outcome] if isinstance(outcome, str) else outcome), ledger=ledger
                )
            )
    summary = summarise(plan, results, ledger, TODAY, {**RUN, "require": require})
    validate(summary, "summary.schema.json")
    validate(plan.to_json(), "plan.schema.json")
    for one in results:
        validate(json.loads(one.to_line()), "result.schema.json")
    return summary


LOAD_ERROR = ("LOAD_ERROR", "x.NotFoundError", "no op")
KNOWN_0, KNOWN_1 = entry("c0"), entry("c1")
LEFT_OUT = ("NOT_RUN", None, DESELECTED)
STOPPED = ("NOT_RUN", None, "stopping after 1 failures")


@pytest.mark.parametrize(
    ("outcomes", "entries", "code"),
    [
        (["PASS"], [], 0),
        ([LOAD_ERROR], [], 1),
        ([LOAD_ERROR], [KNOWN_0], 0),
        ([("LOAD_ERROR", "x.OtherError", "")], [KNOWN_0], 1),
        (["PASS"], [KNOWN_0], 2),
        (["PASS"], [entry("gone")], 2),
        (["PASS", LEFT_OUT], [], 0),
        (["PASS", STOPPED], [], 3),
        (["PASS", None], [], 3),
        ([LEFT_OUT], [], 3),  # nothing was observed: never green
        ([], [], 3),
        (["SETUP_ERROR"], [], 4),
        (["ENV_ERROR"], [], 4),
        # Several at once: harness, then failures, then the ledger, then what is missing.
        (["SETUP_ERROR", LOAD_ERROR, None], [KNOWN_0], 4),
        ([LOAD_ERROR, "PASS", None], [KNOWN_1], 1),
        (["PASS", None], [KNOWN_0], 2),
    ],
)
def test_exit_codes_and_their_precedence(outcomes, entries, code):
    assert summary_of(outcomes, *entries)["exit_code"] == code


@pytest.mark.parametrize(
    ("outcomes", "code"), [(["PASS"], 0), (["PASS", LEFT_OUT], 3), (["PASS", None], 3)]
)
def test_require_makes_every_missing_cell_a_failure(outcomes, code):
    assert summary_of(outcomes, require=True)["exit_code"] == code


def test_the_numbers_have_their_denominators():
    plan = Plan(
        (
            *(cell(i) for i in range(5)),
            cell(5, Decision(Outcome.NOT_APPLICABLE, "cannot")),
            cell(6, Decision(Outcome.NOT_RUN, "no")),
        )
    )
    outcomes = [
        "PASS",
        LOAD_ERROR,
        LEFT_OUT,
        None,
        LOAD_ERROR,
        ("NOT_APPLICABLE", None, "cannot"),
        ("NOT_RUN", None, "no"),
    ]
    summary = summary_of(outcomes, KNOWN_1, plan=plan)
    assert (
        summary["cells"],
        summary["not_applicable"],
        summary["planned"],
        summary["observed"],
    ) == (7, 1, 6, 3)
    assert {name: count for name, count in summary["by_outcome"].items() if count} == {
        "PASS": 1,
        "LOAD_ERROR": 2,
        "NOT_RUN": 3,
        "NOT_APPLICABLE": 1,
    }
    assert set(summary["by_outcome"]) == {str(outcome) for outcome in Outcome}
    assert [
        (item["cell"].split("/")[0], item["reason"], item["on_purpose"])
        for item in summary["not_run"]
    ] == [
        ("c2", DESELECTED, True),
        ("c3", NO_RESULT, False),
        ("c6", "no", True),
    ]
    assert summary["partial"]
    assert [(fact["kind"], fact["cell"].split("/")[0]) for fact in summary["unexpected"]] == [
        ("unexpected_fail", "c4")
    ]
    assert summary["versions"] == {"tf2": {"tensorflow": ["2.21.0"]}}


def test_results_of_another_plan_do_not_count():
    plan, other = Plan((cell(0),)), Plan((cell(0), cell(1)))
    summary = summarise(plan, [result(other, cell(0), "PASS")], Ledger(), TODAY, {})
    assert (summary["observed"], summary["exit_code"]) == (0, 3)


def test_a_result_that_contradicts_the_plan_does_not_count():
    """A cell that the plan decided is not observed, and no result decides one that the plan
    asks.
    """
    plan = Plan((cell(0, Decision(Outcome.NOT_RUN, "no TensorFlow")), cell(1), cell(2)))
    results = [result(plan, one, "PASS") for one in plan]
    results[1] = Result.not_executed(
        plan.plan_id, plan.cells[1].id, Outcome.NOT_APPLICABLE, "says the file"
    )
    summary = summarise(plan, results, Ledger(), TODAY, {})
    assert (summary["not_applicable"], summary["observed"], summary["exit_code"]) == (0, 1, 3)
    assert [item["cell"] for item in summary["not_run"]] == [one.id for one in plan.cells[:2]]


def test_a_production_expected_to_fail_is_counted_as_known():
    production = Cell("c", "tf2", "2.21.0", "-", "", "produce", "local", "x")
    plan = Plan((production,))
    known = entry("c", "tf2", "-", "produce", "REJECTED", "Refused")
    assert summary_of([("REJECTED", "x.Refused", "no")], known, plan=plan)["exit_code"] == 0
    assert summary_of([("REJECTED", "x.Refused", "no")], plan=plan)["exit_code"] == 1


@pytest.mark.parametrize(
    ("message", "normal"),
    [
        ("cannot open /tmp/run-1/model/saved_model.pb; gone", "cannot open <path>; gone"),
        ("cannot open '~/x/y' or \"file:///a/b\"", "cannot open '<path>' or \"<path>\""),
        ("cannot open '/home/x/My Models/a (1)/b'; gone", "cannot open '<path>'; gone"),
        ('File "/My Models/a.py", line 3, in f', 'File "<path>", line #, in f'),
        ("b'/a b' and `~/c d` and 'file:///e f'", "b'<path>' and `<path>` and '<path>'"),
        (
            "open '/a b, which isn't there and can't be",
            "open '<path> b, which isn't there and can't be",
        ),
        ("open /a b, which isn't there", "open <path> b, which isn't there"),
        ("the model's '/a b' or '/'", "the model's '<path>' or '/'"),
        ("see https://example.org/a/b", "see https://example.org/a/b"),
        ("model/variables and/or a / b", "model/variables and/or a / b"),
        ("<Tensor at 0x7f01Ab>", "<Tensor at <address>>"),
        ("add_12 and __inference_f_345_6", "add and __inference_f"),
        (
            "__inference_<lambda>_345}} [Op:v1_restore__load67]",
            "__inference_<lambda>}} [Op:v1_restore__load]",
        ),
        ("{{node while/x_1}} = f[T=3](y_2:0)", "{{node while/x}} = f[T=3](y:0)"),
        ("v1_15x float32 half_plus_two", "v1_15x float32 half_plus_two"),
        ("at 2025-01-02 03:04:05.678901, 2025-01-02T03:04:05Z", "at <time>, <time>"),
        ("on /job:localhost/replica:0/task:0/device:CPU:0 now", "on <device> now"),
        ('File "/x/y.py", line 12, in f\n   g()', 'File "<path>", line #, in f g()'),
    ],
)
def test_messages_are_normalised(message, normal):
    assert normalise(message) == normal
    assert normalise(normal) == normal


def test_a_folder_of_the_run_may_have_any_name():
    said = "/tmp/My Models (old)/a/saved_model.pb: no file, see /tmp/My Models (old)"
    assert normalise(said, ["/tmp/My Models (old)", "/tmp/My"]) == "<path>: no file, see <path>"
    assert normalise("a b/c d", ["b/c d"]) == "a b/c d"


@pytest.mark.parametrize("part", ["'/", "'/a", '"/a ', "`/ ", "'/a'", "b'/a b", "/a '", "'/a\n"])
def test_a_hostile_message_is_normalised_in_linear_time(part):
    def steps(count):
        began = time.process_time()
        normalise(part * count)
        return time.process_time() - began

    assert min(steps(16_000) for _ in range(3)) < 24 * min(steps(2_000) for _ in range(3)) + 0.01


def test_a_result_survives_its_file(tmp_path):
    plan = Plan((cell(0),))
    seen = Observation(
        "FAIL_VALUE",
        details={
            "got": np.float32([1, np.nan]),
            "worst": float("inf"),
            "n": np.int64(3),
            "raw": b"\xff",
            "t": (1, {2: 3}),
        },
        timings={"load": 0.123456},
        libraries=["a.so"],
        rss_kib=7,
        evidence={"log": "logs/x"},
    )
    out = Ledger().judged(cell(0), Result.observed(plan.plan_id, cell(0).id, seen))
    write_results(tmp_path / "r.jsonl", [out])
    assert read_results(tmp_path / "r.jsonl") == [out]
    record = json.loads((tmp_path / "r.jsonl").read_text())
    validate(record, "result.schema.json")
    assert record["details"] == {
        "got": [1.0, "nan"],
        "worst": "inf",
        "n": 3,
        "raw": "b'\\xff'",
        "t": [1, {"2": 3}],
    }
    assert record["timings"] == {"load": 0.1235}


def test_details_without_an_end_do_not_break_the_file():
    endless = {}
    endless["self"] = endless
    out = Result.observed(
        "0" * 64, cell(0).id, Observation("PASS", details=endless, message="x" * 50_000)
    )
    assert len(out.to_line()) < 60_000
    assert "characters more" in out.message


def test_a_torn_last_line_is_left_out_and_the_last_line_of_a_cell_counts(tmp_path):
    plan = Plan((cell(0), cell(1)))
    lines = [
        result(plan, cell(0), "CRASH"),
        result(plan, cell(1), "PASS"),
        result(plan, cell(0), "PASS"),
    ]
    text = "".join(one.to_line() + "\n" for one in lines)
    path = tmp_path / "r.jsonl"
    path.write_text(text + lines[0].to_line()[:50])
    assert [(r.cell[:2], str(r.outcome)) for r in read_results(path)] == [
        ("c1", "PASS"),
        ("c0", "PASS"),
    ]
    assert read_results(tmp_path / "none") == []


@pytest.mark.parametrize(
    "change",
    [{"schema": 2}, {"outcome": "FINE"}, {"more": 1}, {"cell": None, "schema": None}],
)
def test_a_line_that_is_no_result_is_named(tmp_path, change):
    plan = Plan((cell(0),))
    good = result(plan, cell(0), "PASS").to_line()
    (tmp_path / "r.jsonl").write_text(f"{good}\n{json.dumps({**json.loads(good), **change})}\n")
    with pytest.raises(ResultsError, match=r"r\.jsonl, line 2: .*schema 1"):
        read_results(tmp_path / "r.jsonl")


def printed(plan, results, summary):
    console = Console(file=io.StringIO(), width=100)
    terminal.render(plan, results, summary, console, ["out/report.html"])
    return console.file.getvalue()


def test_the_terminal_report_says_first_what_is_unexpected():
    ledger = Ledger.parse("schema = 1\n" + KNOWN_1 + entry("gone"))
    decided = Decision(Outcome.NOT_APPLICABLE, "cannot")
    plan = Plan(
        (cell(0), cell(1), cell(2), cell(0, consumer="c_api"), cell(1, decided, consumer="c_api"))
    )
    hostile = "\x1b[2J\nsecond \u202e line [red]"
    results = [
        result(plan, plan.cells[0], "CRASH", "SIGABRT", hostile, ledger=ledger),
        result(plan, plan.cells[1], *LOAD_ERROR, ledger=ledger),
        result(plan, plan.cells[2], *LEFT_OUT),
        result(plan, plan.cells[3], "PASS", ledger=ledger),
        result(plan, plan.cells[4], "NOT_APPLICABLE", message="cannot"),
    ]
    text = printed(plan, results, summarise(plan, results, ledger, TODAY, RUN))
    lines = text.splitlines()
    assert lines[0] == "1 unexpected"
    assert "CRASH          c0/fixture@1.15.5/tf2@2.21.0/load (expected PASS)" in lines[1]
    assert "SIGABRT [2J second line [red]" in lines[2]
    assert "selects no cell" in lines[3]
    assert "\x1b" not in text
    assert "\u202e" not in text
    rows = {line.split()[1]: line for line in lines if "fixture@1.15.5" in line and "│" in line}
    assert "CRASH load" in rows["c0/fixture@1.15.5"]
    assert "pass 1" in rows["c0/fixture@1.15.5"]
    assert "known LOAD_ERROR 1" in rows["c1/fixture@1.15.5"]
    assert "n/a" in rows["c1/fixture@1.15.5"]
    assert "c2/fixture@1.15.5" not in rows
    assert "planned 4, observed 3, not run 1" in text
    assert "PASS           1 of 3 observed" in text
    assert "1: deselected" in text
    assert lines[-3:] == [
        "  unexpected: CRASH c0/fixture@1.15.5/tf2@2.21.0/load",
        "  out/report.html",
        "exit 1: unexpected results",
    ]


def test_the_terminal_report_names_a_version_skew():
    plan = Plan((cell(0), cell(1)))
    results = [result(plan, one, "LOAD_ERROR", "x.NotFoundError", "no op") for one in plan]
    results[0].details["skew"] = {
        "kind": "unknown_op",
        "text": "unknown op '\x1b[2J\u202eFoo': since 2.21",
    }
    text = printed(plan, results, summarise(plan, results, Ledger(), TODAY, RUN))
    assert text.count("skew: ") == 1
    assert "skew: unknown op ' [2J Foo': since 2.21" in text


def test_the_terminal_report_of_a_good_run():
    plan = Plan((cell(0),))
    results = [result(plan, cell(0), "PASS")]
    lines = printed(plan, results, summarise(plan, results, Ledger(), TODAY, RUN)).splitlines()
    assert (lines[0], lines[-1]) == ("nothing unexpected", "exit 0: as expected")


@pytest.mark.parametrize("here", [False, True])
def test_progress_on_a_terminal_and_elsewhere(here):
    plan = Plan(tuple(cell(i) for i in range(40)))
    console = Console(file=io.StringIO(), force_terminal=here, width=200, highlight=False)
    progress = Progress("cells", "unexpected", console)
    progress.start(40)
    for one in plan:
        seen = ("CRASH", "SIGABRT", "\x1b[31mdied") if one.case == "c7" else ("PASS",)
        progress.advance(unexpected(Ledger().judged(one, result(plan, one, *seen))))
    progress.stop()
    text = console.file.getvalue()
    assert "unexpected CRASH c7/fixture@1.15.5/tf2@2.21.0/load SIGABRT [31mdied" in text
    assert ("40/40 cells, 1 unexpected" in text) != here
    assert here or len(text.splitlines()) == 1 + 1 + 1, (
        "the first line, the unexpected cell, the last line: less than ten seconds"
    )


@pytest.mark.parametrize(
    ("kept", "line"),
    [
        (0, "4/100 cells, 0 unexpected, 0.1/s, 24 min left"),
        (3, "4/100 cells, 0 unexpected, 3 kept, 0.0/s, 96 min left"),
        (4, "4/100 cells, 0 unexpected, 4 kept"),
    ],
)
def test_what_an_earlier_run_did_does_not_shorten_the_time_that_is_left(monkeypatch, kept, line):
    """Four cells after a minute; the others take as long as those of this run."""
    now = [0.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    console = Console(file=io.StringIO(), width=200, highlight=False)
    progress = Progress("cells", "unexpected", console)
    progress.start(100)
    for number in range(4):
        now[0] = 60.0 if number == 3 else now[0]
        progress.advance(kept=number < kept)
    assert console.file.getvalue().splitlines()[-1] == line


def test_one_line_of_untrusted_text():
    assert one_line("a\x07b\r\n c\u200b", 80) == "a b c"
    assert one_line("x" * 50, 10) == "xxxxxxx..."
