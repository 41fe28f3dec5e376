"""``type(loaded)()``: another object of the structure of a loaded one, whose variables have no values yet.

The MetaGraph is loaded a second time, without the checkpoint, into the object that Python has made. Its functions are
those of the model, bound to its own variables, which get their values later (`reference_impl.extension.first_values`).

RFC: INIT-02..INIT-10
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from reference_impl.errors import UnsupportedModelError
from reference_impl.extension import first_values
from reference_impl.load_options import LoadOptions
from reference_impl.loading.loader import Loader
from reference_impl.loading.origin import Origin
from reference_impl.loading.selection import Selection

_INIT = "__init__"
_STATE = ("variable", "resource")


def construct(origin: Origin, number: int, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Fill an object that was made by calling the class of a loaded one.

    If `__init__` was a tf.function, it is called with the arguments; otherwise there must be none (INIT-06, INIT-09).

    Raises:
      TypeError: it takes no arguments.
      UnsupportedModelError: functions of the object use variables that do not belong to it (INIT-05).
    """
    takes = any(child.local_name == _INIT for child in origin.graph.nodes[number].children)
    if (args or kwargs) and not takes:
        raise TypeError(
            f"{type(instance).__name__}() takes no arguments: the __init__ of what was saved is no tf.function (INIT-06)"
        )
    with tf.init_scope():
        _NewObjectLoader(origin, number, instance).load()
    if takes:
        vars(instance)[_INIT](*args, **kwargs)


class _NewObjectLoader(Loader):
    trace_class = first_values.FreshConcreteFunction

    def __init__(self, origin: Origin, number: int, instance: Any):
        super().__init__(origin.directory, origin.meta_graph, LoadOptions(skip_checkpoint=True))
        self.origin, self.start, self.instance = origin, number, instance
        self.selection = Selection.below(origin.graph, number, self.library.index)
        self._check(self.selection)
        self.graph = self.selection.pruned()

    def _check(self, selection: Selection) -> None:
        """Every variable and table that is needed must be a part of the object (INIT-05)."""
        own = {self.start}
        stack = [self.start]
        while stack:
            for child in self.origin.graph.nodes[stack.pop()].children:
                if child.node_id not in own:
                    own.add(child.node_id)
                    stack.append(child.node_id)
        slots = {slot.slot_variable_node_id for node in self.origin.graph.nodes for slot in node.slot_variables}
        others = [number for number in selection.nodes - own - slots if self.graph.nodes[number].WhichOneof("kind") in _STATE]
        if others:
            names = ", ".join(sorted(self.checkpoint.path(number) for number in others))
            where = self.checkpoint.path(self.start)
            reason = f"no other object like {where} can be made: its functions use {names}, which cannot be reached from it"
            raise UnsupportedModelError(f"{reason}; make another one of an object that has both", node=where, clause="INIT-05")

    def attach_additions(self) -> None:
        super().attach_additions()
        variables = [made for made in self.objects if isinstance(made, tf.Variable)]
        first_values.note_makers(variables, self.functions.values())

    def make(self, number: int, node: Any) -> Any:
        made = super().make(number, node)
        if isinstance(made, tf.Variable):
            made._reference_path = self.checkpoint.path(number)
        return made

    def new_object(self, number: int, node: Any) -> Any:
        return self.instance if number == self.start else super().new_object(number, node)

    def class_of(self, number: int, node: Any) -> type:
        return self.origin.classes.get(number) or super().class_of(number, node)
