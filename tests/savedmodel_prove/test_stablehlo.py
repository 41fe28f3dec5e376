"""`prove` on StableHLO modules: the answers of XLA, names in exporters' spellings, open dimensions."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from prove_environments import interpreter

from reference_impl.format.container import layout
from savedmodel_common.tensors import from_numpy
from savedmodel_prove import proof, questions
from savedmodel_prove.sides.converted import File
from savedmodel_prove.sides.side import SideError
from savedmodel_prove.verdicts import Kind

DATA = Path(__file__).parents[1] / "data" / "prove"
MODEL, MODULE = DATA / "model", DATA / "model.mlir"
KEY, TAGS = "serving_default", ("serve",)
NAMES = {"image": "arg0", "kind": "arg1"}
NAMES |= {
    name: f"result{place}"
    for place, name in enumerate(["class", "features", "logits", "probabilities", "total"])
}
FINE = {Kind.EQUAL, Kind.WITHIN}
# Sums rows of any number, as JAX exports it; the names of the output are those of a dictionary.
OPEN = """
module {
  func.func public @forward(%arg0: tensor<?x3xf32> loc("inputs['x']"))
      -> (tensor<?xf32> {jax.result_info = "result['y']"}) {
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %y = stablehlo.reduce(%arg0 init: %c) applies stablehlo.add across dimensions = [1]
        : (tensor<?x3xf32>, tensor<f32>) -> tensor<?xf32>
    return %y : tensor<?xf32>
  }
}
"""
TO_BYTECODE = """
import pathlib, sys
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
with mlir.make_ir_context():
    module = ir.Module.parse(pathlib.Path(sys.argv[1]).read_text())
    for path, content in (
        (sys.argv[2], mlir.module_to_bytecode(module)),
        (sys.argv[3], stablehlo.serialize_portable_artifact(module, "1.0.0")),
    ):
        pathlib.Path(path).write_bytes(content)
"""


@pytest.fixture(scope="module")
def python():
    return interpreter("stablehlo.txt")


def proved(module, folder, python):
    target = questions.target_of(layout.read(MODEL), TAGS, KEY)
    sides = proof.open_sides(target, module, folder, python, NAMES, use_tensorflow=False)
    try:
        return proof.prove(target, module, sides, seed=0, count=1, beside=folder)
    finally:
        sides.close()


def test_a_module_of_tensorflow_answers_as_its_original(python, tmp_path):
    found = proved(MODULE, tmp_path, python)
    assert {verdict.kind for verdict in found.verdicts} <= FINE
    assert {verdict.compared for verdict in found.verdicts} == {7}  # those with a batch of two
    assert all("[2, 8, 8, 3]" in verdict.reason for verdict in found.verdicts)
    assert "jaxlib" in found.versions["converted"]


@pytest.mark.parametrize(
    ("right", "wrong", "node"),
    [
        ("stablehlo.tanh", "stablehlo.logistic", "tanh"),
        ("dense<1.500000e+00>", "dense<1.600000e+00>", "clip/Minimum"),
        ("epsilon = 1.000000e-03", "epsilon = 1.000000e-02", "norm"),
    ],
)
def test_a_fault_is_named(right, wrong, node, python, tmp_path):
    text = MODULE.read_text()
    assert right in text
    path = tmp_path / "wrong.mlir"
    path.write_text(text.replace(right, wrong))
    found = proved(path, tmp_path / "talk", python)
    assert Kind.DIFFERS in {verdict.kind for verdict in found.verdicts}
    assert {parting[0].node for parting in found.nodes.values()} == {node}


@pytest.mark.parametrize("suffix", [".mlir", ".mlirbc", ".stablehlo"])
def test_open_dimensions_text_and_bytecode(suffix, python, tmp_path):
    paths = [tmp_path / f"open{ending}" for ending in (".mlir", ".mlirbc", ".stablehlo")]
    paths[0].write_text(OPEN)
    command = [str(python), "-c", TO_BYTECODE, *map(str, paths)]
    subprocess.run(command, check=True, capture_output=True)
    path = tmp_path / f"open{suffix}"
    file = File(path, KEY, ["x"], ["y"], tmp_path / "talk", python)
    try:
        for rows in (1, 4, 0):
            x = np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)
            (name, answer), *others = file.answer({"x": from_numpy(x)}).items()
            np.testing.assert_array_equal(answer.array, x.sum(1))
            assert (name, others) == ("y", [])
        assert file.shapes == {"x": [-1, 3]}
        with pytest.raises(SideError, match=r"\[-1, 3\].*\[2, 4\]"):
            file.answer({"x": from_numpy(np.zeros([2, 4], np.float32))})
    finally:
        file.close()


@pytest.mark.parametrize(
    ("content", "text"),
    [(b"", "public"), (b"no module", "custom op"), (b"ML\xefR\0\0", "deserialize")],
)
def test_a_file_that_is_no_module_is_told(content, text, python, tmp_path):
    path = tmp_path / "broken.mlir"
    path.write_bytes(content)
    with pytest.raises(SideError, match=text):
        File(path, KEY, ["x"], ["y"], tmp_path / "talk", python)
