"""Level L3: the answers of a program that speaks the worker protocol."""

import json
import sys
from pathlib import Path

import pytest

import savedmodel_plugin_kit
from savedmodel_kit import answers, artifacts, constraints
from savedmodel_kit.answers import NAME, Answered, RunError, ask_worker
from savedmodel_kit.build import write_folder
from savedmodel_kit.score import open_kit, score_answers

RULES = constraints.read()
SAMPLE = Path(savedmodel_plugin_kit.__file__).parent / "samples/numpy_consumer.py"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A kit of a model that the sample evaluates, and of one that it refuses."""
    wanted = ("fixtures_v1/dtypes_reference", "fixtures_v1/contrib_op")
    folder = tmp_path_factory.mktemp("small") / "kit"
    write_folder(folder, [one for one in artifacts.committed() if one.name in wanted])
    return open_kit(folder)


def results(folder, *rows):
    file = folder / "results.jsonl"
    lines = [
        {"cell": f"{case}/fixture@1/{consumer}@1/{check}", "outcome": outcome, "message": "so"}
        for case, consumer, check, outcome in rows
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_what_came_of_a_case(tmp_path):
    file = results(
        tmp_path,
        ("right", NAME, "load", "PASS"),
        ("right", NAME, "values", "PASS"),
        ("refused", NAME, "load", "PASS"),
        ("refused", NAME, "values", "CALL_ERROR"),
        ("wrong", NAME, "values", "FAIL_VALUE"),
        ("dead", NAME, "load", "CRASH"),
        ("left_out", NAME, "load", "NOT_RUN"),
        ("left_out", "tf2", "load", "PASS"),
    )
    assert answers._answered(file) == {
        ("right", "fixture@1"): Answered(),
        ("refused", "fixture@1"): Answered(refused="values: CALL_ERROR: so"),
        ("wrong", "fixture@1"): Answered(fault="values: FAIL_VALUE: so"),
        ("dead", "fixture@1"): Answered(fault="load: CRASH: so"),
    }


def test_a_program_is_asked(small, tmp_path):
    found = ask_worker(f"{sys.executable} {SAMPLE}", small.artifacts(), tmp_path)
    assert found["artifacts/fixtures_v1/dtypes_reference"] == Answered()
    assert found["artifacts/fixtures_v1/contrib_op"].refused
    made = score_answers(small, found, RULES)
    assert made.counts("L3") == ((1, 2), (0, 0))
    assert {"SM-META-13", "SM-LOAD-8"} <= set(made.kept)
    assert made.broken == []


def test_a_wrong_answer_breaks_what_the_artifact_shows(small):
    name = "artifacts/fixtures_v1/dtypes_reference"
    made = score_answers(small, {name: Answered(fault="values: FAIL_VALUE: y")}, RULES)
    assert "SM-META-13" in made.broken
    assert [one.fault for one in made.faults()] == ["values: FAIL_VALUE: y"]


def test_a_refusal_shows_no_more_than_a_refusal(small):
    name = "artifacts/fixtures_v1/dtypes_reference"
    made = score_answers(small, {name: Answered(refused="load: LOAD_ERROR: no")}, RULES)
    assert (made.kept, made.broken) == ([], [])
    assert made.counts("L3") == ((0, 1), (0, 0))


def test_artifacts_that_contradict_their_signatures_have_no_right_answer(kit):
    name = "artifacts/fixtures_v1/false_output_shape"
    made = score_answers(kit, {name: Answered(fault="values: FAIL_SIGNATURE")}, RULES)
    assert made.observations == []


def test_a_run_that_cannot_start(small, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RunError, match="could not run"):
        ask_worker("true", small.artifacts(), tmp_path)


def test_artifacts_without_a_provenance_are_left_out(tmp_path):
    (tmp_path / "mine/model").mkdir(parents=True)
    assert ask_worker("true", {"mine": tmp_path / "mine/model"}, tmp_path / "out") == {}
