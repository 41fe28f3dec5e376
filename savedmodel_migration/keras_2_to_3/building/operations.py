"""Operations between layers: a call of a TensorFlow function becomes calls of ``keras.ops``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from savedmodel_common import strict_json
from savedmodel_migration.keras_2_to_3.refused import Refused
from savedmodel_migration.keras_2_to_3.rules.operations import (
    CLASSES,
    GRAPH_CLASSES,
    functions,
    graph_ops,
    known_name,
)
from savedmodel_migration.keras_2_to_3.rules.operations.expression import Expression
from savedmodel_migration.keras_2_to_3.rules.operations.sizes import Sizes, folded

METRIC_LAYER = "AddMetric"


def is_operation(class_name: str) -> bool:
    """Return whether Keras 2 wrote this layer for an operation between layers."""
    return class_name in CLASSES or class_name in GRAPH_CLASSES


class Operation:
    """One operation of a functional model, called like a layer; Keras 2 wrote a layer for it.

    Raises Refused: it is not known.

    ``taken``: the names of the layers and operations of its model, to which those of this operation
    are added.
    """

    def __init__(
        self, class_name: str, config: Mapping[str, Any], taken: set[str] | None = None
    ) -> None:
        self.config, self.taken = config, set() if taken is None else taken
        if class_name == "TensorFlowOpLayer":
            self._make = self._node
        elif class_name == METRIC_LAYER:
            self._make = lambda first, kwargs: first
        elif class_name in CLASSES:
            self.name = known_name(str(config.get("function", config.get("symbol", ""))))
            self._make = self._function
        else:
            raise Refused(f"{class_name} in a functional model: Keras 3 has no such layer")

    def __call__(self, first: Any, **kwargs: Any) -> Any:
        """Return the tensors of one call, or the sizes that it computes. Raises Refused."""
        return evaluate(self._make(first, kwargs), self.taken)

    def _function(self, first: Any, kwargs: Mapping[str, Any]) -> Any:
        given = {
            functions()[self.name].first: first,
            **{name: value for name, value in kwargs.items() if name != "name"},
        }
        sizes = folded(self.name, list(given.values()))
        return functions()[self.name](given) if sizes is None else sizes

    def _node(self, first: Any, kwargs: Mapping[str, Any]) -> Any:
        node, constants = self.config.get("node_def"), self.config.get("constants") or {}
        node = strict_json.loads(node) if isinstance(node, str) else node
        if not isinstance(node, Mapping) or not isinstance(constants, Mapping):
            raise Refused("its node cannot be read")
        inputs = list(first) if isinstance(first, (list, tuple)) else [first]
        for place in sorted(constants, key=int):
            inputs.insert(int(place), constants[place])
        op = str(node.get("op"))
        if op not in graph_ops():
            raise Refused(f"the op {op} has no counterpart in keras.ops that is known")
        return graph_ops()[op](inputs, node.get("attr") or {})


def evaluate(value: Any, taken: set[str]) -> Any:
    """Return the tensors of an expression; anything else is returned as it is.

    Raises Refused for a size that is not known.

    ``taken``: names that no operation may get; those of the operations are added.
    """
    if not isinstance(value, Expression):
        return value
    function: Any = keras.ops
    for part in value.target.split("."):
        function = getattr(function, part)
    arguments = {name: _argument(item, taken) for name, item in value.arguments.items()}
    operands = arguments.pop("*operands", None)
    if operands is not None:
        return _named(function(arguments.pop("subscripts"), *operands, **arguments), taken)
    return _named(function(**arguments), taken)


def _argument(value: Any, taken: set[str]) -> Any:
    if isinstance(value, list):
        return [_argument(item, taken) for item in value]
    return value.known() if isinstance(value, Sizes) else evaluate(value, taken)


def _named(answer: Any, taken: set[str]) -> Any:
    """Return the tensors of an operation, after giving it another name if a layer has the one that
    Keras chose.
    """
    histories = (getattr(tensor, "_keras_history", None) for tensor in keras.tree.flatten(answer))
    for operation in dict.fromkeys(
        history.operation for history in histories if history is not None
    ):
        name, number = operation.name, 0
        while operation.name in taken:
            number += 1
            operation.name = f"{name}_{number}"
        taken.add(operation.name)
    return answer
