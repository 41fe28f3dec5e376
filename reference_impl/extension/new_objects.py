"""``type(loaded)()``: make another object with the structure of a loaded one, whose variables have no values yet.

The MetaGraph is loaded a second time, without the checkpoint, into the object that Python has made. The new object has the
functions of the model, bound to its own variables. The variables get their values later
(`reference_impl.extension.first_values`).

RFC: INIT-02, INIT-03, INIT-04, INIT-05, INIT-06, INIT-07, INIT-08, INIT-09, INIT-10
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import tensorflow as tf

from reference_impl.errors import UnsupportedModelError
from reference_impl.extension import first_values
from reference_impl.extension.hooks import Hooks, Origin
from reference_impl.graph.closure import reachable
from reference_impl.kinds import user_object
from reference_impl.kinds.load import Load

_INIT = "__init__"
_STATE = ("variable", "resource")


def construct(
    load_part: Callable[[Hooks, int], None],
    origin: Origin,
    number: int,
    instance: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    """Fill an object that was made by calling the class of a loaded object.

    If `__init__` was a tf.function, it is called with the arguments; otherwise there must be no arguments (TypeError).
    `load_part` loads the part of the model that begins at a node, without values.
    """
    takes = any(child.local_name == _INIT for child in origin.graph.nodes[number].children)
    if (args or kwargs) and not takes:
        raise TypeError(
            f"{type(instance).__name__}() takes no arguments: the __init__ of the saved object is not a tf.function (INIT-06)"
        )
    with tf.init_scope():
        load_part(_NewObject(origin, number, instance), number)
    if takes:
        vars(instance)[_INIT](*args, **kwargs)


class _NewObject(Hooks):
    """The hooks of a load into an existing object."""

    trace_class = first_values.FreshConcreteFunction

    def __init__(self, origin: Origin, number: int, instance: Any):
        super().__init__(origin)
        self._number, self._instance = number, instance

    def check(self, load: Load) -> None:
        """Raise UnsupportedModelError unless every variable and table that the functions use is a part of the object."""
        nodes = self.origin.graph.nodes
        own = reachable([self._number], lambda number: [child.node_id for child in nodes[number].children])
        slots = {slot.slot_variable_node_id for node in nodes for slot in node.slot_variables}
        others = [
            number
            for number, node in enumerate(load.graph.nodes)
            if node.WhichOneof("kind") in _STATE and number not in own.keys() | slots
        ]
        if others:
            names = ", ".join(sorted(load.path(number) for number in others))
            where = load.path(self._number)
            reason = f"no other object like {where} can be made: its functions use {names}, which cannot be reached from it"
            raise UnsupportedModelError(f"{reason}; make another one of an object that has both", node=where, clause="INIT-05")

    def make(self, load: Load, number: int, node: Any) -> Optional[Any]:
        return self._instance if number == self._number else super().make(load, number, node)

    def make_generic(self, load: Load, number: int, node: Any) -> Optional[Any]:
        if number in self.origin.classes:
            return user_object.new_object(self.origin.classes[number])
        return super().make_generic(load, number, node)

    def made(self, load: Load, number: int, node: Any, made: Any) -> None:
        super().made(load, number, node, made)
        if isinstance(made, tf.Variable):
            first_values.set_path(made, load.path(number))

    def attach(self, load: Load) -> None:
        super().attach(load)
        variables = [made for made in load.objects if isinstance(made, tf.Variable)]
        first_values.note_makers(variables, load.functions.values())
