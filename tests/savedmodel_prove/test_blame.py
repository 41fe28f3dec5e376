"""Who is alone, and at which node: faults in TensorFlow's kernel, a converted file, the evaluator.

They need TensorFlow, a C++ compiler and the environment with onnxruntime (tox -e prove).
"""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx_faults import FAULTS
from prove_environments import interpreter

from compat_matrix.runtimes import programs
from reference_eval.registry import described
from reference_impl.format.container import layout
from savedmodel_prove import proof, questions, told
from savedmodel_prove.records import CONVERTED, EVALUATOR, ORIGINAL
from savedmodel_prove.sides.converted import File
from savedmodel_prove.sides.evaluator import Evaluator
from savedmodel_prove.sides.program import WORKER, TensorFlow, tensorflow
from savedmodel_prove.verdicts import TENSORFLOW, Kind

HERE = Path(__file__).parent
MODEL, ONNX = (
    HERE.parent / "data" / "prove" / "model",
    HERE.parent / "data" / "prove" / "model.onnx",
)
KEY, TAGS = "serving_default", ("serve",)
CONVERTER_FAULT = "sigmoid_for_tanh"
FLAGS = "import tensorflow.sysconfig as s; print(*s.get_compile_flags(), *s.get_link_flags())"


@pytest.fixture(scope="module")
def faulty_kernel(tmp_path_factory):
    """A library with a faulty kernel, compiled for the TensorFlow of this Python."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler: a kernel of TensorFlow cannot be replaced")
    done = subprocess.run([sys.executable, "-c", FLAGS], check=True, capture_output=True, text=True)
    library = tmp_path_factory.mktemp("kernel") / "faulty_kernel.so"
    source = str(HERE / "faulty_kernel.cc")
    command = [compiler, "-shared", "-fPIC", "-w", source, "-o", str(library)]
    subprocess.run([*command, *done.stdout.split()], check=True)
    return library


@pytest.fixture(scope="module")
def python():
    return interpreter("onnx.txt")


@pytest.fixture(scope="module")
def wrong_file(python, tmp_path_factory):
    """A converted file with a fault."""
    folder = tmp_path_factory.mktemp("faulty")
    command = [str(python), str(HERE / "onnx_faults.py"), str(ONNX), str(folder)]
    subprocess.run(command, check=True)
    return folder / f"{CONVERTER_FAULT}.onnx"


def spoilt_tensorflow(library):
    """The program of TensorFlow with the faulty kernel."""
    program = tensorflow()
    more = (("FAULTY_KERNEL", str(library)), ("WORKERS", str(WORKER.parent)))
    faulty = programs.of_script(HERE / "faulty_tensorflow_worker.py")
    return replace(faulty, environment=(*program.environment, *more))


def softer(x):
    """A faulty function of the evaluator."""
    return np.tanh(x * x.dtype.type(1.1))


# Guilty -> the nodes of which one is named, and the verdict of the output `logits`.
CASES = [
    (TENSORFLOW, ["left_elu"], {Kind.DIFFERS}),
    (CONVERTED, FAULTS[CONVERTER_FAULT][0], {Kind.DIFFERS}),
    (EVALUATOR, ["tanh"], {Kind.EQUAL, Kind.WITHIN}),
]
SIDE = {TENSORFLOW: ORIGINAL, CONVERTED: CONVERTED, EVALUATOR: EVALUATOR}


@pytest.mark.tensorflow
@pytest.mark.parametrize(("guilty", "nodes", "kinds"), CASES)
def test_the_guilty_side_is_named_with_its_first_node(
    guilty, nodes, kinds, faulty_kernel, wrong_file, python, tmp_path
):
    ops = [described(["Tanh"], softer)] if guilty == EVALUATOR else []
    program = spoilt_tensorflow(faulty_kernel) if guilty == TENSORFLOW else tensorflow()
    path = wrong_file if guilty == CONVERTED else ONNX
    target = questions.target_of(layout.read(MODEL), TAGS, KEY)
    file = File(path, KEY, list(target.inputs), target.outputs, tmp_path / "file", python)
    evaluator = Evaluator(MODEL, TAGS, KEY, new_ops=ops)
    exact = Evaluator(MODEL, TAGS, KEY, "float64", new_ops=ops)
    original = TensorFlow("TensorFlow", program, MODEL, TAGS, KEY, tmp_path / "original")
    sides = proof.Sides(original, file, evaluator, exact, traced=evaluator)
    try:
        found = proof.prove(target, path, sides, seed=0, count=1, beside=tmp_path)
    finally:
        sides.close()
    (logits,) = [verdict for verdict in found.verdicts if verdict.output == "logits"]
    assert (logits.alone, logits.kind in kinds) == (guilty, True)
    (first, *_) = found.nodes["logits"]
    assert first.node in nodes
    assert first.side == SIDE[guilty]
    lines = [line.strip() for line in told.lines(found)]
    assert any(line.startswith(f"first at node {first.node} ") for line in lines)
