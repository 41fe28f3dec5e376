"""What the op history predicts is the expectation of a run: real models, real processes, and
histories with planted errors.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell
from compat_matrix.cells.results import Result
from compat_matrix.engine.predict import Predictor
from compat_matrix.runtimes.places import RuntimeTrouble
from compat_matrix.runtimes.resolve import resolve
from compat_matrix.verdict import NO_ENTRIES, Ledger
from compat_matrix.verdict.ledger import Verdict
from compat_matrix.verdict.prediction import KEY, Cause, Prediction, Says, holds, of
from savedmodel_compat.cli import main
from savedmodel_tools.skew.history import TABLE, History, history
from savedmodel_tools.skew.table import encode

ROOT = Path(__file__).parents[2]
ARTIFACT = ROOT / "fixtures_v1" / "half_plus_two"
UNKNOWN_ATTR = {
    "kind": "unknown_attr",
    "op": "VarHandleOp",
    "attr": "debug_name",
    "cause": "unknown attr",
}
NO_ATTR = Prediction(Says.FAILS, (Cause("unknown_attr", "VarHandleOp", "debug_name"),))


def run(out, *cases, op_history=None):
    """`matrix run` of cases with no ledger; (exit code, output, summary)."""
    command = [
        sys.executable,
        "-m",
        "savedmodel_compat",
        "matrix",
        "run",
        "--out",
        str(out),
        "-n",
        "1",
    ]
    command += [word for case in cases for word in ("--case", case)] + [
        "--consumer",
        "c_api",
        "--consumer",
        "-",
    ]
    command += [
        "--producer",
        "fixture",
        "--check",
        "load",
        "--check",
        "values",
        "--expectations",
        str(NO_ENTRIES),
    ]
    for case in ("contrib_op", "half_plus_two", "simple_save"):
        shutil.copytree(ROOT / "fixtures_v1" / case, out.parent / "fixtures" / case)
    command += ["--fixtures", str(out.parent / "fixtures")]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    if op_history is not None:
        (out.parent / "history.jsonl").write_text(op_history)
        env["SAVEDMODEL_COMPAT_OP_HISTORY"] = str(out.parent / "history.jsonl")
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    return (
        done.returncode,
        done.stdout + done.stderr,
        json.loads((out / "summary.json").read_text()),
    )


def planted(op, **members):
    """The text of the op history with the line of one op changed."""
    lines = TABLE.read_text().splitlines()
    for number, line in enumerate(lines):
        if line.startswith(f'{{"op":"{op}",'):
            lines[number] = json.dumps({**json.loads(line), **members}, separators=(",", ":"))
            return "\n".join(lines) + "\n"
    raise LookupError(op)


def without(*releases):
    """The op history of 2.13 and newer, without some releases."""
    table = history()
    kept = [
        (index, release)
        for index, release in enumerate(table.releases)
        if index >= table.index("2.13")
    ]
    return encode(
        [
            (release, table.snapshot(index))
            for index, release in kept
            if release.name not in releases
        ]
    )


@pytest.mark.tensorflow
def test_a_skew_that_is_predicted_needs_no_entry(tmp_path):
    code, output, summary = run(tmp_path / "out", "contrib_op", "half_plus_two")
    assert code == 0, output
    assert summary["by_outcome"]["LOAD_ERROR"] > 0
    assert summary["predictions"]["right"] > summary["by_outcome"]["LOAD_ERROR"]
    assert summary["predictions"]["wrong"] == 0
    assert "predictions of the" in output


@pytest.mark.tensorflow
def test_an_op_that_the_history_has_and_the_release_does_not_turns_the_run_red(tmp_path):
    code, output, summary = run(
        tmp_path / "out", "contrib_op", op_history=planted("Resampler", **{"in": "1.4-", "lib": ""})
    )
    assert code == 1, output
    assert {fact["kind"] for fact in summary["unexpected"]} == {"unexpected_fail"}
    assert "predicted: passes; observed: LOAD_ERROR" in output
    assert "op 'Resampler'" in output


@pytest.mark.tensorflow
def test_an_op_that_is_missing_from_the_history_turns_the_run_red(tmp_path):
    code, output, summary = run(
        tmp_path / "out", "half_plus_two", op_history=planted("Mul", **{"in": "1.4-2.20"})
    )
    assert code == 1, output
    assert {fact["kind"] for fact in summary["unexpected"]} == {"wrong_prediction"}
    assert "op 'Mul'; observed: PASS" in output
    assert summary["predictions"]["wrong"] == len(summary["unexpected"])


@pytest.mark.tensorflow
def test_a_release_that_the_history_does_not_have_yet_is_predicted_from_the_one_before(tmp_path):
    code, output, summary = run(
        tmp_path / "out", "contrib_op", "half_plus_two", op_history=without("2.21")
    )
    assert code == 0, output
    assert summary["predictions"]["right"] > 0 == summary["predictions"]["wrong"]


@pytest.mark.tensorflow
def test_a_check_in_another_release_says_what_was_predicted_and_fails_all_the_same(tmp_path):
    try:
        resolve("2.8")
    except RuntimeTrouble as error:
        pytest.skip(f"the runtime of 2.8 is not installed: {error}")
    model = ROOT / "fixtures_v1" / "contrib_op" / "model"
    command = [
        "check",
        str(model),
        "--runtime",
        "2.8",
        "--consumer",
        "c_api",
        "--check",
        "load",
        "--out",
        str(tmp_path / "out"),
    ]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 1, done.output
    assert "predicted by the" in done.output and "op 'Resampler'" in done.output


@pytest.mark.tensorflow
def test_a_check_says_why_the_local_release_fails_where_the_history_knows_it(tmp_path):
    model = ROOT / "fixtures_v1" / "keras_compiled_save" / "model"
    done = CliRunner().invoke(
        main,
        [
            "check",
            str(model),
            "--consumer",
            "tf2",
            "--check",
            "load",
            "--out",
            str(tmp_path / "out"),
        ],
    )
    assert done.exit_code == 1, done.output
    lacks = (
        "the optimizer class of Keras 2, for its slot variables (add_slot): import keras (2.6) or"
        " tf_keras"
    )
    assert "predicted by the" in done.output and lacks in done.output


def cell(version):
    return Cell(
        "half_plus_two", "fixture", "1.15.5", "c_api", version, "values", "x", str(ARTIFACT)
    )


def test_a_release_left_out_is_predicted_from_its_neighbours(tmp_path):
    lines = without("2.15").splitlines()
    table = History("\n".join(lines))
    assert Predictor(tmp_path, ["2.15.1"], table).of(cell("2.15.1")) == Prediction(Says.PASSES)
    known = table.line("Mul")
    known["in"] = "2.16-"
    changed = [
        json.dumps(known, separators=(",", ":")) if line.startswith('{"op":"Mul",') else line
        for line in lines
    ]
    between = Predictor(tmp_path, ["2.15.1"], History("\n".join(changed))).of(cell("2.15.1"))
    assert between.says is Says.UNKNOWN
    assert "2.14: " in between.why and "op 'Mul'" in between.why
    assert "2.16: passes" in between.why


def test_what_is_not_a_release_is_not_predicted(tmp_path):
    assert Predictor(tmp_path, ["absent"]).of(cell("absent")) is None


def result(outcome, prediction=None, skew=None, message="NodeDef mentions attr 'debug_name'"):
    details = {} if skew is None else {"skew": skew}
    if prediction is not None:
        details[KEY] = prediction.to_json()
    return Result("p", "c", outcome, "E", message, message, details=details)


@pytest.mark.parametrize(
    ("outcome", "skew", "prediction", "verdict"),
    [
        (Outcome.LOAD_ERROR, UNKNOWN_ATTR, NO_ATTR, Verdict.AS_EXPECTED),
        (Outcome.LOAD_ERROR, {**UNKNOWN_ATTR, "attr": "other"}, NO_ATTR, Verdict.WRONG_PREDICTION),
        (Outcome.LOAD_ERROR, None, NO_ATTR, Verdict.WRONG_PREDICTION),
        (Outcome.CRASH, UNKNOWN_ATTR, NO_ATTR, Verdict.WRONG_PREDICTION),
        (Outcome.PASS, None, NO_ATTR, Verdict.WRONG_PREDICTION),
        (Outcome.LOAD_ERROR, UNKNOWN_ATTR, Prediction(Says.PASSES), Verdict.UNEXPECTED_FAIL),
        (
            Outcome.LOAD_ERROR,
            UNKNOWN_ATTR,
            Prediction(Says.UNKNOWN, why="?"),
            Verdict.UNEXPECTED_FAIL,
        ),
        (Outcome.PASS, None, Prediction(Says.UNKNOWN, why="?"), Verdict.AS_EXPECTED),
        (Outcome.PASS, None, Prediction(Says.PASSES), Verdict.AS_EXPECTED),
        (Outcome.SETUP_ERROR, None, NO_ATTR, Verdict.UNEXPECTED_FAIL),
        (Outcome.LOAD_ERROR, UNKNOWN_ATTR, None, Verdict.UNEXPECTED_FAIL),
    ],
)
def test_without_an_entry_the_prediction_decides(outcome, skew, prediction, verdict):
    assert Ledger().verdict(cell("2.4.4"), result(outcome, prediction, skew))[0] is verdict


ENTRY = """
schema = 1
[[expect]]
case = "half_plus_two"
producer = "*"
consumer = "c_api"
check = "values"
outcome = "{outcome}"
{more}
kind = "by_design"
reason = "seen"
added = 2026-11-23
"""


def test_an_entry_decides_against_a_prediction():
    failing = Ledger.parse(ENTRY.format(outcome="LOAD_ERROR", more='message = "debug"'))
    assert (
        failing.verdict(cell("2.4.4"), result(Outcome.LOAD_ERROR, Prediction(Says.PASSES)))[0]
        is Verdict.AS_EXPECTED
    )
    assert (
        failing.verdict(cell("2.4.4"), result(Outcome.PASS, NO_ATTR))[0] is Verdict.UNEXPECTED_PASS
    )
    passing = Ledger.parse(ENTRY.format(outcome="PASS", more='issue = "https://example.org/1"'))
    assert passing.verdict(cell("2.4.4"), result(Outcome.PASS, NO_ATTR))[0] is Verdict.AS_EXPECTED
    assert (
        passing.verdict(cell("2.4.4"), result(Outcome.LOAD_ERROR, NO_ATTR, UNKNOWN_ATTR))[0]
        is Verdict.WRONG_ERROR
    )
    with pytest.raises(ValueError, match="needs an issue"):
        Ledger.parse(ENTRY.format(outcome="PASS", more=""))


def test_a_cell_with_an_entry_may_fail_for_what_is_predicted_of_it():
    ledger = Ledger.parse(
        ENTRY.format(outcome="LOAD_ERROR", more='message = "the checkpoint is damaged"')
    )
    assert (
        ledger.verdict(cell("2.4.4"), result(Outcome.LOAD_ERROR, NO_ATTR, UNKNOWN_ATTR))[0]
        is Verdict.AS_EXPECTED
    )
    assert (
        ledger.verdict(cell("2.4.4"), result(Outcome.LOAD_ERROR, NO_ATTR))[0] is Verdict.WRONG_ERROR
    )
    assert (
        ledger.verdict(cell("2.4.4"), result(Outcome.PASS, NO_ATTR))[0] is Verdict.UNEXPECTED_PASS
    )


@pytest.mark.parametrize(
    "kept",
    [{}, "text", {"says": "perhaps"}, {"says": "fails", "causes": [{"colour": "red"}]}, None],
)
def test_a_prediction_that_cannot_be_read_predicts_nothing(kept):
    found = result(Outcome.LOAD_ERROR)
    found.details[KEY] = kept
    assert of(found) is None
    assert Ledger().verdict(cell("2.4.4"), found)[0] is Verdict.UNEXPECTED_FAIL


def test_a_prediction_is_read_as_it_was_kept():
    late = Prediction(Says.FAILS, (), "", "call")
    for prediction in (NO_ATTR, Prediction(Says.PASSES), Prediction(Says.UNKNOWN, why="?"), late):
        assert of(result(Outcome.PASS, prediction)) == prediction


def test_an_op_of_contrib_is_an_unknown_op():
    cause = Prediction(Says.FAILS, (Cause("unknown_op", "Resampler"),))
    for kind in ("unknown_op", "removed_op", "renamed_contrib_op"):
        assert holds(cause, result(Outcome.LOAD_ERROR, skew={"kind": kind, "op": "Resampler"}))
    assert not holds(
        cause, result(Outcome.LOAD_ERROR, skew={"kind": "unknown_op", "op": "GatherTree"})
    )


def test_every_bug_in_our_ledger_names_an_issue_or_an_end():
    from compat_matrix.verdict import DEFAULT_PATH

    entries = Ledger.read(DEFAULT_PATH).entries
    assert [
        entry.title()
        for entry in entries
        if entry.kind == "bug" and not (entry.issue or entry.until)
    ] == []
    assert [entry.title() for entry in entries if entry.rule] == []
