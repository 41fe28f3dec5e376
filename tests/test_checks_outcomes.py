"""Cells from artifact to observation, with tests/fake_worker.py for a consumer. Needs no TensorFlow."""

from __future__ import annotations

import errno
import json
import multiprocessing
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_workers_protocol import fake_runtime

from compat_matrix.checks import CHECKS, NotProduced, run_cell
from compat_matrix.checks import relocate as relocate_check
from compat_matrix.checks.artifact import altered_files
from compat_matrix.checks.produce import produce
from compat_matrix.outcomes import Outcome
from compat_matrix.plan import Cell
from compat_matrix.results import Observation, Result
from compat_matrix.runtimes import Host
from compat_matrix.workers import tensors
from compat_matrix.workers.provenance import hash_files
from reference_impl.format import schema

CASE = '''"""A case for a producer that needs no TensorFlow."""
CLAUSES = ("FN-01",)
FEATURES = ("nothing",)
def build(tf, work): return None
def requests(np): return [("serving_default", {"x": np.float32([1])})]
'''


def cell(check: str, artifact: Path | str = "artifact", **fields: Any) -> Cell:
    names = {"case": "half", "producer": "fixture", "producer_version": "1.15.5", "consumer": "tf2", "consumer_version": "1.0"}
    if check == "produce":
        names.update(producer="tf2", producer_version="1.0", consumer="-", consumer_version="")
    return Cell(**{**names, **fields}, check=check, runtime="fake", producer_runtime="fake", artifact=str(artifact))


def saved_model() -> bytes:
    """The SavedModel of ``y = x / 2 + 2`` as far as a signature goes."""
    model = schema.SavedModel(saved_model_schema_version=1)
    graph = model.meta_graphs.add()
    graph.meta_info_def.tags.append("serve")
    graph.graph_def.node.add(name="x", op="Placeholder").attr["dtype"].type = schema.DT_FLOAT
    signature = graph.signature_def["serving_default"]
    signature.method_name = "tensorflow/serving/predict"
    for name, infos in (("x", signature.inputs), ("y", signature.outputs)):
        infos[name].name = "x:0"
        infos[name].dtype = schema.DT_FLOAT
        infos[name].tensor_shape.dim.add().size = -1
    return schema.serialize(model)


def write_artifact(directory: Path, misbehave: str = "", **fields: Any) -> Path:
    """An artifact whose consumer behaves as ``misbehave`` says; ``fields`` go into io.json."""
    for folder in ("model", "io"):
        (directory / folder).mkdir(parents=True)
    (directory / "model" / "saved_model.pb").write_bytes(saved_model())
    (directory / "model" / "misbehave").write_text(misbehave)
    tensors.save(directory / "io" / "in.npz", {"x": tensors.from_numpy(np.float32([1, 2]))})
    tensors.save(directory / "io" / "out.npz", {"y": tensors.from_numpy(np.float32([2.5, 3]))})
    request = {
        "id": "r",
        "kind": "signature",
        "tags": ["serve"],
        "signature": "serving_default",
        "inputs": "in.npz",
        "outputs": "out.npz",
    }
    io: dict[str, Any] = {"schema": 1, "stateful": False, "tolerance": {"rtol": 0, "atol": 0}, "requests": [request], **fields}
    (directory / "io" / "io.json").write_text(json.dumps(io))
    seal(directory)
    return directory


def seal(directory: Path) -> None:
    (directory / "provenance.json").write_text(json.dumps({"schema": 1, "files": hash_files(directory)}))


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    cases = tmp_path / "cases"
    cases.mkdir()
    (cases / "half.py").write_text(CASE)
    with Host(tmp_path / "out", {"fake": fake_runtime(tmp_path)}, cases) as host:
        yield host


def run(host: Host, check: str, misbehave: str = "", **fields: Any) -> Observation:
    artifact = host.out.parent / "artifact"
    shutil.rmtree(artifact, ignore_errors=True)
    write_artifact(artifact, misbehave, **fields)
    return run_cell(cell(check, artifact), host, host.out)


