"""The consumers on real fixtures, each in its own process, through the checks that the matrix
runs.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from compat_matrix.cells.consumers import CONSUMERS, CPP
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell
from compat_matrix.cells.results import Observation
from compat_matrix.checks import run_cell
from compat_matrix.hosts.host import Host
from compat_matrix.runtimes.native import build as native
from compat_matrix.runtimes.runtime import local_runtime
from compat_matrix.runtimes.worker import ReplyError
from savedmodel_common import tensors
from savedmodel_common.provenance import hash_files

pytestmark = pytest.mark.tensorflow

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures_v1"
LIMIT = 300.0
SESSIONS = ("v1_session", "c_api", "cpp")
TENSORFLOWS = ("tf2", *SESSIONS)


def require_cpp() -> None:
    """The C++ loader is compiled when it is not in the cache; skips where that cannot be."""
    why = native.why_not(local_runtime())
    if why:
        pytest.skip(f"no C++ loader: {why}")


@pytest.fixture
def host(warm_host: Host) -> Host:
    if local_runtime().tensorflow_version is None:
        pytest.skip("no TensorFlow in this environment")
    return warm_host


def run(host: Host, check: str, consumer: str, artifact: Path | str, **fields: str) -> Observation:
    if consumer == CPP:
        require_cpp()
    path = FIXTURES / artifact
    version = str(local_runtime().tensorflow_version)
    names = {
        "case": path.name,
        "producer": "fixture",
        "producer_version": "1.15.5",
        "consumer_version": version,
        **fields,
    }
    return run_cell(
        Cell(
            **names,
            consumer=consumer,
            check=check,
            runtime="local",
            producer_runtime="local",
            artifact=str(path),
        ),
        host,
        host.out,
    )


@pytest.mark.parametrize("consumer", TENSORFLOWS)
@pytest.mark.parametrize("check", ["load", "signatures", "values", "relocate"])
@pytest.mark.parametrize("fixture", ["simple_save", "sparse_io", "string_ops", "dtypes_io"])
def test_what_tensorflow_wrote_tensorflow_reads(
    host: Host, consumer: str, check: str, fixture: str
) -> None:
    """Dense, sparse, strings with NUL bytes, every dtype: in and out of each consumer without the
    loss of a bit.
    """
    seen = run(host, check, consumer, fixture)
    assert seen.outcome is Outcome.PASS, seen.message


@pytest.mark.parametrize("consumer", TENSORFLOWS)
def test_the_checkpoint_reads_the_same(host: Host, consumer: str) -> None:
    seen = run(host, "checkpoint", consumer, "simple_save")
    assert seen.outcome is Outcome.PASS, seen.message
    assert seen.details["values"] == 3


@pytest.mark.parametrize("consumer", SESSIONS)
def test_a_session_reads_partitioned_variables_slice_by_slice(host: Host, consumer: str) -> None:
    seen = run(host, "checkpoint", consumer, "partitioned_variables")
    assert seen.outcome is Outcome.PASS, seen.message
    assert seen.details["values"] > 2


def test_reference_variables_are_not_among_those_of_a_loaded_object(host: Host) -> None:
    seen = run(host, "checkpoint", "tf2", "half_plus_two")
    assert seen.outcome is Outcome.FAIL_STRUCTURE
    assert "'a', 'b'" in seen.message


@pytest.mark.parametrize(
    "fixture",
    [
        "half_plus_two",
        "index_table_oov",
        "serve_tpu_gpu",
        "partitioned_variables",
        "legacy_init_op",
    ],
)
def test_a_session_re_exports_without_a_loss(host: Host, fixture: str) -> None:
    """Variables, assets at a new place, several MetaGraphs, an init op: kept, and the second save
    is a fixed point.
    """
    seen = run(host, "reexport", "v1_session", fixture)
    assert seen.outcome is Outcome.PASS, seen.message


def test_the_loss_of_reference_variables_in_a_re_export_is_seen(host: Host) -> None:
    seen = run(host, "reexport", "tf2", "half_plus_two")
    assert seen.outcome is Outcome.CALL_ERROR
    assert "the re-export, request serving_default-0" in seen.message
    assert "variable" in " ".join(seen.details["also"])


def test_a_wrong_weight_in_the_checkpoint_is_seen_by_all(host: Host, tmp_path: Path) -> None:
    """The recorded answers stand for the old weights."""
    from reference_impl.format.bundle.reader import BundleReader
    from reference_impl.format.bundle.writer import BundleWriter

    artifact = tmp_path / "simple_save"
    shutil.copytree(
        FIXTURES / "simple_save", artifact, ignore=shutil.ignore_patterns("__pycache__")
    )
    prefix = artifact / "model" / "variables" / "variables"
    with BundleReader(prefix) as bundle:
        values = {key: np.array(bundle.read(key)) for key in list(bundle.keys())}
    values["dense/bias"] += 1
    shutil.rmtree(prefix.parent)
    prefix.parent.mkdir()
    with BundleWriter(prefix) as writer:
        for key in sorted(values):
            writer.add(key, values[key])
    provenance = json.loads((artifact / "provenance.json").read_text())
    provenance["files"] = hash_files(artifact)
    (artifact / "provenance.json").write_text(json.dumps(provenance))
    for consumer in TENSORFLOWS:
        seen = run(host, "values", consumer, artifact)
        assert seen.outcome is Outcome.FAIL_VALUE, seen.message
        assert "max abs error" in seen.message


def test_the_c_api_worker_never_imports_tensorflow(host: Host) -> None:
    worker = host.worker("local", CONSUMERS["c_api"].program)
    assert run(host, "values", "c_api", "string_ops").outcome is Outcome.PASS
    hello = worker.request("hello", LIMIT, protocol=1)  # asked again, now that it has worked
    assert hello["imported"] == []
    assert hello["versions"]["tensorflow"] == local_runtime().tensorflow_version
    assert any("libtensorflow" in path for path in hello["libraries"])


@pytest.mark.parametrize("consumer", ["tf2", "v1_session"])
def test_the_others_report_the_libraries_they_mapped(host: Host, consumer: str) -> None:
    hello = host.worker("local", CONSUMERS[consumer].program).hello()
    assert hello["imported"] and "tensorflow" in hello["imported"]
    assert any("libtensorflow" in path for path in hello["libraries"])
    assert hello["versions"]["tensorflow"] == local_runtime().tensorflow_version


def test_the_c_and_the_cpp_loader_say_the_same(host: Host, tmp_path: Path) -> None:
    """What a caller does wrong, and what a model is; by class and by word."""
    require_cpp()
    model, lost = FIXTURES / "sparse_io" / "model", str(tmp_path / "none")
    out, io = str(tmp_path / "out.npz"), str(FIXTURES / "sparse_io" / "io")
    recorded = json.loads((FIXTURES / "sparse_io" / "io" / "io.json").read_text())["requests"][0]
    tensors.save(tmp_path / "odd.npz", {"y": tensors.from_numpy(np.float32(1))})
    odd = {**recorded, "inputs": "odd.npz"}
    asked = [
        ("load", {"dir": lost, "tags": ["serve"]}),
        ("load", {"dir": str(model), "tags": ["serve", "gpu"]}),
        ("call", {"request": {**recorded, "signature": "other"}, "io_dir": io, "outputs": out}),
        ("call", {"request": odd, "io_dir": str(tmp_path), "outputs": out}),
        ("fetch", {"tensors": ["nothing:0"], "outputs": out}),
        ("fetch", {"tensors": ["save/Const:7"], "outputs": out}),
        ("fetch", {"tensors": [], "outputs": out}),
        ("signatures", {"handle": 77}),
    ]
    said = []
    for consumer in ("c_api", CPP):
        worker = host.worker("local", CONSUMERS[consumer].program)
        with host.model(worker, model, ["serve"], LIMIT, shared=False) as loaded:
            replies = [worker.request("signatures", LIMIT, handle=loaded.handle)["signatures"]]
            for op, fields in asked:
                try:
                    worker.request(op, LIMIT, **{"handle": loaded.handle, **fields})
                    replies.append("ok")
                except ReplyError as error:
                    replies.append((error.status, error.error_class, str(error)))
        said.append(replies)
    assert said[0] == said[1]
    assert [reply[1] for reply in said[1][1:] if reply != "ok"] == [
        *(
            "TF_NOT_FOUND",
            "TF_NOT_FOUND",
            "KeyError",
            "ValueError",
            "KeyError",
            "KeyError",
            "KeyError",
        ),
    ]


@pytest.mark.parametrize("consumer", ["c_api", "cpp"])
def test_errors_of_the_c_loaders_carry_the_name_of_their_code(host: Host, consumer: str) -> None:
    seen = run(host, "load", consumer, "contrib_op")
    assert (seen.outcome, seen.error_class) == (Outcome.LOAD_ERROR, "TF_NOT_FOUND")
    assert "Resampler" in seen.message
    seen = run(host, "values", consumer, "shared_tensors")
    assert (seen.outcome, seen.error_class) == (Outcome.CALL_ERROR, "TF_INVALID_ARGUMENT")


def test_long_strings_stay_alive_in_a_table(host: Host, tmp_path: Path) -> None:
    """What is fed to the C API is not copied; a table keeps it after the call that put it there."""
    worker = host.worker("local", CONSUMERS["c_api"].program)
    words = [
        b"a word that is far too long to be stored inside its own header %d" % i for i in range(50)
    ]
    fixture = FIXTURES / "mutable_hash_table"
    request = {
        "kind": "signature",
        "inputs": "in.npz",
        "outputs": None,
        "tags": ["serve"],
        "id": "r",
    }
    with host.model(worker, fixture / "model", ["serve"], LIMIT, shared=False) as model:

        def call(signature: str, **values: object) -> dict[str, tensors.Tensor]:
            tensors.save(
                tmp_path / "in.npz",
                {name: tensors.from_numpy(value) for name, value in values.items()},
            )
            asked = {**request, "signature": signature}
            model.ask(
                "call",
                LIMIT,
                request=asked,
                io_dir=str(tmp_path),
                outputs=str(tmp_path / "out.npz"),
            )
            return dict(tensors.load(tmp_path / "out.npz"))

        call("insert", words=np.array(words, dtype=object), ids=np.arange(50, dtype=np.int64) + 100)
        for _ in range(20):
            call(
                "serving_default", words=np.array([b"x" * 100] * 200, dtype=object)
            )  # other bytes in the freed memory, if it is
        found = call("serving_default", words=np.array(words, dtype=object))
    assert (np.arange(50) + 100).tolist() in [tensor.array.tolist() for tensor in found.values()]


def test_a_model_is_freed_when_it_is_closed(host: Host) -> None:
    for consumer in TENSORFLOWS:
        worker = host.worker("local", CONSUMERS[consumer].program)
        with host.model(
            worker, FIXTURES / "simple_save" / "model", ["serve"], LIMIT, shared=False
        ) as model:
            pass
        with pytest.raises(Exception, match="the handle"):
            model.ask("signatures", LIMIT)


@pytest.mark.parametrize("consumer", TENSORFLOWS)
def test_a_case_is_produced_and_consumed(host: Host, consumer: str) -> None:
    version = str(local_runtime().tensorflow_version)
    fields = {"case": "rfc_two_signatures", "producer": "tf2", "producer_version": version}
    path = f"artifacts/rfc_two_signatures/tf2@{version}"
    made = Cell(
        **fields,
        consumer="-",
        consumer_version="",
        check="produce",
        runtime="local",
        producer_runtime="local",
        artifact=path,
    )
    if not (host.out / path).exists():
        assert run_cell(made, host, host.out).outcome is Outcome.PASS
    for check in ("load", "signatures", "values", "relocate", "checkpoint"):
        seen = run(host, check, consumer, host.out / path, **fields)
        assert seen.outcome is Outcome.PASS, f"{check}: {seen.message}"
