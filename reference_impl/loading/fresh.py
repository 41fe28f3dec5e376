"""``type(loaded)()``: another object of the structure of a loaded one, whose variables have no values yet (INIT-02..INIT-10).

It is loaded a second time out of the same MetaGraph, without the checkpoint, into the object that Python has made. Its functions
are those of the model bound to its own variables. Before one of them runs, those of its variables that have no value get their
first one, if the file says how (`reference_impl.loading.initial_values`); afterwards it is a loaded function like any other.
"""

from __future__ import annotations

import weakref
from typing import Any

import tensorflow as tf

from reference_impl.errors import UninitializedVariableError, UnsupportedModelError
from reference_impl.loading import initial_values
from reference_impl.loading.argument_uses import used_arguments
from reference_impl.loading.concrete import LoadedConcreteFunction
from reference_impl.loading.loader import Loader
from reference_impl.loading.options import LoadOptions
from reference_impl.loading.origin import Origin
from reference_impl.loading.selection import Selection

_INIT = "__init__"
_STATE = ("variable", "resource")


def construct(instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Fill an object that was made by calling the class of a loaded one.

    If `__init__` was a tf.function, it is called with the arguments; otherwise there must be none (INIT-06, INIT-09).

    Raises:
      TypeError: it takes no arguments.
      UnsupportedModelError: functions of the object use variables that do not belong to it (INIT-05).
    """
    origin, number = type(instance)._origin
    takes = any(child.local_name == _INIT for child in origin.graph.nodes[number].children)
    if (args or kwargs) and not takes:
        raise TypeError(
            f"{type(instance).__name__}() takes no arguments: the __init__ of what was saved is no tf.function (INIT-06)"
        )
    with tf.init_scope():
        _FreshLoader(origin, number, instance).load()
    if takes:
        vars(instance)[_INIT](*args, **kwargs)


class FreshConcreteFunction(LoadedConcreteFunction):
    """A trace of an object whose variables may have no values yet."""

    made: tuple[Any, ...] = ()  # weak references to the variables that it made when it was traced

    @tf.autograph.experimental.do_not_convert
    def run(self, tensors: list[tf.Tensor]) -> Any:
        """As its base; first gives those variables a value that have none.

        Raises:
          UninitializedVariableError: a variable that it reads has none, and nothing says how to make one.
        """
        wanted = {
            id(variable): variable for variable in (*(made() for made in self.made), *self.variables) if variable is not None
        }
        for variable in wanted.values():
            _initialize(variable, self, tensors, ())
        missing = [variable for variable in wanted.values() if not _has_value(variable)]
        if not missing:
            self.__class__ = LoadedConcreteFunction
        else:
            # TensorFlow would read nonsense. A function that assigns the variable may run.
            assigned = used_arguments(self.library, self.saved_name, _assigns)
            first = len(self.library.get(self.saved_name).signature.input_arg) - len(self.owners)
            for position, owner in enumerate(self.owners, first):
                if any(owner is variable for variable in missing) and position not in assigned:
                    raise _error(owner, self, "nothing in the model says how it gets its first value")
        return LoadedConcreteFunction.run(self, tensors)


class _FreshLoader(Loader):
    trace_class = FreshConcreteFunction

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
        made: dict[int, list[Any]] = {}
        for variable in self.objects:
            known = initial_values.of(variable) if isinstance(variable, tf.Variable) else None
            trace = known.trace() if isinstance(known, initial_values.InitialValue) and known.trace is not None else None
            if trace is not None:
                made.setdefault(id(trace), []).append(weakref.ref(variable))
        for function in self.functions.values():
            function.made = tuple(made.get(id(function), ()))

    def make(self, number: int, node: Any) -> Any:
        made = super().make(number, node)
        if isinstance(made, tf.Variable):
            made._reference_path = self.checkpoint.path(number)
        return made

    def new_object(self, number: int, node: Any) -> Any:
        return self.instance if number == self.start else super().new_object(number, node)

    def class_of(self, number: int, node: Any) -> type:
        return self.origin.classes.get(number) or super().class_of(number, node)


def _assigns(node: Any, position: int) -> bool:
    return node.op == "AssignVariableOp" and position == 0


def _has_value(variable: Any) -> bool:
    with tf.init_scope():
        return bool(variable.is_initialized())


def _initialize(variable: Any, function: LoadedConcreteFunction, tensors: list[tf.Tensor], above: tuple[Any, ...]) -> None:
    """Give a variable its first value, after those that it is made of. One that nothing is known of is left to the caller."""
    if _has_value(variable):
        return
    known = initial_values.of(variable)
    if not isinstance(known, initial_values.InitialValue) or any(variable is other for other in above):
        return
    if known.needs_arguments:
        trace = known.trace() if known.trace is not None else None
        if trace is not function:
            call = (
                "a call that is not there any more" if trace is None else f"{trace.saved_name}{trace.structured_input_signature}"
            )
            raise _error(variable, function, f"it is made of the arguments of {call}: make such a call first")
        if not all(hasattr(tensor, "numpy") for tensor in tensors):
            raise _error(
                variable, function, "it is made of the arguments: call the function once outside of any tf.function first"
            )
    for owner in known.owners():
        if isinstance(owner, tf.Variable):
            _initialize(owner, function, tensors, (*above, variable))
            if not _has_value(owner):
                raise _error(owner, function, f"{_path(variable)} is made of it, and nothing says how it gets its own")
    with tf.init_scope():
        variable.assign(known.compute(tensors))


def _error(variable: Any, function: LoadedConcreteFunction, why: str) -> UninitializedVariableError:
    fix = (
        "Assign one, restore a checkpoint into the object, or save the model with reference_impl.initializer(variable, function)"
    )
    return UninitializedVariableError(f"the variable {_path(variable)} has no value: {why}. {fix}", node=function.saved_name)


def _path(variable: Any) -> str:
    return str(getattr(variable, "_reference_path", variable.name))
