"""`weights`: the tensors of a checkpoint by path, name and key, listed and written, without
TensorFlow.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner
from model_edits import fixture
from safetensors.numpy import load_file

from reference_impl.format import schema
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.bundle.writer import BundleWriter
from savedmodel_compat.cli import main

FIXTURES = sorted(path.parent for path in Path("fixtures_v1").glob("*/model"))


def run(*arguments, code=0):
    done = CliRunner().invoke(main, ["weights", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


def listed(*arguments):
    return json.loads(run(*arguments, "--json").stdout)


@pytest.fixture
def model(tmp_path):
    """Make a model of TF 1.x whose checkpoint holds the given arrays, each the value of a variable
    of the same name.
    """

    def make(tensors):
        place = tmp_path / "model"
        shutil.copytree(fixture("half_plus_two"), place)
        shutil.rmtree(place / "variables")
        with BundleWriter(
            place / "variables" / "variables"
        ) as writer:  # its end finishes the files
            for key, array in sorted(tensors.items()):
                writer.add(key, array)
        return place

    return make


def test_each_weight_has_name_dtype_shape_bytes_and_digest():
    first, second = listed(fixture("half_plus_two"))
    expected = {
        "key": "a",
        "name": "a",
        "path": None,
        "dtype": "float32",
        "shape": [],
        "size": 4,
        "trainable": True,
    }
    assert {**first, "digest": None} == {**expected, "digest": None}
    assert first["digest"] == hashlib.sha256(np.float32(0.5).tobytes()).hexdigest()
    assert second["digest"] == hashlib.sha256(np.float32(2.0).tobytes()).hexdigest()


def test_an_object_has_a_path_and_a_slot_has_its_key():
    names = {weight["key"]: weight["path"] for weight in listed(fixture("keras_compiled_save"))}
    kernel = "layer_with_weights-0/kernel"
    assert names[f"{kernel}/.ATTRIBUTES/VARIABLE_VALUE"] == "layer_with_weights-0.kernel"
    slots = [key for key in names if key.startswith(f"{kernel}/.OPTIMIZER_SLOT/")]
    assert len(slots) == 2 and not any("_CHECKPOINTABLE_OBJECT_GRAPH" in key for key in names)


def test_parts_of_a_variable_are_put_together_from_all_shards(tmp_path):
    run(fixture("partitioned_variables"), "--out", tmp_path / "w.npz")
    with np.load(tmp_path / "w.npz") as found:
        assert {name: array.shape for name, array in found.items()} == {
            "columns": (2, 5),
            "rows": (7, 2),
        }


@pytest.mark.parametrize("case", FIXTURES, ids=lambda case: case.name)
def test_every_fixture_is_written_as_it_is_or_named(case, tmp_path):
    done = CliRunner().invoke(
        main, ["weights", str(case / "model"), "--by", "key", "--out", str(tmp_path / "w.npz")]
    )
    if done.exit_code:
        refused = "V1CheckpointError" in done.output or ".npz has no type for" in done.output
        assert done.exit_code == 1 and refused and not (tmp_path / "w.npz").exists(), done.output
        return
    with np.load(tmp_path / "w.npz") as found:
        arrays = dict(found.items())
    prefix = case / "model" / "variables" / "variables"
    if not prefix.with_suffix(".index").exists():
        assert arrays == {}
        return
    with BundleReader(prefix) as reader:
        keys = [key for key in reader.entries() if key != "_CHECKPOINTABLE_OBJECT_GRAPH"]
        assert sorted(arrays) == sorted(keys)
        for key in keys:
            np.testing.assert_array_equal(arrays[key], reader.read(key), strict=True)


def test_two_files_of_the_same_weights_have_the_same_bytes(tmp_path):
    for name in ("one.npz", "two.npz", "one.safetensors", "two.safetensors"):
        run(fixture("conv_batch_norm"), "--out", tmp_path / name)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert (tmp_path / "one.safetensors").read_bytes() == (
        tmp_path / "two.safetensors"
    ).read_bytes()


def test_safetensors_reads_back_what_was_stored(model, tmp_path):
    half = np.arange(6, dtype=ml_dtypes.bfloat16).reshape(2, 3)
    place = model({"scope/bf16": half, "flag": np.array([True, False]), "scalar": np.float64(0.1)})
    run(place, "--out", tmp_path / "w.safetensors")
    # NumPy's side of safetensors reads no bfloat16: the file is a length, a JSON object, and the
    # bytes.
    data = (tmp_path / "w.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    head = json.loads(data[8 : 8 + size])
    begin, end = head["scope/bf16"]["data_offsets"]
    assert (head["scope/bf16"]["dtype"], head["scope/bf16"]["shape"]) == ("BF16", [2, 3])
    assert data[8 + size + begin : 8 + size + end] == half.tobytes()
    run(place, "--out", tmp_path / "w.safetensors", "--only", "[!s]*", "--only", "scalar")
    found = load_file(tmp_path / "w.safetensors")
    assert (
        found["scalar"] == 0.1
        and found["scalar"].shape == ()
        and found["flag"].tolist() == [True, False]
    )


@pytest.mark.parametrize(
    "suffix, array, dtype",
    [
        (".npz", np.array([b"a", b"bc"], object), "string"),
        (".safetensors", np.array([b"a", b"bc"], object), "string"),
        (".npz", np.ones(2, ml_dtypes.bfloat16), "bfloat16"),
        (".safetensors", np.ones(2, np.complex128), "complex128"),
    ],
)
def test_what_a_format_cannot_carry_is_named_and_nothing_is_written(
    model, tmp_path, suffix, array, dtype
):
    place, out = model({"odd": array, "usual": np.ones(2, np.float32)}), tmp_path / f"w{suffix}"
    done = run(place, "--out", out, code=1)
    assert (
        f"odd: {suffix} " in done.stderr
        and dtype in done.stderr
        and list(tmp_path.glob("*w*")) == []
    )
    run(place, "--out", out, "--only", "us*")
    assert out.exists()


def test_two_weights_of_one_name_are_refused(tmp_path):
    place = tmp_path / "model"
    shutil.copytree(fixture("keras_functional_save"), place)
    message = schema.SavedModel.FromString((place / "saved_model.pb").read_bytes())
    for node in message.meta_graphs[0].object_graph_def.nodes:
        if node.HasField("variable"):
            node.variable.name = "same"
    (place / "saved_model.pb").write_bytes(message.SerializeToString())
    assert "same: " in run(place, "--by", "name", "--out", tmp_path / "w.npz", code=1).stderr
    run(place, "--by", "key", "--out", tmp_path / "w.npz")


@pytest.mark.parametrize("key", ["../../outside", "/outside"])
def test_no_name_leads_out_of_an_archive(model, tmp_path, key):
    done = run(model({key: np.float32(1)}), "--by", "key", "--out", tmp_path / "w.npz", code=1)
    assert "out of" in done.stderr and not (tmp_path / "w.npz").exists()


def test_a_damaged_value_is_an_error_and_leaves_no_file(model, tmp_path):
    place = model({"w": np.arange(100, dtype=np.float32)})
    shard = place / "variables" / "variables.data-00000-of-00001"
    data = bytearray(shard.read_bytes())
    data[5] ^= 1
    shard.write_bytes(data)
    assert "ChecksumError" in run(place, code=1).stderr
    run(place, "--out", tmp_path / "w.npz", code=1)
    assert list(tmp_path.glob("*.npz*")) == []


def test_wrong_uses_are_told_apart(tmp_path):
    assert "matches nothing*" in run(fixture("half_plus_two"), "--only", "nothing*", code=64).stderr
    assert "none of" in run(fixture("half_plus_two"), "--out", tmp_path / "w.h5", code=64).stderr
    assert "V1CheckpointError" in run(fixture("v1_checkpoint"), code=1).stderr
    assert run(fixture("hash_table_v2")).stdout.splitlines()[-1] == "0 weights, 0 bytes"
