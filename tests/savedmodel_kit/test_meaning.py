"""The meaning of a model, level by level."""

import hashlib
import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fixtures_v1
from reference_impl.errors import NotASavedModelError
from reference_impl.format.bundle.writer import BundleWriter
from reference_impl.format.container import layout
from reference_impl.format.names import OBJECT_GRAPH_KEY
from savedmodel_kit import meaning
from savedmodel_tools.weights import Weights

FIXTURES = Path(fixtures_v1.ROOT)


def of(case):
    return meaning.meaning_of(FIXTURES / case / "model")


def digest(data):
    return hashlib.sha256(data).hexdigest()


def test_a_small_model_in_full():
    found = of("half_plus_two")
    (graph,) = found["container"]["meta_graphs"]
    assert found["container"]["form"] == "saved_model.pb"
    assert (graph["tags"], graph["assets"], graph["functions"]) == (["serve"], [], [])
    assert graph["signatures"] == ["classify_x_to_y", "regress_x_to_y", "serving_default"]
    a, b = (struct.pack("<f", value) for value in (0.5, 2))
    described = {"dtype": "float32", "shape": [], "bytes": 4}
    assert found["checkpoint"]["tensors"] == [
        {"key": "a", **described, "sha256": digest(a)},
        {"key": "b", **described, "sha256": digest(b)},
    ]
    (part,) = found["objects"]
    assert part["objects"] is None
    assert part["signatures"]["serving_default"] == {
        "inputs": {"x": {"dtype": "float32", "shape": [None, 1]}},
        "outputs": {"y": {"dtype": "float32", "shape": [None, 1]}},
    }


def test_objects_with_their_values():
    (part,) = of("module_functions")["objects"]
    nodes, functions = part["objects"]["nodes"], part["objects"]["functions"]
    (left,) = [node for node in nodes if node["path"] == ["named", "left"]]
    assert left["keys"] == {"VARIABLE_VALUE": "named/left/.ATTRIBUTES/VARIABLE_VALUE"}
    assert (left["kind"], left["dtype"], left["trainable"]) == ("variable", "float32", True)
    assert nodes[0]["children"]["scale"] == 1
    (multiply,) = [node for node in nodes if node["path"] == ["multiply"]]
    assert [functions[name]["captures"] for name in multiply["traces"]] == [[1], [1]]
    assert [node["filename"] for node in nodes if node["kind"] == "asset"]


def test_strings_have_their_lengths_before_them(tmp_path):
    folder = tmp_path / "model"
    (folder / "variables").mkdir(parents=True)
    model = FIXTURES / "half_plus_two/model/saved_model.pb"
    (folder / "saved_model.pb").write_bytes(model.read_bytes())
    with BundleWriter(folder / "variables/variables") as writer:
        writer.add("texts", np.array([b"ab", b""], object))
    (tensor,) = meaning.meaning_of(folder)["checkpoint"]["tensors"]
    content = b"\x02" + bytes(7) + b"ab" + bytes(8)
    assert (tensor["bytes"], tensor["sha256"]) == (len(content), digest(content))


def test_a_level_that_is_refused_leaves_the_others():
    found = of("v1_checkpoint")
    assert found["checkpoint"]["refused"].startswith("variables/variables: ")
    assert found["checkpoint"]["refused"].endswith("[SM-BUNDLE-22]")
    assert found["objects"][0]["signatures"]
    assert list(meaning.refusals(found)) == [found["checkpoint"]["refused"]]


def test_a_model_without_a_checkpoint():
    assert of("no_variables_dir")["checkpoint"] is None


def test_no_model(tmp_path):
    with pytest.raises(NotASavedModelError):
        meaning.meaning_of(tmp_path)


def test_our_reader_as_a_program(tmp_path):
    command = [sys.executable, "-m", "savedmodel_kit.meaning"]
    model = FIXTURES / "half_plus_two/model"
    done = subprocess.run([*command, model], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout) == meaning.meaning_of(model)
    done = subprocess.run([*command, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "SavedModel file does not exist" in done.stderr


def test_it_imports_no_tensorflow():
    program = (
        "import sys, savedmodel_kit.meaning, savedmodel_kit.build, savedmodel_kit.score\n"
        "assert not {'tensorflow', 'keras'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert "tensorflow" not in program.splitlines()[0]


def test_weights_are_those_of_the_meaning(kit):
    """`weights` and the kit agree about every tensor, and so do the readers that the kit checks."""
    compared = 0
    for artifact in kit.content["artifacts"]:
        checkpoint = kit.meaning(artifact)["checkpoint"]
        if checkpoint is None or "refused" in checkpoint:
            continue
        stated = {
            one["key"]: (one["dtype"], tuple(one["shape"]), one["sha256"])
            for one in checkpoint["tensors"]
        }
        stated.pop(OBJECT_GRAPH_KEY, None)
        with Weights(layout.read(kit.folder / artifact["folder"] / "model")) as weights:
            listed = [weights.weight(key) for key in list(weights.keys())]
        assert {one.key: (one.dtype, one.shape, one.digest) for one in listed} == stated
        compared += len(stated)
    assert compared >= 245
