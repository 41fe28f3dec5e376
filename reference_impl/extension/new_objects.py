"""``type(loaded)()``: make another object with the structure of a loaded one, whose variables have
no values yet.

The MetaGraph is loaded a second time, without the checkpoint, into the object that Python has made.
The new object has the functions of the model, bound to its own variables.

Before a function of the new object runs, its variables without a value are initialised, if the file
says how (`reference_impl.extension.initial_values`). Afterwards the function behaves like any other
loaded function.

RFC: INIT-02, INIT-03, INIT-04, INIT-05, INIT-06, INIT-07, INIT-08, INIT-09, INIT-10
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import UninitializedVariableError, UnsupportedModelError
from reference_impl.extension import initial_values
from reference_impl.extension.hooks import ExtensionHook
from reference_impl.format import schema
from reference_impl.functions.captures import used_arguments
from reference_impl.functions.load_context import LoadContext, Origin
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.graph.closure import reachable
from reference_impl.kinds import user_object

_INIT = "__init__"
_STATE = ("variable", "resource")
# attribute of a new variable, which has no other name that locates it in its model
_PATH = "_reference_path"


def construct(
    load_part: Callable[[ExtensionHook, Origin, int], None],
    origin: Origin,
    number: int,
    instance: object,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    """Fill an object that was made by calling the class of a loaded object.

    If `__init__` was a tf.function, it is called with the arguments; otherwise there must be no
    arguments (TypeError). `load_part` loads the part of the model that begins at a node, without
    values.
    """
    takes = any(child.local_name == _INIT for child in origin.graph.nodes[number].children)
    if (args or kwargs) and not takes:
        raise TypeError(
            f"{type(instance).__name__}() takes no arguments: the __init__ of the saved object is"
            " not a tf.function (INIT-06)"
        )
    with tf.init_scope():
        load_part(_NewObject(origin, number, instance), origin, number)
    if takes:
        vars(instance)[_INIT](*args, **kwargs)


class _Initialisation:
    """What happens before a function of a new object runs, until all its variables have values.

    `made` are weak references to the variables that the function made when it was traced.
    """

    def __init__(self, made: Sequence[Callable[[], Optional[tf.Variable]]]):
        self._made = made

    @api.without_autograph
    def __call__(self, function: RegisteredFunction, tensors: Sequence[tf.Tensor]) -> None:
        """Initialise the variables of the function that have no value.

        Raises UninitializedVariableError.
        """
        made = [reference() for reference in self._made]
        wanted = {
            id(variable): variable
            for variable in (*made, *function.variables)
            if variable is not None
        }
        for variable in wanted.values():
            _initialize(variable, function, tensors, ())
        missing = [variable for variable in wanted.values() if not _has_value(variable)]
        if missing:
            _check_assigned(function, missing)
        else:
            function.before_run = None


def _check_assigned(function: RegisteredFunction, missing: Sequence[tf.Variable]) -> None:
    """Raise UninitializedVariableError unless the function assigns the variables without a value.

    TensorFlow would read undefined data.
    """
    assigned = used_arguments(function.library, function.saved_name, _assigns)
    first = len(function.definition.signature.input_arg) - len(function.owners)
    for position, owner in enumerate(function.owners, first):
        if any(owner is variable for variable in missing) and position not in assigned:
            raise _error(owner, function, "nothing in the model says how it gets its first value")


class _NewObject(ExtensionHook):
    """The hooks of a load into an existing object."""

    def __init__(self, origin: Origin, number: int, instance: object):
        super().__init__(origin)
        self._number, self._instance = number, instance

    def check(self, load: LoadContext) -> None:
        """Raise UnsupportedModelError unless every variable and table that the functions use is a
        part of the object.
        """
        nodes = self.origin.graph.nodes
        own = reachable(
            [self._number], lambda number: [child.node_id for child in nodes[number].children]
        )
        slots: set[int] = set()
        for node in nodes:
            slots.update(slot.slot_variable_node_id for slot in node.slot_variables)
        others = [
            number
            for number, node in enumerate(load.graph.nodes)
            if node.WhichOneof("kind") in _STATE and number not in own.keys() | slots
        ]
        if others:
            names = ", ".join(sorted(load.path(number) for number in others))
            where = load.path(self._number)
            reason = (
                f"no other object like {where} can be made: its functions use {names}, which cannot"
                " be reached from it"
            )
            raise UnsupportedModelError(
                f"{reason}; make another one of an object that has both",
                node=where,
                clause="INIT-05",
            )

    def make(self, load: LoadContext, number: int, node: schema.SavedObject) -> Optional[Any]:
        return self._instance if number == self._number else super().make(load, number, node)

    def make_generic(
        self, load: LoadContext, number: int, node: schema.SavedObject
    ) -> Optional[Any]:
        if number in self.origin.classes:
            return user_object.new_object(self.origin.classes[number])
        return super().make_generic(load, number, node)

    def made(self, load: LoadContext, number: int, node: schema.SavedObject, made: object) -> None:
        super().made(load, number, node, made)
        if isinstance(made, tf.Variable):
            setattr(made, _PATH, load.path(number))

    def attach(self, load: LoadContext) -> None:
        super().attach(load)
        made: dict[int, list[Any]] = {}  # the variables that each function made when it was traced
        for variable in [found for found in load.objects if isinstance(found, tf.Variable)]:
            known = initial_values.of(variable)
            trace = (
                known.trace()
                if isinstance(known, initial_values.InitialValue) and known.trace is not None
                else None
            )
            if trace is not None:
                made.setdefault(id(trace), []).append(weakref.ref(variable))
        for function in load.functions.values():
            function.before_run = _Initialisation(made.get(id(function), ()))


def _assigns(node: schema.NodeDef, position: int) -> bool:
    return node.op == "AssignVariableOp" and position == 0


def _has_value(variable: tf.Variable) -> bool:
    with tf.init_scope():
        return bool(variable.is_initialized())


def _initialize(
    variable: tf.Variable,
    function: RegisteredFunction,
    tensors: Sequence[tf.Tensor],
    above: tuple[Any, ...],
) -> None:
    """Give a variable its first value, after the variables that the value depends on.

    Do nothing if no function is known.
    """
    if _has_value(variable):
        return
    known = initial_values.of(variable)
    if not isinstance(known, initial_values.InitialValue) or any(
        variable is other for other in above
    ):
        return
    if known.needs_arguments:
        trace = known.trace() if known.trace is not None else None
        if trace is not function:
            call = (
                "a call that is not there any more"
                if trace is None
                else f"{trace.saved_name}{trace.structured_input_signature}"
            )
            raise _error(
                variable, function, f"it is made of the arguments of {call}: make such a call first"
            )
        if not all(hasattr(tensor, "numpy") for tensor in tensors):
            raise _error(
                variable,
                function,
                "it is made of the arguments: call the function once outside of any tf.function"
                " first",
            )
    for owner in known.given():
        if isinstance(owner, tf.Variable):
            _initialize(owner, function, tensors, (*above, variable))
            if not _has_value(owner):
                raise _error(
                    owner,
                    function,
                    f"{_path(variable)} is made of it, and nothing says how it gets its own",
                )
    with tf.init_scope():
        variable.assign(known.compute(tensors))


def _error(
    variable: tf.Variable, function: RegisteredFunction, why: str
) -> UninitializedVariableError:
    fix = (
        "Assign one, restore a checkpoint into the object, or save the model with"
        " reference_impl.initializer(variable, function)"
    )
    return UninitializedVariableError(
        f"the variable {_path(variable)} has no value: {why}. {fix}", node=function.saved_name
    )


def _path(variable: tf.Variable) -> str:
    return str(getattr(variable, _PATH, variable.name))
