"""Warm-up requests run while a model server loads a model: `verify` counts what they reach as run
at load.
"""

import pytest
from model_edits import fixture

from property_tests.attacks import effects, forge
from reference_impl.format import limits
from savedmodel_tools.verify.rules import all_rules, choose
from savedmodel_tools.verify.run import verify

AT_LOAD = (
    "at load in a model server, by a warm-up request (signature serving_default) WriteFile writes a"
    " file"
)


def found(folder, rule):
    return [
        (item.severity.word, item.message) for item in verify(folder).findings if item.rule == rule
    ]


def made(attack, tmp_path):
    (tmp_path / "place").mkdir()
    attack(tmp_path / "place" / "model")
    return tmp_path / "place" / "model"


@pytest.mark.parametrize("attack", [effects.write_when_warmed_up, effects.warmup_of_junk])
def test_what_a_request_reaches_runs_at_load(attack, tmp_path):
    """Also if the file is damaged behind the request: the server has answered it by then."""
    ((severity, message),) = found(made(attack, tmp_path), "SMC601")
    assert severity == "error" and message.startswith(AT_LOAD)


def test_without_such_a_request_it_runs_at_a_call(tmp_path):
    model = made(effects.write_when_called, tmp_path)
    assert not found(model, "SMC601") and found(model, "SMC602")


@pytest.mark.parametrize(
    "kind", ["predict_log", "classify_log", "regress_log", "multi_inference_log"]
)
def test_requests_of_every_kind_count(kind, tmp_path):
    model = made(effects.write_when_called, tmp_path)
    log = effects.PredictionLog()
    request = getattr(log, kind).request
    (
        request.tasks.add() if kind == "multi_inference_log" else request
    ).model_spec.signature_name = ""  # the default one
    forge.warmup(model, log.SerializeToString())
    assert found(model, "SMC601")[0][1].startswith(AT_LOAD)


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        (effects.warmup_of_junk, "corrupted record at"),
        (effects.warmup_of_many, "it has more than 1000 records"),
        (
            effects.warmup_of_nobody,
            "a request asks the signature 'nobody', which the model does not have",
        ),
    ],
)
def test_requests_that_a_server_refuses_are_named(attack, message, tmp_path):
    ((severity, told),) = found(made(attack, tmp_path), "SMC541")
    assert severity == "error" and message in told


def test_a_record_that_is_no_request_or_of_an_unsupported_kind(tmp_path):
    model = made(effects.write_when_called, tmp_path)
    forge.warmup(model, b"", b"\xff\xff")
    assert found(model, "SMC541")[0][1].startswith("record 1: ")
    forge.warmup(model, effects.PredictionLog(session_run_log={}).SerializeToString())
    assert "session_run_log" in found(model, "SMC541")[0][1]


def test_a_rule_of_safety_does_not_pass_a_file_that_is_too_large_for_it(tmp_path, monkeypatch):
    model = made(effects.write_when_warmed_up, tmp_path)
    monkeypatch.setattr(limits, "WARMUP_RECORD_BYTES", 10)
    (finding,) = verify(model, choose(all_rules(), ["SMC601"])).findings
    assert (
        finding.rule == "SMC100"
        and finding.severity.word == "error"
        and "warmup record" in finding.message
    )


def test_real_requests():
    assert not found(fixture("warmup_estimator"), "SMC541") and not found(
        fixture("warmup_estimator"), "SMC601"
    )
    assert "Is this even a TFRecord file?" in found(fixture("estimator_custom"), "SMC541")[0][1]
