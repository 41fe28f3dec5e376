"""The answers that a server must give to Classify, Regress and MultiInference, from requests and
recorded answers of signatures.

A signature of the method classify or regress takes one tensor of serialised `tf.Example`s, and its
recorded answer is that of Predict. Serving makes classes with scores, or values, from the same
tensors. It is stricter: the functions here raise `Refused` where it refuses a request. Nothing here
needs TensorFlow or a server. A method is named as in a SignatureDef: `tensorflow/serving/classify`
or `tensorflow/serving/regress`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Union

import numpy as np
from google.protobuf.message import DecodeError, Message

from reference_impl.format.schema import SignatureDef
from savedmodel_common.compare import (
    EXACT,
    Mismatch,
    Tolerance,
    compare_named,
)
from savedmodel_common.serving.messages import CLASSIFY_METHOD, REGRESS_METHOD, Example
from savedmodel_common.tensors import Tensor
from savedmodel_servers.client import Class, Classified, Regressed

SPOKEN = {
    CLASSIFY_METHOD: "classify",
    REGRESS_METHOD: "regress",
}  # the methods that are asked with examples
INPUTS, CLASSES, SCORES, OUTPUTS = (
    "inputs",
    "classes",
    "scores",
    "outputs",
)  # the keys Serving looks for

Result = Union[Classified, Regressed]


class Refused(Exception):
    """Raised for a request that Classify and Regress cannot ask: its strings are not examples, or
    Serving refuses it.

    Serving refuses with INVALID_ARGUMENT; older versions answer a wrong name with
    FAILED_PRECONDITION.
    """


def serialized(given: Mapping[str, Tensor]) -> list[bytes]:
    """Return the serialised examples of a request.

    Raises Refused for anything else, and without examples.
    """
    if len(given) != 1:
        raise Refused(f"the signature has {len(given)} inputs, not one")
    if INPUTS not in given:
        raise Refused(f"the input is called {min(given)!r}, not {INPUTS!r}")
    tensor = given[INPUTS]
    if tensor.dtype != "string" or tensor.array.ndim != 1:
        raise Refused(f"examples are a vector of strings, the input is {_described(tensor)}")
    if not tensor.array.size:
        raise Refused("there is no example")
    strings = [bytes(item) for item in tensor.array.tolist()]
    for index, string in enumerate(strings):
        if not _is_example(
            string
        ):  # a model may take text and say that it classifies; clients send such text by Predict
            raise Refused(f"string {index} of the input is not a serialised tf.Example")
    return strings


def _is_example(string: bytes) -> bool:
    """Return whether bytes are a tf.Example and nothing else: text may pass for a message of
    unknown fields.
    """
    try:
        message = Example.FromString(string)
    except DecodeError:
        return False
    message.DiscardUnknownFields()
    return message.ByteSize() == len(string)


def expected(method: str, given: Mapping[str, Tensor], recorded: Mapping[str, Tensor]) -> Result:
    """Return the right answer of Classify or Regress to the request `given`, whose answer by
    Predict is `recorded`.

    Raises Refused if Serving does not answer, and ValueError for another method.
    """
    if method not in SPOKEN:
        raise ValueError(f"{method!r} is none of {', '.join(SPOKEN)}")
    count = len(serialized(given))
    return classified(recorded, count) if method == CLASSIFY_METHOD else regressed(recorded, count)


def classified(recorded: Mapping[str, Tensor], count: int) -> Classified:
    """Return the classes of every example.

    Missing scores are 0, missing labels "". Raises Refused.
    """
    if len(recorded) not in (1, 2):
        raise Refused(f"the signature has {len(recorded)} outputs, not one or two")
    found = {key: recorded[key] for key in (CLASSES, SCORES) if key in recorded}
    if not found:
        raise Refused(f"no output is called {CLASSES!r} or {SCORES!r}")
    for key, dtype in ((CLASSES, "string"), (SCORES, "float32")):
        if key in found and (
            found[key].dtype != dtype
            or found[key].array.ndim != 2
            or len(found[key].array) != count
        ):
            raise Refused(f"{key} is {_described(found[key])}, not {dtype}[{count}, classes]")
    shapes = {tensor.array.shape for tensor in found.values()}
    if len(shapes) != 1:
        raise Refused(
            f"there are {' and '.join(str(shape[1]) for shape in sorted(shapes))} classes"
        )
    (shape,) = shapes
    labels = found[CLASSES].array if CLASSES in found else np.full(shape, b"", dtype=object)
    scores = found[SCORES].array if SCORES in found else np.zeros(shape, np.float32)
    return [list(map(_class, *row)) for row in zip(labels, scores)]  # row: its labels, its scores


def _class(label: Any, score: Any) -> Class:
    return Class(bytes(label).decode("utf-8", "surrogateescape"), float(score))


def regressed(recorded: Mapping[str, Tensor], count: int) -> Regressed:
    """Return the value of every example, from a vector or a column. Raises Refused."""
    if len(recorded) != 1:
        raise Refused(f"the signature has {len(recorded)} outputs, not one")
    if OUTPUTS not in recorded:
        raise Refused(f"the output is called {min(recorded)!r}, not {OUTPUTS!r}")
    tensor = recorded[OUTPUTS]
    if tensor.dtype != "float32" or tensor.array.shape not in ((count,), (count, 1)):
        raise Refused(
            f"the output is {_described(tensor)}, not float32[{count}] or float32[{count}, 1]"
        )
    return [float(value) for value in tensor.array.ravel()]


def differences(want: Result, got: Result, tolerance: Tolerance = EXACT) -> list[Mismatch]:
    """Return the difference between two answers to Classify or Regress. Messages do not keep the
    sign of zero: 0.0 equals -0.0."""
    if len(want) != len(got):
        return [Mismatch("shape", "", f"answers for {len(got)} examples, expected {len(want)}")]
    for index, (left, right) in enumerate(zip(want, got)):
        if isinstance(left, list) and isinstance(right, list) and len(left) != len(right):
            return [
                Mismatch(
                    "shape", f"example {index}", f"has {len(right)} classes, expected {len(left)}"
                )
            ]
    return compare_named(_tensors(want), _tensors(got), tolerance)


def with_context(examples: Sequence[bytes]) -> tuple[bytes, list[bytes]] | None:
    """Return ``(context, examples)`` that mean the same examples, with common features in the
    context; None if there are none.

    Serving puts the context's bytes before those of each example, which merges two messages.
    Features with the same value in every example are moved. The result is also None if a string is
    not a `tf.Example`.
    """
    try:
        messages = [Example.FromString(example) for example in examples]
    except DecodeError:
        return None
    if not messages:
        return None
    first = messages[0].features.feature
    context = Example()
    for key in sorted(first):
        if all(
            key in other.features.feature and other.features.feature[key] == first[key]
            for other in messages[1:]
        ):
            context.features.feature[key].CopyFrom(first[key])
    if not context.features.feature:
        return None
    for message in messages:
        for key in context.features.feature:
            del message.features.feature[key]
    return _bytes(context), [_bytes(message) for message in messages]


def together(signatures: Mapping[str, SignatureDef]) -> list[list[str]]:
    """Return the sets of at least two signatures that one MultiInference can ask: classify and
    regress, fed by one tensor.

    TensorFlow 2 gives every signature a tensor of its own, which older servers refuse to feed
    together.
    """
    fed: dict[str, list[str]] = {}
    for key in sorted(signatures):
        signature = signatures[key]
        if signature.method_name in SPOKEN and list(signature.inputs) == [INPUTS]:
            fed.setdefault(signature.inputs[INPUTS].name, []).append(key)
    return [keys for _, keys in sorted(fed.items()) if len(keys) > 1]


def _tensors(answer: Result) -> dict[str, Tensor]:
    if not any(isinstance(item, list) for item in answer):
        return {OUTPUTS: _floats(answer)}
    rows = (row for row in answer if isinstance(row, list))
    classes = list(itertools.chain.from_iterable(rows))
    labels = np.array(
        [item.label.encode("utf-8", "surrogateescape") for item in classes] or [], dtype=object
    )
    return {CLASSES: Tensor("string", labels), SCORES: _floats([item.score for item in classes])}


def _floats(values: Sequence[Any]) -> Tensor:
    return Tensor("float32", np.array(values, np.float32) + np.float32(0))  # -0.0 + 0.0 is 0.0


def _bytes(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


def _described(tensor: Tensor) -> str:
    return f"{tensor.dtype}{list(tensor.array.shape)}"
