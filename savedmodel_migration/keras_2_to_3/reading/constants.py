"""Constants that the graph of a layer has in place of its variables."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from reference_impl.errors import SavedModelError
from reference_impl.format.values import tensor_proto

if TYPE_CHECKING:
    from savedmodel_migration.keras_2_to_3.reading.saved import SavedKeras

_MOST = 1 << 24  # numbers of a constant that is compared


def in_place_of_variables(saved: SavedKeras, node: int) -> str:
    """Return which variables of a layer its graph does not use, or has as constants of other
    values; "" if none.

    Raises SavedModelError: a value of the checkpoint is damaged.
    """
    keys = set(saved.weights_of(node))
    names = itertools.chain.from_iterable(
        saved.nodes[number].function.concrete_functions
        for name, number in saved.children(node).items()
        if "call" in name
    )
    traces = [saved.traces[name] for name in names if name in saved.traces]
    captured = set(itertools.chain.from_iterable(trace.bound_inputs for trace in traces))
    unused = {
        key: number
        for number, key in saved.variable_keys().items()
        if key in keys and number not in captured
    }
    if not unused or not traces:
        return ""
    constants = list(_constants(saved, node))
    found = []
    for key, number in unused.items():
        value = saved.value(key)
        alike = [
            item for item in constants if item.size == value.size and item.dtype == value.dtype
        ]
        named = repr(saved.nodes[number].variable.name or key)
        if not alike:
            found.append(f"its graph does not use its variable {named}")
        elif not any(np.array_equal(item.ravel(), value.ravel(), equal_nan=True) for item in alike):
            found.append(
                f"its graph has a constant in place of its variable {named}, with other values"
            )
    return "; ".join(found)


def _constants(saved: SavedKeras, node: int) -> Iterator[Any]:
    for body in saved.call_bodies(node):
        for item in body.node_def:
            tensor = item.attr["value"].tensor if item.op == "Const" else None
            if (
                tensor is not None
                and np.prod([dim.size for dim in tensor.tensor_shape.dim], dtype=float) <= _MOST
            ):
                try:
                    array = np.asarray(tensor_proto.decode(tensor))
                except SavedModelError:
                    continue  # a damaged constant is like no variable
                if array.dtype.kind == "f":
                    yield array
