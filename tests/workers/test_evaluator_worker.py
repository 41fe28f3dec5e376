"""The consumer `evaluator`: cells of its own, answered without TensorFlow."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from compat_matrix.cells.consumers import CONSUMERS
from savedmodel_compat.cli import main

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"


def asked(out, *cases):
    """Return the outcome, error class and message of the evaluator's cells about some fixtures."""
    arguments = ["--fixtures", str(FIXTURES), "--consumer", "evaluator", "--out", str(out)]
    CliRunner().invoke(main, ["matrix", "run", *arguments, "--case", ",".join(cases)])
    lines = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    return {
        (line["cell"].split("/")[0], line["cell"].split("/")[-1]): line
        for line in lines
        if "/evaluator@" in line["cell"]
    }


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    return asked(out, "half_plus_two", "ragged_io", "dtypes_io", "py_func", "contrib_op")


@pytest.mark.parametrize("case", ["half_plus_two", "ragged_io", "dtypes_io"])
@pytest.mark.parametrize("check", ["load", "signatures", "values"])
def test_models_are_answered(results, case, check):
    assert results[case, check]["outcome"] == "PASS"


def test_no_tensorflow_is_imported(results):
    said = results["half_plus_two", "values"]
    assert said["libraries"] == []
    assert said["versions"]["evaluator"] == CONSUMERS["evaluator"].version
    assert "tensorflow" not in said["versions"]


@pytest.mark.parametrize(
    "case, error, words",
    [
        ("py_func", "reference_eval.errors.RefusedOpError", "runs Python of another process"),
        ("contrib_op", "reference_eval.errors.UnknownOpError", "not evaluated: op 'Resampler'"),
    ],
)
def test_what_is_not_evaluated_is_rejected_by_name(results, case, error, words):
    said = results[case, "values"]
    assert (said["outcome"], said["error_class"]) == ("REJECTED", error)
    assert words in said["message"]
