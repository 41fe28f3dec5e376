"""`prove` on ONNX files: planted faults are caught and named, a right file raises no alarm.

The models are those of `tests/data/prove`. `tox -e prove` makes the environment with onnxruntime.
"""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx_faults import FAULTS
from prove_environments import interpreter

from reference_eval.registry import described
from reference_impl.format.container import layout
from savedmodel_common.tensors import from_numpy
from savedmodel_prove import proof, questions
from savedmodel_prove.records import CONVERTED, EVALUATOR
from savedmodel_prove.sides.converted import File
from savedmodel_prove.sides.evaluator import Evaluator
from savedmodel_prove.verdicts import TENSORFLOW, Kind

DATA = Path(__file__).parents[1] / "data" / "prove"
MODEL, ONNX = DATA / "model", DATA / "model.onnx"
KEY, TAGS = "serving_default", ("serve",)
FINE = {Kind.EQUAL, Kind.WITHIN}
LEAST_NAMED = 0.95


@pytest.fixture(scope="module")
def python():
    return interpreter("onnx.txt")


@pytest.fixture(scope="module")
def target():
    return questions.target_of(layout.read(MODEL), TAGS, KEY)


@pytest.fixture(scope="module")
def faulty(python, tmp_path_factory):
    """The folder of the files with faults."""
    folder = tmp_path_factory.mktemp("faulty")
    script = Path(__file__).with_name("onnx_faults.py")
    subprocess.run([str(python), str(script), str(ONNX), str(folder)], check=True)
    return folder


def proved(target, path, folder, python, count=1):
    """The certificate of a file, with the evaluator as the original."""
    sides = proof.open_sides(target, path, folder, python, use_tensorflow=False)
    try:
        return proof.prove(target, path, sides, seed=0, count=count, beside=folder)
    finally:
        sides.close()


def test_a_right_file_raises_no_alarm(target, python, tmp_path):
    found = proved(target, ONNX, tmp_path, python, count=5)
    assert {verdict.kind for verdict in found.verdicts} <= FINE
    assert len(found.verdicts) == 5
    assert "onnxruntime" in found.versions[CONVERTED]


def test_faults_are_caught_and_the_first_node_is_named(target, faulty, python, tmp_path):
    missed, unnamed = [], {}
    for name, (nodes, _) in FAULTS.items():
        found = proved(target, faulty / f"{name}.onnx", tmp_path / name, python)
        bad = [verdict for verdict in found.verdicts if verdict.kind not in FINE]
        named = {parting[0].node for parting in found.nodes.values()}
        named |= {"" for verdict in bad if "hidden/ReadVariableOp" in verdict.reason}
        if not bad:
            missed.append(name)
        if not named or not named <= set(nodes):
            unnamed[name] = named
    assert len(FAULTS) >= 20
    assert missed == []
    assert len(unnamed) <= (1 - LEAST_NAMED) * len(FAULTS), unnamed


class WithFault:
    """The right answers with a fault in one output, as of a broken kernel."""

    def __init__(self, side, name):
        self.side, self.name, self.versions = side, name, {}

    def answer(self, inputs):
        found = self.side.answer(inputs)
        return {**found, "logits": from_numpy(found["logits"].array + np.float32(0.5))}

    def values(self, inputs):
        return self.side.values(inputs)


@pytest.mark.parametrize("guilty", [TENSORFLOW, CONVERTED, EVALUATOR])
def test_blame(guilty, target, faulty, python, tmp_path):
    def softer(inputs):  # a fault in a kernel of the evaluator
        return np.tanh(inputs * np.float32(1.1))

    ops = [described(["Tanh"], softer)] if guilty == EVALUATOR else []
    right = Evaluator(MODEL, TAGS, KEY)
    original = WithFault(right, "TensorFlow") if guilty == TENSORFLOW else right
    path = faulty / "transposed_weight.onnx" if guilty == CONVERTED else ONNX
    file = File(path, KEY, list(target.inputs), target.outputs, tmp_path / "file", python)
    evaluator = Evaluator(MODEL, TAGS, KEY, new_ops=ops)
    exact = None if guilty == EVALUATOR else Evaluator(MODEL, TAGS, KEY, "float64")
    sides = proof.Sides(original, file, evaluator, exact, traced=evaluator)
    try:
        found = proof.prove(target, path, sides, seed=0, count=1, beside=tmp_path)
    finally:
        sides.close()
    (logits,) = [verdict for verdict in found.verdicts if verdict.output == "logits"]
    assert logits.alone == guilty
    assert (logits.kind in FINE) == (guilty == EVALUATOR)


def test_a_pair_of_names(target, python, tmp_path):
    copy = shutil.copy(ONNX, tmp_path / "model.onnx")
    sides = proof.open_sides(
        target, Path(copy), tmp_path / "x", python, {"total": "absent"}, use_tensorflow=False
    )
    try:
        found = proof.prove(target, Path(copy), sides, seed=0, count=1, beside=tmp_path)
    finally:
        sides.close()
    assert {verdict.kind for verdict in found.verdicts} == {Kind.NOT_COMPARABLE}
    assert "no output 'absent'" in found.verdicts[0].reason
