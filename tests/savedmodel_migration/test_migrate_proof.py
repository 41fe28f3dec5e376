"""What counts as proved in ``migrate``, and what becomes of proved output when a later run
fails.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from reference_impl.format import schema
from savedmodel_common.exit_codes import ExitCode
from savedmodel_compat import cli
from savedmodel_migration.migrate import records

pytestmark = pytest.mark.tensorflow

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"


def migrate(*arguments):
    result = CliRunner().invoke(cli.main, ["migrate", *map(str, arguments), "--json"])
    (model,) = json.loads(result.stdout)["models"]
    return result.exit_code, model


def half_plus_two(folder, edit=lambda graph: None):
    """A copy of the fixture without its requests, with one signature and with each MetaGraph
    edited.
    """
    shutil.copytree(FIXTURES / "half_plus_two/model", folder)
    path = folder / "saved_model.pb"
    found = schema.parse(schema.SavedModel, path.read_bytes())
    for graph in found.meta_graphs:
        for key in set(graph.signature_def) - {"serving_default"}:
            del graph.signature_def[key]
        edit(graph)
    path.write_bytes(found.SerializeToString())
    return folder


def constant(graph, name, dtype, **values):
    node = graph.graph_def.node.add(name=name, op="Const")
    node.attr["dtype"].type = node.attr["value"].tensor.dtype = dtype
    node.attr["value"].tensor.tensor_shape.SetInParent()
    for field, value in values.items():
        getattr(node.attr["value"].tensor, field).append(value)


def second_signature(graph, key, node, dtype, shape=()):
    """A signature like the first one, whose only output is ``node``."""
    graph.signature_def[key].CopyFrom(next(iter(graph.signature_def.values())))
    outputs = graph.signature_def[key].outputs
    outputs.clear()
    outputs["z"].name, outputs["z"].dtype = f"{node}:0", dtype
    outputs["z"].tensor_shape.SetInParent()
    for size in shape:
        outputs["z"].tensor_shape.dim.add(size=size)


def never_answers_ours(graph):
    """Of two further signatures one wants a request that only its owner knows."""
    constant(graph, "never", schema.DT_BOOL, bool_val=False)
    check = graph.graph_def.node.add(name="check", op="Assert", input=["never", "never"])
    check.attr["T"].list.type.append(schema.DT_BOOL)
    guarded = graph.graph_def.node.add(name="guarded", op="Identity", input=["never", "^check"])
    guarded.attr["T"].type = schema.DT_BOOL
    second_signature(graph, "guarded", "guarded", schema.DT_BOOL)
    second_signature(graph, "open", "never", schema.DT_BOOL)


def without_kernel(graph):
    """An op that only GPUs have: no session on a CPU loads the model."""
    constant(graph, "one", schema.DT_INT32, int_val=1)
    size = graph.graph_def.node.add(
        name="size", op="CudnnRNNParamsSize", input=["one", "one", "one"]
    )
    size.attr["T"].type, size.attr["S"].type = schema.DT_FLOAT, schema.DT_INT32
    second_signature(graph, "size", "size", schema.DT_INT32, [1])


def drawn_at_random(graph):
    constant(graph, "shape", schema.DT_INT32, int_val=1)
    graph.graph_def.node[-1].attr["value"].tensor.tensor_shape.dim.add(size=1)
    noise = graph.graph_def.node.add(name="noise", op="RandomUniform", input=["shape"])
    noise.attr["T"].type, noise.attr["dtype"].type = schema.DT_INT32, schema.DT_FLOAT
    second_signature(graph, "noise", "noise", schema.DT_FLOAT, [1])


def test_a_model_is_not_proved_when_one_of_three_signatures_was_not_asked(tmp_path):
    code, model = migrate(
        half_plus_two(tmp_path / "m", never_answers_ours), "--out", tmp_path / "out"
    )
    assert (code, model["status"]) == (ExitCode.UNEXPECTED, "unproved")
    (part,) = model["parts"]
    assert sorted(part["asked"]) == ["open", "serving_default"]
    assert [*part["not_asked"]] == ["guarded"]
    assert model["reason"].startswith("1 of 3 signatures ") and "guarded: " in model["reason"]
    assert "io/io.json" in model["fix"] and "'guarded'" in model["fix"]
    assert not (tmp_path / "out/models/m").exists()


def test_a_given_request_that_does_not_fit_is_named_where_one_is_asked_for(tmp_path):
    model = half_plus_two(tmp_path / "m", never_answers_ours)
    io = model / "io"
    io.mkdir()
    np.savez(io / "mine.npz", wrong=np.float32(1))
    request = {"id": "mine", "kind": "signature", "tags": ["serve"], "signature": "guarded"}
    request |= {"inputs": "mine.npz", "outputs": None}
    (io / "io.json").write_text(json.dumps({"schema": 1, "requests": [request]}))
    _, report = migrate(model, "--out", tmp_path / "out")
    assert report["status"] == "unproved"
    assert "request mine" in report["fix"] and "'wrong'" in report["fix"]


def test_where_a_kernel_is_missing_no_request_would_help(tmp_path):
    code, model = migrate(half_plus_two(tmp_path / "m", without_kernel), "--out", tmp_path / "out")
    assert (code, model["status"]) == (ExitCode.UNEXPECTED, "unproved")
    assert "CudnnRNNParamsSize" in model["reason"]
    assert "io.json" not in model["fix"]
    assert "kernel is registered" in model["fix"]


def test_answers_that_are_drawn_at_random_are_not_proved(tmp_path):
    code, model = migrate(half_plus_two(tmp_path / "m", drawn_at_random), "--out", tmp_path / "out")
    assert (code, model["status"]) == (ExitCode.UNEXPECTED, "unproved")
    assert "noise: " in model["reason"]
    assert "io.json" not in model["fix"]


@pytest.fixture
def proved(tmp_path):
    """A model whose source has changed since it was proved, and the folder of its output."""
    source, out = half_plus_two(tmp_path / "m"), tmp_path / "out"
    assert migrate(source, "--out", out)[0] == ExitCode.AS_EXPECTED
    (source / "assets.extra").mkdir()
    (source / "assets.extra" / "note.txt").write_text("changed")
    return source, out


def files(folder):
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_a_run_that_takes_too_long_keeps_what_was_proved(proved):
    source, out = proved
    before = files(out / "models")
    code, model = migrate(source, "--out", out, "--limit", "0.001")
    assert (code, model["status"]) == (ExitCode.UNEXPECTED, "crashed")
    assert files(out / "models") == before and "still holds" in model["kept"]
    assert migrate(source, "--out", out, "--limit", "0.001")[1]["kept"] == model["kept"]
    code, model = migrate(source, "--out", out)
    assert (code, model["status"], model["kept"]) == (ExitCode.AS_EXPECTED, "migrated", "")
    assert (out / "models/m/assets.extra/note.txt").read_text() == "changed"


def test_a_disk_that_fails_keeps_what_was_proved(proved, monkeypatch):
    source, out = proved
    before = files(out / "models")

    def full(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        code, model = migrate(source, "--out", out)
    assert (code, model["status"]) == (ExitCode.HARNESS_ERROR, "failed")
    assert files(out / "models") == before and "still holds" in model["kept"]


def test_a_source_that_cannot_be_read_keeps_what_was_proved(proved, monkeypatch):
    """Reading fails once; the source has not changed, so the next run finds that all is done."""
    source, out = proved
    assert migrate(source, "--out", out)[0] == ExitCode.AS_EXPECTED
    before, record = files(out / "models"), records.load(out / "records/m.json")

    def failing(path):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("savedmodel_migration.migrate.run.source_hash", failing)
        code, model = migrate(source, "--out", out)
    assert (code, model["status"]) == (ExitCode.HARNESS_ERROR, "failed")
    assert files(out / "models") == before and record.source_hash[:12] in model["kept"]


def test_output_goes_when_the_model_now_proves_bad(proved):
    source, out = proved
    (source / "saved_model.pb").write_bytes(b"damaged")
    code, model = migrate(source, "--out", out)
    assert (code, model["status"], model["kept"]) == (ExitCode.UNEXPECTED, "refused", "")
    assert not (out / "models/m").exists()


def test_tensors_of_many_zeros_are_read_back(tmp_path):
    """Gradients of a large model may be all zeros: they must not become a file that looks like an
    attack.
    """
    import numpy as np

    from savedmodel_common import tensors

    zeros = {str(number): tensors.from_numpy(np.zeros(1 << 22, np.float32)) for number in range(8)}
    tensors.save(tmp_path / "x.npz", zeros)
    found = tensors.load(tmp_path / "x.npz")
    assert all(np.array_equal(found[name].array, tensor.array) for name, tensor in zeros.items())
