"""Faults in a TensorFlow that a gate must find: calls that go wrong only in some circumstances,
gradients that are lost.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from property_tests.faults.declaring import Fault, Plant
from property_tests.faults.found_by.command import Command
from property_tests.faults.scenes import TWO_RUNTIMES, faulty_tensorflow

CONCRETE = "python/eager/polymorphic_function/concrete_function.py"
DESERIALIZATION = "python/saved_model/function_deserialization.py"
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

Changes = dict[str, Callable[[str], str]]


def _calls(body: str) -> Changes:
    return {CONCRETE: lambda text: text + CALLS.replace("{body}", body)}


def _forget_gradients(text: str) -> str:
    """The loader reads no registered gradient, and takes the mark off the ops that have one."""
    text = text.replace("for gdef in library.registered_gradients:", "for gdef in ():")
    return text.replace(
        "def _get_gradient_op_type(node_def):",
        'def _get_gradient_op_type(node_def):\n  node_def.attr.pop("_gradient_op_type", None)',
    )


# Name -> file of TensorFlow -> what its text becomes.
FAULTY: dict[str, Changes] = {
    "lost-gradients": {DESERIALIZATION: _forget_gradients},
    "other-threads": _calls(OTHER_THREADS),
    "third-call": _calls(THIRD_CALL),
    "swallowed-errors": _calls(SWALLOWED),
}


def tensorflow_with(fault: str) -> Plant:
    """``other`` is a copy of the environment whose TensorFlow has this fault."""

    def plant(folder: Path) -> None:
        shutil.rmtree(folder / "other")
        faulty_tensorflow.copy(folder / "other", FAULTY[fault])

    return plant


def gate(case: str) -> str:
    """Return the command that compares the TensorFlow here with the other one."""
    command = (
        "gate run --baseline local --candidate other/bin/python --out gate -n 1 --no-install"
        " --producer tf2 --consumer tf2"
    )
    return f"{command} --case {case}"


ROWS = (
    Fault(
        "lost-gradients",
        "the loader drops registered custom gradients",
        tensorflow_with("lost-gradients"),
        Command(
            TWO_RUNTIMES,
            gate("fn_custom_gradient"),
            1,
            "regressed, .*the gradients of request forward-1",
        ),
    ),
    Fault(
        "other-threads",
        "answers are wrong in threads other than the first",
        tensorflow_with("other-threads"),
        Command(TWO_RUNTIMES, gate("sig_outputs"), 1, "regressed, .*in thread 1 of 4 at once"),
    ),
    Fault(
        "third-call",
        "the third call of a function is answered wrongly",
        tensorflow_with("third-call"),
        Command(TWO_RUNTIMES, gate("sig_outputs"), 1, "regressed, .*in call 3 of it"),
    ),
    Fault(
        "swallowed-errors",
        "a call that fails is answered with zeros in place of its error",
        tensorflow_with("swallowed-errors"),
        Command(
            TWO_RUNTIMES,
            gate("sig_refused_request"),
            1,
            "regressed, .*answered, although the original refuses it",
        ),
    ),
)
