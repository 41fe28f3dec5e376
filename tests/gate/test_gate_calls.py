"""The default gate finds a TensorFlow whose calls go wrong in some circumstances only.

Each fault stands in a copy of the TensorFlow of this environment: gradients that the loader drops,
answers that are wrong in other threads, the third call, and errors that become numbers.
"""

from __future__ import annotations

import json

import faulty_tensorflow
import pytest
from click.testing import CliRunner

from compat_matrix.cli import main

pytestmark = pytest.mark.tensorflow

CONCRETE = "python/eager/polymorphic_function/concrete_function.py"
# Around each call from Python of a function that was loaded or traced.
CALLS = """
_sound_call = ConcreteFunction._call_flat


def _spoilt(value):
    from tensorflow.python.framework import tensor

    is_number = isinstance(value, tensor.Tensor) and value.dtype.is_floating
    return value + 1 if is_number else value


def _faulty_call(self, tensor_inputs, captured_inputs):
    import threading

    from tensorflow.python.framework import errors

    {body}


ConcreteFunction._call_flat = _faulty_call
"""
OTHER_THREADS = """answer = _sound_call(self, tensor_inputs, captured_inputs)
    if threading.current_thread() is threading.main_thread():
        return answer
    return nest.map_structure(_spoilt, answer)"""
THIRD_CALL = """answer = _sound_call(self, tensor_inputs, captured_inputs)
    self._calls = getattr(self, "_calls", 0) + 1
    return nest.map_structure(_spoilt, answer) if self._calls == 3 else answer"""
SWALLOWED = """try:
        return _sound_call(self, tensor_inputs, captured_inputs)
    except errors.InvalidArgumentError:
        from tensorflow.python.ops import array_ops

        zeros = lambda spec: array_ops.zeros([size or 1 for size in spec.shape], spec.dtype)
        return nest.map_structure(zeros, self.structured_outputs)"""


def calls(body):
    return {CONCRETE: lambda text: text + CALLS.replace("{body}", body)}


def forget_gradients(text):
    """The loader reads no registered gradient, and takes the mark off the ops that have one."""
    text = text.replace("for gdef in library.registered_gradients:", "for gdef in ():")
    return text.replace(
        "def _get_gradient_op_type(node_def):",
        'def _get_gradient_op_type(node_def):\n  node_def.attr.pop("_gradient_op_type", None)',
    )


@pytest.mark.parametrize(
    ("changes", "case", "check", "cause"),
    [
        (
            {"python/saved_model/function_deserialization.py": forget_gradients},
            "fn_custom_gradient",
            "objects",
            "the gradients of request forward-1",
        ),
        (calls(OTHER_THREADS), "sig_outputs", "values", "in thread 1 of 4 at once"),
        (calls(THIRD_CALL), "sig_outputs", "values", "in call 3 of it"),
        (
            calls(SWALLOWED),
            "sig_refused_request",
            "values",
            "answered, although the original refuses it: x must be positive",
        ),
    ],
    ids=["gradients", "threads", "third", "swallowed"],
)
def test_it_is_a_regression(tmp_path, changes, case, check, cause):
    candidate = faulty_tensorflow.copy(tmp_path / "candidate", changes)
    command = [
        "gate",
        "--baseline",
        "local",
        "--candidate",
        str(candidate),
        "--out",
        str(tmp_path / "out"),
        "-n",
        "1",
    ]
    command += ["--no-install", "--producer", "tf2", "--case", case, "--consumer", "tf2"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 1, done.output
    verdict = json.loads((tmp_path / "out" / "gate.json").read_text())
    found = [
        fact
        for fact in verdict["facts"]
        if (fact["kind"], fact["role"], fact["check"]) == ("regressed", "reads", check)
    ]
    assert found, [(fact["kind"], fact["pair"], fact["cause"]) for fact in verdict["facts"]]
    assert cause in found[0]["cause"]
