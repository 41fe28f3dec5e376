"""Keras: what a model offers for its export, and variables for a layer that is built. Keras itself is not imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import tensorflow as tf


def keras_signature(obj: Any) -> Optional[Any]:
    """The function with which a model of Keras wants to be served, or None. `_default_save_signature` is in Keras 2.2-3.15."""
    return getattr(obj, "_default_save_signature", None)


def keras_variable(keras: Any, variable: tf.Variable, name: str) -> Any:
    """A variable of Keras 3 that stands for a tf.Variable and is no copy of it, which the public class makes in some versions."""
    made = keras.Variable(variable, shape=variable.shape, dtype=variable.dtype.name, trainable=variable.trainable, name=name)
    made._value = variable  # in Keras 3.0-3.15
    return made


def track_variables(layer: Any, variables: Sequence[Any]) -> None:
    """Make variables those of a Keras 3 layer, built or not; no public API gives it any that it did not make.

    `Layer._tracker` and `Layer._track_variable` are in Keras 3.0-3.15.
    """
    tracker = layer._tracker
    locked = tracker.locked
    tracker.unlock()  # a built layer takes no more variables; these need no building
    try:
        for variable in variables:
            layer._track_variable(variable)
    finally:
        tracker.locked = locked
