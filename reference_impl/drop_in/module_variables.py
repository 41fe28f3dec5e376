"""Loaded objects as parts of larger models: their variables, and which variables a container sees.

Reusable SavedModels of TF Hub and exports of Keras list the variables of an object: its child
``variables`` is a list of them, ``trainable_variables`` lists those to train. If an object has both
lists, they are complete. Its other variables (of an optimizer, of metrics, the copies of all
variables that Keras 3 writes) belong to the object, but are not weights of a model around it. If an
object has only one of the two names, that child is an ordinary attribute.

By default no container sees the variables of a loaded object, as with `tf.saved_model.load`:
programs hold a frozen backbone that way, and train what is around it. With
``LoadOptions(modules=True)`` a loaded object is a `tf.Module`, so that a `tf.Module` and a layer of
Keras 2 find its variables. For Keras 3 there is `savedmodel_compat.keras.SavedModelLayer`.

RFC: GOAL-02, GOAL-03
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.format import schema
from reference_impl.format.names import LIST, PRIVATE
from reference_impl.graph.closure import reachable

ALL, TRAINABLE = "variables", "trainable_variables"
LISTS = frozenset({ALL, TRAINABLE})
# Attribute of a loaded object: {name: child} of the attributes that hold variables outside its
# list.
UNLISTED = f"{PRIVATE}unlisted"


def is_module(obj: object) -> bool:
    """Return whether an object is searched for variables: a `tf.Module`, or a loaded object, which
    need not be one.
    """
    return isinstance(obj, (tf.Module, api.Searchable))


def leaves(root: object) -> Iterator[Any]:
    """Yield what the attributes of an object and of the modules below it hold, each once, in the
    order of `tf.Module.variables`.

    `tf.Module` has no public search, and would not search loaded objects.
    """
    seen, pending = {id(root): root}, [root]
    while pending:
        parts, module = [], pending.pop()
        ignored = api.unsearched(module)
        for name in sorted(vars(module).keys() - ignored):
            for leaf in _flat(vars(module)[name]):
                if id(leaf) not in seen:
                    seen[id(leaf)] = (
                        leaf  # which also keeps it alive, so that no other object gets its identity
                    )
                    parts += [leaf] if is_module(leaf) else []
                    yield leaf
        pending.extend(reversed(parts))


def _flat(value: object) -> Iterator[Any]:
    """Yield the leaves of a structure, and the tensors in place of composite ones; a variable is
    composite too, but stays.
    """
    for leaf in tf.nest.flatten(value):
        if isinstance(leaf, api.CompositeTensor) and not api.is_variable(leaf):
            yield from tf.nest.flatten(leaf, expand_composites=True)
        else:
            yield leaf


def _listed(obj: object, name: str) -> Optional[list[tf.Variable]]:
    """Return the variables that the model lists under `name` for a loaded object, or None unless it
    has both lists.
    """
    if not all(isinstance(vars(obj).get(each), (list, tuple)) for each in (ALL, TRAINABLE)):
        return None
    return [item for item in vars(obj)[name] if api.is_variable(item)]


def variables(obj: object) -> tuple[tf.Variable, ...]:
    """Return all variables of a loaded object, each once."""
    found = _listed(obj, ALL)
    if found is None:
        return tuple(leaf for leaf in leaves(obj) if isinstance(leaf, tf.Variable))
    return tuple({id(item): item for item in found}.values())


def trainable_variables(obj: object) -> tuple[tf.Variable, ...]:
    """Return the variables of a loaded object that are listed as trainable or, without a list,
    marked as trainable.
    """
    found = _listed(obj, TRAINABLE)
    return (
        tuple(found)
        if found is not None
        else tuple(variable for variable in variables(obj) if variable.trainable)
    )


def non_trainable_variables(obj: object) -> tuple[tf.Variable, ...]:
    """Return the variables of a loaded object that are not among the trainable ones."""
    trainable = {id(variable) for variable in trainable_variables(obj)}
    return tuple(variable for variable in variables(obj) if id(variable) not in trainable)


def note_unlisted(obj: object, graph: schema.SavedObjectGraph, number: int) -> None:
    """Record the attributes of a loaded object (the node `number` of `graph`) that are not searched
    for variables.
    """
    children = {child.local_name: child.node_id for child in graph.nodes[number].children}
    if any(
        name not in children or graph.nodes[children[name]].user_object.identifier != LIST
        for name in (ALL, TRAINABLE)
    ):
        return
    inside = _reachable_variables(graph, children[ALL], number)
    outside = [
        name
        for name, child in children.items()
        if not _reachable_variables(graph, child, number) <= inside
    ]
    if outside:
        vars(obj)[UNLISTED] = {name: vars(obj)[name] for name in outside if name in vars(obj)}


def unlisted(obj: object) -> frozenset[str]:
    """Return the names that `note_unlisted` recorded, without attributes that were assigned
    since.
    """
    members = vars(obj)
    return frozenset(
        name for name, child in members.get(UNLISTED, {}).items() if members.get(name) is child
    )


def _reachable_variables(graph: schema.SavedObjectGraph, start: int, parent: int) -> set[int]:
    """Return the numbers of the variables below a node, including slots of optimizers, but not on
    paths through `parent`.
    """

    def following(number: int) -> list[int]:
        node = graph.nodes[number]
        return [child.node_id for child in node.children] + [
            slot.slot_variable_node_id for slot in node.slot_variables
        ]

    below = reachable([start], following, seen={} if start == parent else {parent: None})
    return {number for number in below if graph.nodes[number].WhichOneof("kind") == "variable"}
