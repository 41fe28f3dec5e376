"""Loaded objects as parts of larger models: which variables a container sees.

A `tf.Module` and a layer of Keras 2 look for variables inside of the modules they hold. A loaded object is such a module, so they
need no help. A layer of Keras 3 knows only Keras variables and Keras layers. When a loaded object becomes an attribute of one,
its variables are given to the layer as Keras variables that stand for them (not copies). A layer that makes such variables
itself, as Keras' TFSMLayer does, keeps its own only. Nothing of this is written to disk.

RFC: GOAL-02, GOAL-03
"""

from __future__ import annotations

import sys
import weakref
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.format.names import PRIVATE
from reference_impl.kinds import listed_variables

_VIEW = f"{PRIVATE}keras_view"  # attribute of a tf.Variable: a weak reference to the Keras variable that stands for it

_watched: set[Any] = set()  # Keras 3, once its layers report to us: this is asked for every object that is tracked


def watch_layers() -> None:
    """From now on, give the layers of Keras 3 the variables of loaded objects that become their attributes."""
    if sys.modules.get("keras") in _watched:
        return
    keras = _keras3()
    if keras is not None:
        api.report_parts(keras.layers.Layer, _report)
        _watched.add(keras)


def _report(layer: Any, part: Any) -> None:
    if isinstance(part, api.Module):
        adopted(part, layer)


def adopted(child: tf.Module, layer: Any) -> None:
    """Give a layer of Keras 3 the variables of a loaded object, which has become its attribute."""
    # Not child.variables: a model may have a child of that name.
    api.stand_in(layer, [_view(variable, _keras3()) for variable in listed_variables.variables(child)])


def _keras3() -> Optional[Any]:
    """Keras 3 on TensorFlow, if the program has imported it."""
    keras = sys.modules.get("keras")
    version = getattr(keras, "__version__", "")
    if not version[:1].isdigit() or int(version.partition(".")[0]) < 3 or keras.backend.backend() != "tensorflow":  # type: ignore[union-attr]
        return None
    return keras


def _view(variable: tf.Variable, keras: Any) -> Any:
    """Return the one Keras variable for a variable, so that an optimizer that meets it twice updates it once."""
    known = getattr(variable, _VIEW, None)
    view = None if known is None else known()
    if view is None:
        name = variable.name.rpartition(":")[0].replace("/", "_")
        view = api.keras_variable(keras, variable, name)
        setattr(variable, _VIEW, weakref.ref(view))
    return view
