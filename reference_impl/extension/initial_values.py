"""How variables got their first values: functions that give them again.

A variable that was made inside of a `tf.function` has one: the part of the trace that computed its value. For a variable made
anywhere else `initializer` names one. Saving stores them, loading hangs them on the variables; they run when an object that was
made by ``type(loaded)()`` needs a value, and never in a load.

RFC: INIT-03, INIT-08
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import MalformedError
from reference_impl.format import schema
from reference_impl.kinds.captures import handle_of
from reference_impl.kinds.library import FunctionLibrary

_ATTRIBUTE = "_reference_initial_value"


class Argument(int):
    """Position of a tensor among those of the call that made the variable."""


@dataclass(frozen=True)
class InitialValue:
    """A function that computes the first value of a variable.

    Attributes:
      library, name: the function. The library holds nothing else, so that a variable does not keep its model alive.
      inputs: an Argument, a tensor, or a weak reference to a variable, table or asset for each of its arguments.
      trace: the concrete function that made the variable, whose tensors an Argument counts, as a weak reference; None if unknown.
    """

    library: FunctionLibrary
    name: str
    inputs: Sequence[Any]
    trace: Optional[Callable[[], Any]] = None

    @property
    def needs_arguments(self) -> bool:
        return any(isinstance(given, Argument) for given in self.inputs)

    def given(self) -> list[Any]:
        """Return the inputs, variables and the like instead of references to them; None for an object that is gone."""
        return [given() if isinstance(given, weakref.ref) else given for given in self.inputs]

    def compute(self, tensors: Sequence[tf.Tensor]) -> tf.Tensor:
        """Return the value. `tensors` are those of the call that made the variable."""
        flat = []
        for given in self.given():
            if isinstance(given, Argument) and not 0 <= given < len(tensors):
                raise MalformedError(f"wants tensor {int(given)} of {len(tensors)}", file=self.library.file, node=self.name)
            flat.append(tensors[given] if isinstance(given, Argument) else handle_of(given, self.name))
        return api.call_registered(self.library.register(self.name), flat, 1)[0]


def initializer(variable: Any, function: Callable[[], Any]) -> Any:
    """Say how a variable gets its first value, for a variable that is made outside of a `tf.function`.

    ``type(loaded)()`` of a model that is saved with it can then initialise the variable by itself. The function is traced when
    the model is saved, not before; it takes nothing, gives a tensor of the variable's shape and dtype, and may use other
    state of the model.

    Args:
      variable: a `tf.Variable` or a variable of Keras.
      function: makes the value, e.g. ``lambda: tf.random.normal([5])``.

    Returns:
      The variable, so that ``self.w = initializer(tf.Variable(...), ...)`` can be written.

    Raises:
      TypeError: one of the two is something else.

    RFC: INIT-08
    """
    if not api.is_variable(variable) or not callable(function):
        raise TypeError(f"initializer(variable, function): got {type(variable).__name__} and {type(function).__name__} (INIT-08)")
    set_on(variable, function)
    return variable


def set_on(variable: Any, value: Union[InitialValue, Callable[[], Any]]) -> None:
    setattr(api.variable_components(variable)[0], _ATTRIBUTE, value)


def of(variable: Any) -> Union[InitialValue, Callable[[], Any], None]:
    """Return the source of a variable's first value, from a file or from `initializer`; None if there is none."""
    return getattr(api.variable_components(variable)[0], _ATTRIBUTE, None)


def attach(items: dict[int, Any], objects: Sequence[Any], functions: dict[str, Any], library: FunctionLibrary) -> None:
    """Attach the initial values of a file to loaded variables.

    Args:
      items: number of the variable's node -> InitialValue message.
      objects: the loaded nodes, None for those left out.
      functions: the loaded concrete functions by name.
      library: of the model.
    """
    present = {number: item for number, item in items.items() if isinstance(objects[number], tf.Variable)}
    if not present:
        return
    proto = schema.FunctionDefLibrary()
    names = dict.fromkeys(name for item in present.values() for name in library.closure(item.function))
    proto.function.extend(library.get(name) for name in names)
    own = FunctionLibrary(proto, library.file)
    for number, item in present.items():
        inputs = [_input(given, objects) for given in item.inputs]
        trace = functions.get(item.trace)
        known = trace is not None or not any(isinstance(given, Argument) for given in inputs)
        if known and all(given is not None for given in inputs):  # otherwise a part was loaded, without what the value is made of
            reference = None if trace is None else weakref.ref(trace)
            set_on(objects[number], InitialValue(own, item.function, inputs, reference))


def _input(given: Any, objects: Sequence[Any]) -> Any:
    if given.WhichOneof("kind") == "argument":
        return Argument(given.argument)
    found = objects[given.node_id]
    return found if found is None or (tf.is_tensor(found) and not isinstance(found, tf.Variable)) else weakref.ref(found)
