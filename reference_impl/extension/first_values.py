"""Give first values to variables that have none yet: the variables of objects made by ``type(loaded)()``.

Before a function of such an object runs, its variables without a value are initialised, if the file says how
(`reference_impl.extension.initial_values`). Afterwards the function behaves like any other loaded function.

RFC: INIT-03, INIT-08
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import UninitializedVariableError
from reference_impl.extension import initial_values
from reference_impl.kinds.captures import used_arguments
from reference_impl.kinds.concrete_function import LoadedConcreteFunction

_PATH = "_reference_path"  # attribute of a variable


def set_path(variable: Any, path: str) -> None:
    """Note the path of a variable in its model, for messages: a new variable has no other name that locates it."""
    setattr(variable, _PATH, path)


class FreshConcreteFunction(LoadedConcreteFunction):
    """A concrete function of an object whose variables may have no values yet."""

    made: tuple[Any, ...] = ()  # weak references to the variables that the function made when it was traced

    @api.without_autograph
    def run(self, tensors: list[tf.Tensor]) -> Any:
        """Initialise the function's variables without a value, then run it. Raises UninitializedVariableError."""
        wanted = {
            id(variable): variable for variable in (*(made() for made in self.made), *self.variables) if variable is not None
        }
        for variable in wanted.values():
            _initialize(variable, self, tensors, ())
        missing = [variable for variable in wanted.values() if not _has_value(variable)]
        if not missing:
            self.__class__ = LoadedConcreteFunction
        else:
            # TensorFlow would read undefined data. A function that assigns the variable may run.
            assigned = used_arguments(self.library, self.saved_name, _assigns)
            first = len(self.library.get(self.saved_name).signature.input_arg) - len(self.owners)
            for position, owner in enumerate(self.owners, first):
                if any(owner is variable for variable in missing) and position not in assigned:
                    raise _error(owner, self, "nothing in the model says how it gets its first value")
        return LoadedConcreteFunction.run(self, tensors)


def note_makers(variables: Iterable[Any], functions: Iterable[FreshConcreteFunction]) -> None:
    """Record in each function which variables it made when it was traced."""
    made: dict[int, list[Any]] = {}
    for variable in variables:
        known = initial_values.of(variable)
        trace = known.trace() if isinstance(known, initial_values.InitialValue) and known.trace is not None else None
        if trace is not None:
            made.setdefault(id(trace), []).append(weakref.ref(variable))
    for function in functions:
        function.made = tuple(made.get(id(function), ()))


def _assigns(node: Any, position: int) -> bool:
    return node.op == "AssignVariableOp" and position == 0


def _has_value(variable: Any) -> bool:
    with tf.init_scope():
        return bool(variable.is_initialized())


def _initialize(variable: Any, function: LoadedConcreteFunction, tensors: list[tf.Tensor], above: tuple[Any, ...]) -> None:
    """Give a variable its first value, after the variables that the value depends on. Do nothing if no function is known."""
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
    for owner in known.given():
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
    return str(getattr(variable, _PATH, variable.name))
