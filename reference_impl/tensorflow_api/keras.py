"""Keras: export data of its models, and the variables of its layers. Keras itself is not imported."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Optional

import tensorflow as tf


def keras_signature(obj: Any) -> Optional[Any]:
    """Return the default signature function of a Keras model, or None. In Keras 2.2-3.15."""
    return getattr(obj, "_default_save_signature", None)


def keras_identity(obj: Any) -> str:
    """Return the identifier of a live object of Keras 2 in files, or "" for other objects.

    `Trackable._object_identifier` and `_tracking_metadata` are in 2.2-2.21. A Keras 3 object has the general identifier.
    """
    found = getattr(obj, "_object_identifier", "")
    return found if isinstance(found, str) else ""


def keras_metadata(obj: Any) -> str:
    """Return the JSON text from which Keras 2 can rebuild the object, or "" if the object's class does not support this."""
    try:
        return str(obj._tracking_metadata)
    except Exception:  # get_config is user code, and only Keras needs its result
        return ""


def keras_holds(keras: Any, variable: tf.Variable) -> bool:
    """Return whether Keras 3 can have a variable as one of its own: not strings, quantized numbers or an open shape."""
    try:
        dtype = keras.backend.standardize_dtype(variable.dtype)
    except ValueError:
        return False
    return dtype != "string" and bool(variable.shape.is_fully_defined())


def keras_variable(keras: Any, variable: tf.Variable, name: str) -> Any:
    """Return a variable of Keras 3 that wraps a tf.Variable; the public class makes a copy in some versions."""
    made = keras.Variable(variable, shape=variable.shape, dtype=variable.dtype.name, trainable=variable.trainable, name=name)
    made._value = variable  # in Keras 3.0-3.15
    return made


def report_parts(layer_class: Any, report: Callable[[Any, Any], None]) -> None:
    """Call `report(layer, part)` whenever a trackable object becomes an attribute of a Keras 3 layer, from now on.

    The class of all layers is changed, once: no public API tells an object or a layer that the object is its part.
    `Layer._track_trackable` is in Keras 3.0-3.15, on TensorFlow only. An assignment to an attribute calls it twice, so the first
    call may still be without the report.
    """
    inherited = layer_class._track_trackable

    @functools.wraps(inherited)
    def track(layer: Any, part: Any, *args: Any, **kwargs: Any) -> Any:
        made = inherited(layer, part, *args, **kwargs)
        report(layer, part)
        return made

    layer_class._track_trackable = track


def stand_in(layer: Any, views: Sequence[Any]) -> None:
    """Add Keras variables to a Keras 3 layer, built or not, unless it has its own variable for one of the same tf.Variables.

    If the layer gets its own later, as TFSMLayer does, `views` are removed: a tf.Variable with two Keras variables would be
    trained twice. No public API adds variables that a layer did not make. `Layer._tracker` with `add_to_store` and `untrack`,
    `Layer._track_variable` and `Variable._value` are in Keras 3.0-3.15.
    """
    own, variables, mine = layer.variables, {id(view._value) for view in views}, {id(view) for view in views}

    def competes(value: Any) -> bool:
        return id(getattr(value, "_value", None)) in variables and id(value) not in mine

    if any(competes(variable) for variable in own):
        return
    tracker, known = layer._tracker, {id(variable) for variable in own}
    locked = tracker.locked
    tracker.unlock()  # a built layer does not accept new variables; these need no building
    try:
        for view in views:
            if id(view) not in known:
                layer._track_variable(view)
    finally:
        tracker.locked = locked
    add = tracker.add_to_store

    def add_to_store(store: str, value: Any) -> None:
        add(store, value)
        if competes(value):
            for view in views:
                tracker.untrack(view)

    tracker.add_to_store = add_to_store
