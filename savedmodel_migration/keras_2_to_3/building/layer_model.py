"""A functional model of ``keras.ops``, made of the graph of a layer that Keras 3 does not have.

No code of the file is run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from reference_impl.format import schema
from reference_impl.format.values import tensor_proto
from savedmodel_common import strict_json
from savedmodel_migration.keras_2_to_3.building.operations import evaluate
from savedmodel_migration.keras_2_to_3.reading.layer_graph import (
    CONSTANT,
    INPUT,
    VARIABLE,
    LayerGraph,
    Step,
    check_ops,
)
from savedmodel_migration.keras_2_to_3.refused import Refused
from savedmodel_migration.keras_2_to_3.rules.operations import graph_ops
from savedmodel_migration.keras_2_to_3.rules.operations.sizes import Sizes

_ELEMENTS = 1 << 18  # of a constant
# Ops that may be computed of constants alone: what they return is not larger, or as large as
# `_size_of` says.
_OF_CONSTANTS = (
    "Transpose", "ExpandDims", "Squeeze", "Reshape", "StridedSlice", "Cast", "ReverseV2", "Neg",
    "Abs", "Exp", "Log", "Sqrt", "Rsqrt", "Square", "Sin", "Cos", "Sum", "Mean", "Max", "Min",
)  # fmt: skip
_ELEMENTWISE = (
    "AddV2",
    "Sub",
    "Mul",
    "RealDiv",
    "Pow",
    "Maximum",
    "Minimum",
    "FloorDiv",
    "DivNoNan",
)
_JOINING = ("ConcatV2", "Pack")


def layer_model(graph: LayerGraph, name: str) -> Any:
    """Return a model that computes what a layer computes. Raises Refused."""
    inputs: list[Any] = []
    values: list[Any] = []
    taken: set[str] = set()
    needed = graph.needed()
    for number, step in enumerate(graph.steps):
        values.append(_value(step, values, inputs, taken) if number in needed else None)
    ends = [_at(values[number], index) for number, index in graph.outputs]
    if not all(isinstance(end, keras.KerasTensor) for end in ends):
        raise Refused("it returns something that does not depend on its input")
    return keras.Model(
        inputs if len(inputs) > 1 else inputs[0], ends if len(ends) > 1 else ends[0], name=name
    )


def _value(step: Step, values: list[Any], inputs: list[Any], taken: set[str]) -> Any:
    """Return what a step makes: a tensor, sizes, a number, a list of whole numbers, an array, or
    `_Several` tensors.
    """
    if step.op == INPUT:
        _, shape, dtype = step.detail
        inputs.append(keras.Input(batch_shape=shape, dtype=dtype))
        return inputs[-1]
    if step.op == VARIABLE:
        raise Refused("its graph uses variables")
    if step.op == CONSTANT:
        return _constant(tensor_proto.decode(schema.parse(schema.TensorProto, step.detail)))
    check_ops([step.op])
    attributes: Mapping[str, Any] = {key: strict_json.loads(text) for key, text in step.detail}
    given = [_at(values[number], index) for number, index in step.inputs]
    if not any(isinstance(item, (keras.KerasTensor, Sizes)) for item in given):
        if step.op not in (*_OF_CONSTANTS, *_ELEMENTWISE, *_JOINING):
            raise Refused(f"its graph computes {step.op} of constants")
        _check_size(_size_of(step.op, given))
    answer = evaluate(graph_ops()[step.op](given, attributes), taken)
    if isinstance(answer, (list, tuple)):
        return _Several(answer)
    return _constant(keras.ops.convert_to_numpy(answer)) if keras.ops.is_tensor(answer) else answer


class _Several(list[Any]):
    """The outputs of an op that has several."""


def _at(value: Any, index: int) -> Any:
    return value[index] if isinstance(value, _Several) else value


def _constant(array: Any) -> Any:
    """Return a constant as rules expect it.

    Raises Refused for one that is too large, or not of numbers.
    """
    if array.dtype.kind not in "biuf":
        raise Refused(
            f"its graph has a constant of {array.dtype.name}, which keras.ops cannot compute with"
        )
    _check_size(array.size)
    return (
        array.tolist()
        if not array.ndim or array.dtype.name in ("int32", "int64")
        else np.array(array)
    )


def _size_of(op: str, given: Sequence[Any]) -> int:
    """Return how many numbers an op makes of constants, at most."""
    shapes = [np.shape(item) for item in given]
    if op in _JOINING:
        return sum(map(math.prod, shapes))
    return math.prod(np.broadcast_shapes(*shapes)) if op in _ELEMENTWISE else 0


def _check_size(size: int) -> None:
    if size > _ELEMENTS:
        raise Refused(
            f"its graph has a constant of {size} numbers, and a .keras file holds them as text"
        )
