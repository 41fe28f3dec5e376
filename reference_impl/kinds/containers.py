"""Loaded objects as parts of larger models: their variables, and which variables a container sees.

Reusable SavedModels of TF Hub and exports of Keras list the variables of an object: its child ``variables`` is a list of them,
``trainable_variables`` lists those to train. If an object has both lists, they are complete. Its other variables (of an
optimizer, of metrics, the copies of all variables that Keras 3 writes) belong to the object, but are not weights of a model
around it. If an object has only one of the two names, that child is an ordinary attribute.

A `tf.Module` and a layer of Keras 2 look for variables inside the modules they hold. A loaded object is such a module, so they
find its variables. A layer of Keras 3 knows only Keras variables and Keras layers. When a loaded object becomes an attribute of
such a layer, the layer gets a Keras variable for each variable, which wraps the variable and does not copy it. A layer that makes
such variables itself, such as Keras' TFSMLayer, keeps only its own. These wrappers are not written to disk.

RFC: GOAL-02, GOAL-03
"""

from __future__ import annotations

import sys
import weakref
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.format.names import LIST, PRIVATE
from reference_impl.graph.closure import reachable

ALL, TRAINABLE = "variables", "trainable_variables"
# Attribute of a loaded object: {name: child} of the attributes that hold variables outside its list.
UNLISTED = f"{PRIVATE}unlisted"
_VIEW = f"{PRIVATE}keras_view"  # attribute of a tf.Variable: a weak reference to the Keras variable that wraps it

_watched: set[Any] = set()  # Keras 3, after `watch_layers`; read for every object that is tracked


def _listed(obj: Any, name: str) -> Optional[list[tf.Variable]]:
    """Return the variables that the model lists under `name` for a loaded object, or None unless it has both lists."""
    if not all(isinstance(vars(obj).get(each), (list, tuple)) for each in (ALL, TRAINABLE)):
        return None
    return [item for item in vars(obj)[name] if api.is_variable(item)]


def variables(obj: Any) -> tuple[tf.Variable, ...]:
    """Return all variables of a loaded object, each once."""
    found = _listed(obj, ALL)
    return tuple({id(item): item for item in found}.values()) if found is not None else tf.Module.variables.fget(obj)


def trainable_variables(obj: Any) -> tuple[tf.Variable, ...]:
    """Return the variables of a loaded object that are listed as trainable or, without a list, marked as trainable."""
    found = _listed(obj, TRAINABLE)
    return tuple(found) if found is not None else tuple(variable for variable in variables(obj) if variable.trainable)


def non_trainable_variables(obj: Any) -> tuple[tf.Variable, ...]:
    """Return the variables of a loaded object that are not among the trainable ones."""
    trainable = {id(variable) for variable in trainable_variables(obj)}
    return tuple(variable for variable in variables(obj) if id(variable) not in trainable)


def note_unlisted(obj: Any, graph: Any, number: int) -> None:
    """Record the attributes of a loaded object (the node `number` of `graph`) that `tf.Module` must not search for variables."""
    children = {child.local_name: child.node_id for child in graph.nodes[number].children}
    if any(name not in children or graph.nodes[children[name]].user_object.identifier != LIST for name in (ALL, TRAINABLE)):
        return
    inside = _reachable_variables(graph, children[ALL], number)
    outside = [name for name, child in children.items() if not _reachable_variables(graph, child, number) <= inside]
    if outside:
        vars(obj)[UNLISTED] = {name: vars(obj)[name] for name in outside if name in vars(obj)}


def unlisted(obj: Any) -> frozenset[str]:
    """Return the names that `note_unlisted` recorded, without attributes that were assigned since."""
    members = vars(obj)
    return frozenset(name for name, child in members.get(UNLISTED, {}).items() if members.get(name) is child)


def _reachable_variables(graph: Any, start: int, parent: int) -> set[int]:
    """Return the numbers of the variables below a node, including slots of optimizers, but not on paths through `parent`."""

    def following(number: int) -> list[int]:
        node = graph.nodes[number]
        return [child.node_id for child in node.children] + [slot.slot_variable_node_id for slot in node.slot_variables]

    below = reachable([start], following, seen={} if start == parent else {parent: None})
    return {number for number in below if graph.nodes[number].WhichOneof("kind") == "variable"}


def watch_layers() -> None:
    """Make layers of Keras 3 track the variables of loaded objects that become their attributes."""
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
    """Give a layer of Keras 3 the variables of a loaded object, which has become its attribute, as far as Keras can have them."""
    keras = _keras3()
    # Not child.variables: a model may have a child of that name.
    held = [variable for variable in variables(child) if api.keras_holds(keras, variable)]
    api.stand_in(layer, [_view(variable, keras) for variable in held])


def _keras3() -> Optional[Any]:
    """Keras 3 on TensorFlow, if the program has imported it."""
    keras = sys.modules.get("keras")
    version = getattr(keras, "__version__", "")
    if not version[:1].isdigit() or int(version.partition(".")[0]) < 3 or keras.backend.backend() != "tensorflow":  # type: ignore[union-attr]
        return None
    return keras


def _view(variable: tf.Variable, keras: Any) -> Any:
    """Return the Keras variable of a variable, always the same one, so that an optimizer that sees it twice updates it once."""
    known = getattr(variable, _VIEW, None)
    view = None if known is None else known()
    if view is None:
        name = variable.name.rpartition(":")[0].replace("/", "_")
        view = api.keras_variable(keras, variable, name)
        setattr(variable, _VIEW, weakref.ref(view))
    return view