@pytest.mark.parametrize(("misbehave", "outcome"), [("load=skew", Outcome.LOAD_ERROR), ("call=skew", Outcome.CALL_ERROR)])
def test_a_version_skew_gets_its_name_and_place(host: Host, misbehave: str, outcome: Outcome) -> None:
    seen = run(host, "values", misbehave)
    skew = seen.details["skew"]
    assert seen.outcome is outcome
    assert (skew["kind"], skew["op"], skew["node"], skew["tags"]) == ("unknown_op", "Placeholder", "x", ("serve",))
    assert "here 1.0" in skew["text"] and "node 'x' of the main graph" in skew["text"]
    result = Result.observed("plan", "cell", seen)
    assert result.skew == skew["text"] == Result.from_line(result.to_line()).skew
    assert json.loads((host.out / seen.evidence["details"]).read_text())["skew"]["kind"] == "unknown_op"


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
        ("values", "call=refuse", Outcome.REJECTED, "__main__.Refusal", "request r: this is by design"),
        ("load", "load=unsupported", Outcome.SETUP_ERROR, None, "not in the vocabulary"),
        ("load", "load=abort", Outcome.CRASH, "SIGABRT", "killed by SIGABRT"),
        ("values", "call=abort", Outcome.CRASH, "SIGABRT", "killed by SIGABRT while it was asked to 'call'"),
        ("values", "call=garbage", Outcome.CRASH, "garbage", "no reply"),
        ("load", "load=disk", Outcome.ENV_ERROR, "OSError", "No space left"),
        ("values", "call=wrong", Outcome.FAIL_VALUE, None, "request r: y: element [1] is 4.0, expected 3.0 (1 of 2 differ"),
        ("relocate", "call=wrong", Outcome.FAIL_VALUE, None, "element [1] is 4.0"),
        ("values", "call=double", Outcome.FAIL_SIGNATURE, None, "y: is float64, expected float32"),
        ("values", "output=z", Outcome.FAIL_SIGNATURE, None, "missing 'y'; unexpected 'z'"),
        ("signatures", "output=z", Outcome.FAIL_SIGNATURE, None, "output of 'serving_default': 'y' is missing"),
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
    ("producer", "misbehave", "message"),
    [
        ("tf2", "", ""),
        ("tf2", "resave=error", "no such op"),
        ("tf2", "resave=lose", "after the re-export: signature 'serving_default' is missing"),
        ("tf2", "resave=classify", "the method of signature 'serving_default' is 'classify', it was 'predict'"),
        ("tf2", "resave=settle", "saving the re-export again gives another model: graph differ"),
        ("fixture", "resave=settle", ""),
        ("fixture", "resave=grow", "saving the re-export again gives another model: graph differ"),
    ],
)
def test_a_re_export_keeps_everything_and_comes_to_rest(host: Host, producer: str, misbehave: str, message: str) -> None:
    """What another writer made may take one save more until nothing changes (the first adds a node, the second another)."""
    write_artifact(host.out.parent / "artifact", misbehave)
    seen = run_cell(cell("reexport", host.out.parent / "artifact", producer=producer), host, host.out)
    assert message in seen.message
    assert (seen.outcome is Outcome.PASS) == (not message)


@pytest.mark.parametrize(
    ("misbehave", "message"), [("", ""), ("resave=forget", "extra assets after the re-export (0, before 1)")]
)
def test_a_re_export_keeps_the_files_that_no_graph_knows_of(host: Host, misbehave: str, message: str) -> None:
    artifact = write_artifact(host.out.parent / "artifact", misbehave)
    (artifact / "model" / "assets.extra").mkdir()
    (artifact / "model" / "assets.extra" / "tf_serving_warmup_requests").write_bytes(b"records")
    seal(artifact)
    seen = run_cell(cell("reexport", artifact), host, host.out)
    assert message in seen.message
    assert (seen.outcome is Outcome.PASS) == (not message)


def test_a_step_that_takes_too_long_is_a_timeout(host: Host) -> None:
    artifact = write_artifact(host.out.parent / "slow", "call=hang")
    host.worker("fake", "tf2_worker").hello()
    seen = run_cell(cell("values", artifact, timeout=1.0), host, host.out)
    assert (seen.outcome, seen.error_class) == (Outcome.TIMEOUT, "TimeLimit")


def test_a_pass_keeps_digests_and_only_the_answers_that_are_not_the_recorded_ones(host: Host) -> None:
    exact = run(host, "values")
    inexact = run(host, "values", "call=wrong", tolerance={"rtol": 0, "atol": 1, "reason": "a test"})
    assert exact.outcome is inexact.outcome is Outcome.PASS
    assert exact.details["answers"].keys() == inexact.details["answers"].keys() == {"r"}
    assert exact.details["answers"] != inexact.details["answers"]
    assert "inexact" not in exact.details
    kept = inexact.evidence[inexact.details["inexact"]["r"]]
    assert tensors.load(host.out / kept)["y"].array.tolist() == [2.5, 4.0]
    failed = run(host, "values", "call=wrong")
    assert (failed.outcome, failed.details["answers"]) == (Outcome.FAIL_VALUE, inexact.details["answers"])


