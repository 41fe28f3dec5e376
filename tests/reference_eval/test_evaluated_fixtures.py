"""The signatures of the fixtures give the answers that TensorFlow 1.x recorded."""

import json
from pathlib import Path

import numpy as np
import pytest

import reference_eval
from savedmodel_common import tensors

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"
# What is not evaluated, and a word of the reason. The rest must agree.
NOT_EVALUATED = {
    "contrib_op/serving_default": "Resampler",
    "defun_gradient": "SymbolicGradient",
    "estimator_boosted_trees": "BoostedTrees",
    "one_shot_iterator/next": "IteratorV2",
    "py_func/serving_default": "runs Python",
    "random_op/serving_default": "draws random numbers",
    "random_op/dropout": "draws random numbers",
    "random_op/shuffle": "draws random numbers",
    "untracked_vocabulary": "Table not initialized. The init op failed: .+",
    "v1_checkpoint": "variables/variables: .+ format V1",
}
# Eigen approximates functions such as exp and tanh, and sums have another order.
RELATIVE, ABSOLUTE = 2e-5, 2e-6


def recordings():
    for path in sorted(FIXTURES.glob("*/io/io.json")):
        spec = json.loads(path.read_text(encoding="utf-8"))
        asked = [one for one in spec["requests"] if one.get("kind") == "signature"]
        for tags in sorted({tuple(one["tags"]) for one in asked}):
            requests = [one for one in asked if tuple(one["tags"]) == tags]
            yield pytest.param(path.parent, tags, requests, id=f"{path.parts[-3]}-{'-'.join(tags)}")


def answer(model, folder, request):
    call = model.signatures[request["signature"]]
    given = {}
    for name, tensor in tensors.load(folder / request["inputs"]).items():
        key = name if name in call.inputs else name.replace("/", "_")
        array = tensor.array
        given[key] = array.view("bfloat16") if tensor.dtype == "bfloat16" else array
    return call(**given)


def reason_why_not(folder, request):
    fixture = folder.parent.name
    expected = "" if request.get("outputs") else "."
    named = NOT_EVALUATED.get(f"{fixture}/{request['signature']}")
    return NOT_EVALUATED.get(fixture) or named or expected


def differences(found, wanted):
    """Return the names of the outputs that differ from the recorded ones."""
    for name, tensor in wanted.items():
        value, expected = found[name], tensor.array
        if value.dtype != expected.dtype and value.dtype.itemsize == expected.dtype.itemsize:
            value = value.view(expected.dtype)  # types that NumPy lacks are recorded as integers
        same = value.dtype == expected.dtype and value.shape == expected.shape
        if same and expected.dtype.kind in "fc":
            same = np.allclose(value, expected, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True)
        elif same:
            same = np.array_equal(value, expected)
        if not same:
            yield name


@pytest.mark.parametrize("folder, tags, requests", list(recordings()))
def test_the_answers_are_those_of_tensorflow(folder, tags, requests):
    model = reference_eval.load(folder.parent / "model", tags)
    for request in requests:
        reason = reason_why_not(folder, request)
        if reason:
            with pytest.raises(reference_eval.EvaluationError, match=reason):
                answer(model, folder, request)
        else:
            wanted = tensors.load(folder / request["outputs"])
            assert list(differences(answer(model, folder, request), wanted)) == []
