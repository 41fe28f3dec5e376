"""Cells from artifact to observation, with tests/support/fake_worker.py for a consumer.

Needs no TensorFlow.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_artifacts import cell, fake_host, function_request, run, saved_model, seal, write_artifact

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.results import Result
from compat_matrix.checks import CHECKS, run_cell
from compat_matrix.checks.kinds import relocate as relocate_check
from compat_matrix.hosts.host import Host
from compat_matrix.runtimes.worker import Worker
from reference_impl.format import schema
from savedmodel_common import tensors


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with fake_host(tmp_path) as host:
        yield host


@pytest.mark.parametrize(
    ("misbehave", "outcome"), [("load=skew", Outcome.LOAD_ERROR), ("call=skew", Outcome.CALL_ERROR)]
)
def test_a_version_skew_gets_its_name_and_place(
    host: Host, misbehave: str, outcome: Outcome
) -> None:
    seen = run(host, "values", misbehave)
    skew = seen.details["skew"]
    assert seen.outcome is outcome
    assert (skew["kind"], skew["op"], skew["node"], skew["tags"]) == (
        "unknown_op",
        "Placeholder",
        "x",
        ("serve",),
    )
    assert "here 1.0" in skew["text"] and "node 'x'" in skew["text"]
    result = Result.observed("plan", "cell", seen)
    assert result.skew == skew["text"] == Result.from_line(result.to_line()).skew
    assert (
        json.loads((host.out / seen.evidence["details"]).read_text())["skew"]["kind"]
        == "unknown_op"
    )


def test_a_crash_is_nobodys_skew_whatever_was_said_last(host: Host) -> None:
    """A worker that dies is a finding of its own; a known cause would make it look explained."""
    assert run(host, "load", "load=skew").details["skew"]["op"] == "Placeholder"
    seen = run(host, "load", "load=skewed_garbage")
    assert (seen.outcome, seen.error_class) == (Outcome.CRASH, "garbage")
    assert "Op type not registered 'Placeholder' in binary" in seen.message
    assert "skew" not in seen.details and Result.observed("plan", "cell", seen).skew == ""


def test_what_is_no_skew_has_none(host: Host) -> None:
    seen = run(host, "load", "load=error")
    assert seen.outcome is Outcome.LOAD_ERROR and "skew" not in seen.details
    assert Result.observed("plan", "cell", seen).skew == ""


@pytest.mark.parametrize("check", ["load", "signatures", "values", "relocate"])
def test_a_good_consumer_passes_and_leaves_no_evidence(host: Host, check: str) -> None:
    seen = run(host, check)
    assert (seen.outcome, seen.message) == (Outcome.PASS, "")
    assert seen.versions["fake"] == "1.0"
    assert seen.timings["load"] > 0
    assert seen.rss_kib
    assert seen.evidence == {}
    assert not (host.out / "evidence").exists()


@pytest.mark.parametrize(
    ("check", "misbehave", "outcome", "error_class", "message"),
    [
        ("load", "load=error", Outcome.LOAD_ERROR, "OSError", "no such op"),
        ("values", "load=error", Outcome.LOAD_ERROR, "OSError", "no such op"),
        ("values", "call=error", Outcome.CALL_ERROR, "OSError", "request r: no such op"),
        ("signatures", "signatures=error", Outcome.CALL_ERROR, "OSError", "no such op"),
        ("load", "load=refuse", Outcome.REJECTED, "__main__.Refusal", "this is by design"),
        (
            "values",
            "call=refuse",
            Outcome.REJECTED,
            "__main__.Refusal",
            "request r: this is by design",
        ),
        ("load", "load=unsupported", Outcome.SETUP_ERROR, None, "not in the vocabulary"),
        ("load", "load=abort", Outcome.CRASH, "SIGABRT", "killed by SIGABRT"),
        (
            "values",
            "call=abort",
            Outcome.CRASH,
            "SIGABRT",
            "killed by SIGABRT while it was asked to 'call'",
        ),
        ("values", "call=garbage", Outcome.CRASH, "garbage", "no reply"),
        ("load", "load=disk", Outcome.ENV_ERROR, "OSError", "No space left"),
        (
            "values",
            "call=wrong",
            Outcome.FAIL_VALUE,
            None,
            "request r: y: element [1] is 4.0, expected 3.0 (1 of 2 differ",
        ),
        ("relocate", "call=wrong", Outcome.FAIL_VALUE, None, "element [1] is 4.0"),
        ("values", "call=double", Outcome.FAIL_SIGNATURE, None, "y: is float64, expected float32"),
        ("values", "output=z", Outcome.FAIL_SIGNATURE, None, "missing 'y'; unexpected 'z'"),
        (
            "signatures",
            "output=z",
            Outcome.FAIL_SIGNATURE,
            None,
            "output of 'serving_default': 'y' is missing",
        ),
    ],
)
def test_every_failure_has_its_outcome(
    host: Host, check: str, misbehave: str, outcome: Outcome, error_class: str | None, message: str
) -> None:
    seen = run(host, check, misbehave)
    assert seen.outcome is outcome
    assert message in seen.message
    assert error_class in (None, seen.error_class)
    assert run(host, check).outcome is Outcome.PASS  # and costs this cell only


@pytest.mark.parametrize(
    ("says", "outcome"),
    [("2.1.0", Outcome.FAIL_STRUCTURE), ("1.15.5", Outcome.PASS), ("", Outcome.PASS)],
)
def test_a_model_that_names_another_writer_than_its_provenance(
    host: Host, says: str, outcome: Outcome
) -> None:
    artifact = write_artifact(host.out / f"written-by-{says or 'nobody'}")
    message = schema.parse(schema.SavedModel, saved_model())
    message.meta_graphs[0].meta_info_def.tensorflow_version = says
    (artifact / "model" / "saved_model.pb").write_bytes(schema.serialize(message))
    seal(artifact)
    facts = json.loads((artifact / "provenance.json").read_text())
    producer = {"name": "fixture", "versions": {"tensorflow": "1.15.5"}}
    (artifact / "provenance.json").write_text(json.dumps({**facts, "producer": producer}))
    seen = run_cell(cell("signatures", artifact), host, host.out)
    assert seen.outcome is outcome, seen.message
    said = "the model says that TensorFlow 2.1.0 wrote it, its provenance says 1.15.5"
    assert (said in seen.message) == (outcome is not Outcome.PASS)


@pytest.mark.parametrize(
    ("producer", "misbehave", "message"),
    [
        ("tf2", "", ""),
        ("tf2", "resave=error", "no such op"),
        ("tf2", "resave=lose", "after the re-export: signature 'serving_default' is missing"),
        (
            "tf2",
            "resave=classify",
            (
                "the method of signature 'serving_default' is 'tensorflow/serving/classify', it was"
                " 'tensorflow/serving/predict'"
            ),
        ),
        ("tf2", "resave=settle", "saving the re-export again gives another model: graph differ"),
        ("fixture", "resave=settle", ""),
        ("fixture", "resave=grow", "saving the re-export again gives another model: graph differ"),
    ],
)
def test_a_re_export_keeps_everything_and_comes_to_rest(
    host: Host, producer: str, misbehave: str, message: str
) -> None:
    """What another writer made may take one save more until nothing changes (the first adds a node,
    the second another).
    """
    write_artifact(host.out.parent / "artifact", misbehave)
    seen = run_cell(
        cell("reexport", host.out.parent / "artifact", producer=producer), host, host.out
    )
    assert message in seen.message
    assert (seen.outcome is Outcome.PASS) == (not message)


@pytest.mark.parametrize(
    ("misbehave", "message"),
    [("", ""), ("resave=forget", "extra assets after the re-export (0, before 1)")],
)
def test_a_re_export_keeps_the_files_that_no_graph_knows_of(
    host: Host, misbehave: str, message: str
) -> None:
    artifact = write_artifact(host.out.parent / "artifact", misbehave)
    (artifact / "model" / "assets.extra").mkdir()
    (artifact / "model" / "assets.extra" / "tf_serving_warmup_requests").write_bytes(b"records")
    seal(artifact)
    seen = run_cell(cell("reexport", artifact), host, host.out)
    assert message in seen.message
    assert (seen.outcome is Outcome.PASS) == (not message)


@pytest.mark.parametrize(("timeout", "limit"), [(None, 60.0), (7.5, 7.5)])
def test_every_step_has_the_limit_of_its_case_or_a_minute(
    host: Host, monkeypatch: pytest.MonkeyPatch, timeout: float | None, limit: float
) -> None:
    limits: dict[str, set[float]] = {}
    request = Worker.request

    def noted(self: Worker, op: str, limit: float, *rest: Any, **fields: Any) -> dict[str, Any]:
        limits.setdefault(op, set()).update({limit, fields.get("timeout", limit)})
        return request(self, op, limit, *rest, **fields)

    monkeypatch.setattr(Worker, "request", noted)
    artifact = write_artifact(host.out.parent / "artifact")
    for check in ("load", "signatures", "values", "relocate", "reexport"):
        assert (
            run_cell(cell(check, artifact, timeout=timeout), host, host.out).outcome is Outcome.PASS
        )
    steps = {op: found for op, found in limits.items() if op != "close"}
    assert set(steps) >= {"load", "signatures", "call", "resave"}
    assert set().union(*steps.values()) == {limit}


def test_a_step_that_takes_too_long_is_a_timeout(host: Host) -> None:
    artifact = write_artifact(host.out.parent / "slow", "call=hang")
    host.worker("fake", "tf2_worker").hello()
    seen = run_cell(cell("values", artifact, timeout=1.0), host, host.out)
    assert (seen.outcome, seen.error_class) == (Outcome.TIMEOUT, "TimeLimit")


def test_a_pass_keeps_digests_and_only_the_answers_that_are_not_the_recorded_ones(
    host: Host,
) -> None:
    exact = run(host, "values")
    inexact = run(
        host, "values", "call=near", tolerance={"rtol": 0, "atol": 1e-3, "reason": "a test"}
    )
    assert exact.outcome is inexact.outcome is Outcome.PASS
    assert exact.details["answers"].keys() == inexact.details["answers"].keys() == {"r"}
    assert exact.details["answers"] != inexact.details["answers"]
    assert "inexact" not in exact.details
    kept = inexact.evidence[inexact.details["inexact"]["r"]]
    assert tensors.load(host.out / kept)["y"].array.tolist() == [2.5, 3 + 2**-10]
    failed = run(host, "values", "call=near")
    assert (failed.outcome, failed.details["answers"]) == (
        Outcome.FAIL_VALUE,
        inexact.details["answers"],
    )


def test_the_evidence_of_a_wrong_value_is_complete(host: Host) -> None:
    seen = run(host, "values", "call=wrong")
    assert set(seen.evidence) == {"expected", "got", "details"}
    assert tensors.load(host.out / seen.evidence["got"])["y"].array.tolist() == [2.5, 4.0]
    assert tensors.load(host.out / seen.evidence["expected"])["y"].array.tolist() == [2.5, 3.0]
    assert json.loads((host.out / seen.evidence["details"]).read_text())["request"] == "r"
    assert run(host, "values").evidence == {}
    assert not (
        host.out / "evidence" / cell("values").id
    ).exists()  # what an earlier execution left is gone


def test_the_evidence_of_an_error_has_traceback_and_log(host: Host) -> None:
    seen = run(host, "values", "call=error")
    assert "in misbehave" in (host.out / seen.evidence["traceback"]).read_text()
    seen = run(host, "load", "load=abort")
    assert "about to abort" in (host.out / seen.evidence["stderr"]).read_text()


def test_a_tolerance_of_the_artifact_is_used(host: Host) -> None:
    assert (
        run(
            host, "values", "call=near", tolerance={"rtol": 0, "atol": 1e-3, "reason": "a test"}
        ).outcome
        is Outcome.PASS
    )
    assert run(host, "values", "call=near").outcome is Outcome.FAIL_VALUE


@pytest.mark.parametrize(
    "tolerance",
    [{"rtol": 1e300, "atol": 0}, {"rtol": 0, "atol": 1e300}, {"rtol": 0.1, "atol": 0.5}],
)
def test_an_artifact_cannot_state_a_tolerance_that_makes_any_answer_right(
    host: Host, tolerance: dict[str, float]
) -> None:
    seen = run(host, "values", "call=wrong", tolerance={**tolerance, "reason": "trust me"})
    assert seen.outcome is Outcome.FAIL_VALUE
    assert "for float32 only 0.01 and 0.001 count" in seen.message
    host.tolerance = (0.0, 1.0)  # the user says so
    assert run(host, "values", "call=wrong").outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("compared", "why"), [([], "names no output"), (["z"], "names 'z': no such answer is recorded")]
)
def test_an_artifact_cannot_have_nothing_compared(
    host: Host, compared: list[str], why: str
) -> None:
    request = {
        "id": "r",
        "kind": "signature",
        "tags": ["serve"],
        "signature": "s",
        "inputs": "in.npz",
        "outputs": "out.npz",
    }
    seen = run(host, "values", "call=wrong", requests=[{**request, "compared": compared}])
    assert seen.outcome is Outcome.FAIL_STRUCTURE
    assert why in seen.message


def test_an_answer_that_is_not_due_is_a_failure(host: Host) -> None:
    request = {
        "id": "r",
        "kind": "signature",
        "tags": ["serve"],
        "signature": "s",
        "inputs": "in.npz",
        "outputs": None,
    }
    seen = run(host, "values", requests=[request])
    assert (seen.outcome, seen.message.partition(":")[0]) == (Outcome.FAIL_VALUE, "request r")


def test_a_result_of_another_structure_is_told_from_another_value(host: Host) -> None:
    seen = run(host, "values", requests=[function_request("loads", [1])])
    assert (seen.outcome, seen.message.partition(":")[0]) == (
        Outcome.FAIL_STRUCTURE,
        "request loads",
    )


def test_requests_a_consumer_cannot_answer_are_left_out(host: Host) -> None:
    artifact = write_artifact(
        host.out.parent / "functions", requests=[function_request("loads", [1])]
    )
    assert (
        run_cell(cell("values", artifact, consumer="c_api"), host, host.out).outcome is Outcome.PASS
    )


def test_a_stateful_artifact_gets_a_fresh_model_for_each_check(host: Host) -> None:
    artifact = write_artifact(
        host.out.parent / "fresh", stateful=True, requests=[function_request("loads", 1)]
    )
    assert run_cell(cell("values", artifact), host, host.out).outcome is Outcome.PASS
    assert "is int 2, expected int 1" in run_cell(cell("values", artifact), host, host.out).message
    for check in ("load", "signatures", "values"):  # the first two do not call it
        seen = run_cell(cell(check, artifact), host, host.out)
    assert "is int 3, expected int 1" in seen.message
    stateless = write_artifact(host.out.parent / "shared", requests=[function_request("loads", 4)])
    assert [run_cell(cell("values", stateless), host, host.out).outcome for _ in range(2)] == [
        Outcome.PASS
    ] * 2


def test_all_findings_are_listed_and_the_first_decides(host: Host) -> None:
    requests = [function_request("loads", structure) for structure in (1, 2, 3)]
    seen = run(host, "values", requests=requests)
    assert seen.message.endswith("is int 1, expected int 2")
    assert seen.details["findings"] == 2
    assert "expected int 3" in seen.details["also"][0]


def test_a_full_disk_is_the_environment_and_a_bug_of_ours_is_not(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error, outcome in (
        (OSError(errno.ENOSPC, "full"), Outcome.ENV_ERROR),
        (OSError(errno.EDQUOT, "over the quota"), Outcome.ENV_ERROR),
        (OSError(errno.EIO, "a broken disk"), Outcome.ENV_ERROR),
        (OSError(errno.EROFS, "mounted for reading"), Outcome.ENV_ERROR),
        (OSError(errno.EACCES, "not ours"), Outcome.SETUP_ERROR),
        (OSError(errno.ENOENT, "gone"), Outcome.SETUP_ERROR),
        (OSError("odd"), Outcome.SETUP_ERROR),
        (KeyError("x"), Outcome.SETUP_ERROR),
    ):

        def fail(*_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(relocate_check, "moved_copy", fail)
        seen = run(host, "relocate")
        assert seen.outcome is outcome
        assert "Traceback" in (host.out / seen.evidence["harness"]).read_text()


def test_the_table_of_checks_decides_what_applies() -> None:
    functions, session = {"functions", "resave", "variables", "tags"}, {"fetch", "tags"}
    assert CHECKS["load"].not_applicable(session, []) is None
    assert CHECKS["values"].not_applicable(functions, ["function"]) is None
    assert "no request" in str(CHECKS["values"].not_applicable(session, ["function"]))
    assert CHECKS["values"].not_applicable(session, ["function", "signature"]) is None
    assert "no request" in str(CHECKS["relocate"].not_applicable(functions, []))
    assert "resave" in str(CHECKS["reexport"].not_applicable(session, []))
    assert CHECKS["checkpoint"].not_applicable(session, []) is None
    assert CHECKS["checkpoint"].not_applicable({"tags"}, []) is not None
