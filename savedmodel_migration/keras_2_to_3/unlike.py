"""Compare an old model with the new one of its configuration layer by layer, on the same inputs,
and say what differs.

Imports TensorFlow and Keras: for workers only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from savedmodel_compat.keras.endpoint import Endpoint
from savedmodel_migration.keras_2_to_3.reading.constants import in_place_of_variables
from savedmodel_migration.keras_2_to_3.reading.saved import SavedKeras, SavedObject, at
from savedmodel_migration.keras_2_to_3.refused import CUSTOM_OBJECTS, Refused
from savedmodel_migration.keras_2_to_3.rules import Layer

# Far above what rounding does to one layer, so that a layer is named for what it computes.
RTOL, ATOL = 1e-3, 1e-4
OTHER = (
    "its graph computes something else than the layer of Keras: its class is one of the user's own,"
    " or it was changed"
)

Told = tuple[Any, Layer, SavedObject]  # a rebuilt layer, its configuration, the saved one


def unlike(
    saved: SavedKeras,
    old: Any,
    new: Any,
    layers: Sequence[Told],
    followed: Callable[[Any, Layer], Any],
    nest: Any,
) -> list[Refused]:
    """Return which layers of a new model compute something else than those of the old one, and what
    differs.

    Args:
      saved: the SavedModel.
      old: what `reference_impl.load` returned for it.
      new: the new model.
      layers: its rebuilt layers. One that takes more than its first argument is not asked.
      followed: returns what a layer returned after the layer that stands behind it.
      nest: inputs of the new model.
    """
    with _recorded([made for made, _, _ in layers]) as calls:
        new(nest, training=False)
    found = []
    for made, told, item in layers:
        part = at(old, item.names)
        if id(made) not in calls or not item.names or not callable(part):
            continue
        given, answer = calls[id(made)]
        try:
            expected = Endpoint(part)(given, False, {})[0]
        except (ValueError, TypeError, tf.errors.OpError):  # its function takes other arguments
            continue
        if not _alike(expected, followed(answer, told)):
            reason = (
                _without_activation(made, given, expected)
                or in_place_of_variables(saved, item.node)
                or OTHER
            )
            found.append(
                Refused(reason, told.label, item.path, CUSTOM_OBJECTS if reason == OTHER else "")
            )
    return found


@contextlib.contextmanager
def _recorded(layers: Sequence[Any]) -> Iterator[dict[int, tuple[Any, Any]]]:
    """Note the first argument and the answer of the first call of each layer, by its `id`."""
    calls: dict[int, tuple[Any, Any]] = {}
    original = keras.layers.Layer.__call__

    def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
        answer = original(layer, *args, **kwargs)
        if id(layer) in wanted and len(args) == 1 and not keras.tree.flatten(_tensors(kwargs)):
            calls.setdefault(id(layer), (args[0], answer))
        return answer

    wanted = {id(layer) for layer in layers}
    keras.layers.Layer.__call__ = call
    try:
        yield calls
    finally:
        keras.layers.Layer.__call__ = original


def _tensors(kwargs: Any) -> list[Any]:
    return [item for item in keras.tree.flatten(kwargs) if keras.ops.is_tensor(item)]


def _alike(one: Any, other: Any) -> bool:
    pairs = [keras.tree.flatten(one), keras.tree.flatten(other)]
    if len(pairs[0]) != len(pairs[1]):
        return False
    for first, second in zip(*pairs):
        before, after = np.asarray(first), np.asarray(second)
        if before.shape != after.shape:
            return False
        if before.dtype.kind in "fiub" and not _close(
            before.astype("float64"), after.astype("float64")
        ):
            return False
    return True


def _close(before: Any, after: Any) -> bool:
    largest = float(np.nanmax(np.abs(before), initial=0.0))
    return np.allclose(after, before, rtol=RTOL, atol=ATOL * max(largest, 1.0), equal_nan=True)


def _without_activation(made: Any, given: Any, expected: Any) -> str:
    """Return what differs if it is only that the graph has no activation where the configuration
    has one, else "".
    """
    activation = getattr(made, "activation", None)
    if not callable(activation) or activation is keras.activations.linear:
        return ""
    made.activation = keras.activations.linear
    try:
        bare = made(given, training=False) if made._call_has_training_arg else made(given)
    finally:
        made.activation = activation
    name = getattr(activation, "__name__", None) or getattr(activation, "name", "?")
    return (
        f"its configuration has the activation {name!r}, and its graph has none"
        if _alike(expected, bare)
        else ""
    )