def test_the_evidence_of_a_wrong_value_is_complete(host: Host) -> None:
    seen = run(host, "values", "call=wrong")
    assert set(seen.evidence) == {"expected", "got", "details"}
    assert tensors.load(host.out / seen.evidence["got"])["y"].array.tolist() == [2.5, 4.0]
    assert tensors.load(host.out / seen.evidence["expected"])["y"].array.tolist() == [2.5, 3.0]
    assert json.loads((host.out / seen.evidence["details"]).read_text())["request"] == "r"
    assert run(host, "values").evidence == {}
    assert not (host.out / "evidence" / cell("values").id).exists()  # what an earlier execution left is gone


def test_the_evidence_of_an_error_has_traceback_and_log(host: Host) -> None:
    seen = run(host, "values", "call=error")
    assert "in misbehave" in (host.out / seen.evidence["traceback"]).read_text()
    seen = run(host, "load", "load=abort")
    assert "about to abort" in (host.out / seen.evidence["stderr"]).read_text()


def test_a_tolerance_of_the_artifact_is_used(host: Host) -> None:
    assert run(host, "values", "call=wrong", tolerance={"rtol": 0, "atol": 1, "reason": "a test"}).outcome is Outcome.PASS


def test_an_answer_that_is_not_due_is_a_failure(host: Host) -> None:
    request = {"id": "r", "kind": "signature", "tags": ["serve"], "signature": "s", "inputs": "in.npz", "outputs": None}
    seen = run(host, "values", requests=[request])
    assert (seen.outcome, seen.message) == (Outcome.FAIL_VALUE, "request r: answered, although no answer is due")


def function_request(path: str, structure: Any) -> dict[str, Any]:
    return {
        "id": path, "kind": "function", "tags": ["serve"], "path": path, "args": [], "kwargs": {},
        "inputs": "in.npz", "outputs": "out.npz", "structure": structure,
    }  # fmt: skip


def test_a_result_of_another_structure_is_told_from_another_value(host: Host) -> None:
    seen = run(host, "values", requests=[function_request("loads", [1])])
    assert (seen.outcome, seen.message) == (Outcome.FAIL_STRUCTURE, "request loads: result: is int 1, expected a list of 1 (0)")


def test_requests_a_consumer_cannot_answer_are_left_out(host: Host) -> None:
    artifact = write_artifact(host.out.parent / "functions", requests=[function_request("loads", [1])])
    assert run_cell(cell("values", artifact, consumer="c_api"), host, host.out).outcome is Outcome.PASS


def test_a_stateful_artifact_gets_a_fresh_model_for_each_check(host: Host) -> None:
    artifact = write_artifact(host.out.parent / "fresh", stateful=True, requests=[function_request("loads", 1)])
    assert run_cell(cell("values", artifact), host, host.out).outcome is Outcome.PASS
    assert "is int 2, expected int 1" in run_cell(cell("values", artifact), host, host.out).message
    stateless = write_artifact(host.out.parent / "shared", requests=[function_request("loads", 3)])
    assert [run_cell(cell("values", stateless), host, host.out).outcome for _ in range(2)] == [Outcome.PASS] * 2


def test_all_findings_are_listed_and_the_first_decides(host: Host) -> None:
    requests = [function_request("loads", structure) for structure in (1, 2, 3)]
    seen = run(host, "values", requests=requests)
    assert seen.message.endswith("is int 1, expected int 2")
    assert seen.details["findings"] == 2
    assert "expected int 3" in seen.details["also"][0]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda folder: (folder / "model" / "saved_model.pb").write_bytes(saved_model()[:-1]),
            "model/saved_model.pb was changed",
        ),
        (lambda folder: (folder / "io" / "out.npz").unlink(), "io/out.npz is missing"),
        (lambda folder: (folder / "model" / "more").write_text("x"), "model/more is not listed"),
    ],
)
@pytest.mark.parametrize("check", ["load", "values"])
def test_an_artifact_that_was_altered_is_not_asked(host: Host, damage: Any, message: str, check: str) -> None:
    artifact = write_artifact(host.out.parent / "altered", "load=abort")
    damage(artifact)
    seen = run_cell(cell(check, artifact), host, host.out)
    assert seen.outcome is Outcome.FAIL_STRUCTURE
    assert message in seen.message
    assert host.worker("fake", "tf2_worker").generation == 0


