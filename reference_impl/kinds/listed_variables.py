"""The variables of a loaded object, for the object itself and for every container that holds it.

Reusable SavedModels of TF Hub and exports of Keras list the variables of an object: its child ``variables`` is a list of them,
``trainable_variables`` those to train. Together these two lists are complete. What else the object holds (an optimizer, metrics,
the copies of all variables that Keras 3 writes) belongs to the object, but is not a weight of a model around it. One such name
alone is an attribute like any other, with variables beside it.

RFC: GOAL-02, GOAL-03
"""

from __future__ import annotations

from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.format.names import LIST, PRIVATE
from reference_impl.graph.closure import reachable

ALL, TRAINABLE = "variables", "trainable_variables"
# Attribute of a loaded object: {name: child} of the attributes that hold variables outside of its list.
UNLISTED = f"{PRIVATE}unlisted"


def _listed(obj: Any, name: str) -> Optional[list[tf.Variable]]:
    """Return the variables that the model lists under `name` for a loaded object, None if it does not have both lists."""
    if not all(isinstance(vars(obj).get(each), (list, tuple)) for each in (ALL, TRAINABLE)):
        return None
    return [item for item in vars(obj)[name] if api.is_variable(item)]


def variables(obj: Any) -> tuple[tf.Variable, ...]:
    """Return all variables of a loaded object, each once."""
    found = _listed(obj, ALL)
    return tuple({id(item): item for item in found}.values()) if found is not None else tf.Module.variables.fget(obj)


def trainable_variables(obj: Any) -> tuple[tf.Variable, ...]:
    """Return the variables of a loaded object that are listed as trainable; without a list, those marked as trainable."""
    found = _listed(obj, TRAINABLE)
    return tuple(found) if found is not None else tuple(variable for variable in variables(obj) if variable.trainable)


def non_trainable_variables(obj: Any) -> tuple[tf.Variable, ...]:
    """Return the variables of a loaded object that are not among the trainable ones."""
    trainable = {id(variable) for variable in trainable_variables(obj)}
    return tuple(variable for variable in variables(obj) if id(variable) not in trainable)


def note_unlisted(obj: Any, graph: Any, number: int) -> None:
    """Note which attributes of a loaded object, the node `number` of `graph`, `tf.Module` must not search for variables."""
    children = {child.local_name: child.node_id for child in graph.nodes[number].children}
    if any(name not in children or graph.nodes[children[name]].user_object.identifier != LIST for name in (ALL, TRAINABLE)):
        return
    inside = _reachable_variables(graph, children[ALL], number)
    outside = [name for name, child in children.items() if not _reachable_variables(graph, child, number) <= inside]
    if outside:
        vars(obj)[UNLISTED] = {name: vars(obj)[name] for name in outside if name in vars(obj)}


def unlisted(obj: Any) -> frozenset[str]:
    """Return the names that `note_unlisted` noted, without attributes that were assigned since."""
    members = vars(obj)
    return frozenset(name for name, child in members.get(UNLISTED, {}).items() if members.get(name) is child)


def _reachable_variables(graph: Any, start: int, parent: int) -> set[int]:
    """Return the numbers of the variables below a node, slots of optimizers included; paths through `parent` do not count."""

    def following(number: int) -> list[int]:
        node = graph.nodes[number]
        return [child.node_id for child in node.children] + [slot.slot_variable_node_id for slot in node.slot_variables]

    below = reachable([start], following, seen={} if start == parent else {parent: None})
    return {number for number in below if graph.nodes[number].WhichOneof("kind") == "variable"}