@pytest.mark.parametrize(
    ("io", "words"),
    [
        ("{", "io.json: Expecting property name"),
        ('{"schema": 2}', "io.json: not of schema 1"),
        ('{"schema": 1}', "requests"),
        (
            '{"schema": 1, "requests": [{"id": "r", "kind": "signature", "tags": [], "inputs": "../x", "outputs": null}]}',
            "'../x' is not the name",
        ),
        ('{"schema": 1, "requests": [{"id": "r", "kind": "dance", "tags": [], "inputs": "x", "outputs": null}]}', "unknown kind"),
    ],
)
def test_an_artifact_that_breaks_the_contract_is_our_own_fault(host: Host, io: str, words: str) -> None:
    artifact = write_artifact(host.out.parent / "invalid")
    (artifact / "io" / "io.json").write_text(io)
    seal(artifact)
    seen = run_cell(cell("load", artifact), host, host.out)
    assert seen.outcome is Outcome.SETUP_ERROR
    assert words in seen.message
    assert "io.json" in seen.message


def test_a_model_nobody_can_read_without_tensorflow_fails_the_checks_that_need_it(host: Host) -> None:
    artifact = write_artifact(host.out.parent / "unreadable")
    (artifact / "model" / "saved_model.pb").write_bytes(b"\xff")
    seal(artifact)
    seen = run_cell(cell("signatures", artifact), host, host.out)
    assert seen.outcome is Outcome.FAIL_STRUCTURE
    assert seen.error_class and seen.error_class.startswith("reference_impl.format.errors.")
    assert run_cell(cell("values", artifact), host, host.out).outcome is Outcome.PASS


def test_a_full_disk_is_the_environment_and_a_bug_of_ours_is_not(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    for error, outcome in (
        (OSError(errno.ENOSPC, "full"), Outcome.ENV_ERROR),
        (OSError("odd"), Outcome.SETUP_ERROR),
        (KeyError("x"), Outcome.SETUP_ERROR),
    ):

        def fail(*_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(relocate_check, "moved_copy", fail)
        seen = run(host, "relocate")
        assert seen.outcome is outcome
        assert "Traceback" in (host.out / seen.evidence["harness"]).read_text()


def test_a_relocated_model_has_no_trace_of_its_first_place(tmp_path: Path) -> None:
    artifact = write_artifact(tmp_path / "artifact")
    moved = relocate_check.moved_copy(artifact / "model", tmp_path / "scratch")
    assert (moved / "saved_model.pb").read_bytes() == saved_model()
    assert [path for path in (tmp_path / "scratch").rglob("saved_model.pb") if path != moved / "saved_model.pb"] == []


def test_production_writes_a_complete_artifact(host: Host) -> None:
    made = cell("produce", "artifacts/half/tf2@1.0")
    seen = run_cell(made, host, host.out)
    assert seen.outcome is Outcome.PASS, seen.message
    assert seen.timings["produce"] > 0
    provenance = json.loads((host.out / made.artifact / "provenance.json").read_text())
    assert provenance["producer"] == {"name": "tf2", "versions": seen.versions}
    assert (provenance["case"], provenance["title"]) == ("half", "A case for a producer that needs no TensorFlow.")
    assert set(provenance["files"]) == {"model/made_by", "io/io.json"}
    assert altered_files(host.out / made.artifact) == []
    assert sorted(path.name for path in (host.out / "artifacts" / "half").iterdir()) == [".tf2@1.0.lock", "tf2@1.0"]


def test_a_failed_production_leaves_nothing_and_its_cells_are_not_run(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_PRODUCE", "error")
    made = cell("produce", "artifacts/half/tf2@1.0")
    seen = run_cell(made, host, host.out)
    assert (seen.outcome, seen.error_class) == (Outcome.CALL_ERROR, "OSError")
    assert [path.name for path in (host.out / "artifacts" / "half").iterdir()] == [".tf2@1.0.lock"]
    with pytest.raises(NotProduced, match="no such op"):
        run_cell(cell("load", made.artifact, producer="tf2"), host, host.out)


def test_a_missing_fixture_is_our_own_fault(host: Host) -> None:
    seen = run_cell(cell("load", host.out / "nowhere"), host, host.out)
    assert seen.outcome is Outcome.SETUP_ERROR
    assert "the producer fixture makes nothing" in seen.message


def make_artifact(out: Path, runtime_folder: Path, cases: Path) -> None:
    with Host(out, {"fake": fake_runtime(runtime_folder)}, cases) as host:
        produce(cell("load", "artifacts/half/tf2@1.0", producer="tf2"), host, out, again=False)


def test_two_processes_make_one_artifact(host: Host) -> None:
    """The loser of the race finds it made and leaves it alone."""
    folders = [host.out.parent / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=make_artifact, args=(host.out, folder, host.cases)) for folder in folders]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert len(list((host.out / "logs").glob("*.stdout"))) == 1  # only one of them started a worker


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
