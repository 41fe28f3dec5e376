"""Functions that compute the first values of variables again.

For a variable made inside a `tf.function`, the function is the part of the trace that computed its
value. For other variables, `initializer` names the function. Saving stores these functions and
loading attaches them to the variables. They run only when an object made by ``type(loaded)()``
needs a value, never during a load.

RFC: INIT-03, INIT-08
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import MalformedError
from reference_impl.format import schema
from reference_impl.functions.captures import handle_of
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.names import FileName
from reference_impl.functions.registration import register

ATTRIBUTE = "_reference_initial_value"


class Argument(int):
    """The position of a tensor among the arguments of the call that made the variable."""


@dataclass(frozen=True)
class InitialValue:
    """A function that computes the first value of a variable.

    It does not keep the variable's model alive.

    `trace` is a weak reference to the concrete function that made the variable, to whose arguments
    an Argument refers.
    """

    library: FunctionLibrary  # holds only this function
    name: FileName
    # An Argument, a tensor, or a weak reference to a variable, table or asset for each argument.
    inputs: Sequence[Any]
    trace: Optional[Callable[[], Any]] = None

    @property
    def needs_arguments(self) -> bool:
        return any(isinstance(given, Argument) for given in self.inputs)

    def given(self) -> list[Any]:
        """Return the inputs with weak references resolved; None for an object that no longer
        exists.
        """
        return [given() if isinstance(given, weakref.ref) else given for given in self.inputs]

    def compute(self, tensors: Sequence[tf.Tensor]) -> tf.Tensor:
        """Return the value. `tensors` are the arguments of the call that made the variable."""
        flat = []
        for given in self.given():
            if isinstance(given, Argument) and not 0 <= given < len(tensors):
                raise MalformedError(
                    f"wants tensor {int(given)} of {len(tensors)}",
                    file=self.library.file,
                    node=self.name,
                )
            flat.append(
                tensors[given] if isinstance(given, Argument) else handle_of(given, self.name)
            )
        return api.call_registered(register(self.library, self.name), flat, 1)[0]


def initializer(variable: tf.Variable, function: Callable[[], Any]) -> Any:
    """Set the function that computes the first value of a variable made outside a `tf.function`.

    After the model is saved and loaded, ``type(loaded)()`` can then initialise the variable by
    itself. The function takes no arguments and returns a tensor of the variable's shape and dtype.
    It may use other state of the model, and is traced when the model is saved.

    Args:
      variable: a `tf.Variable` or a variable of Keras.
      function: makes the value, e.g. ``lambda: tf.random.normal([5])``.

    Returns:
      The variable, so that ``self.w = initializer(tf.Variable(...), ...)`` can be written.

    Raises:
      TypeError: `variable` is not a variable, or `function` is not callable.

    RFC: INIT-08
    """
    if not api.is_variable(variable) or not callable(function):
        raise TypeError(
            f"initializer(variable, function): got {type(variable).__name__} and"
            f" {type(function).__name__} (INIT-08)"
        )
    set_on(variable, function)
    return variable


def set_on(variable: tf.Variable, value: Union[InitialValue, Callable[[], Any]]) -> None:
    setattr(api.variable_components(variable)[0], ATTRIBUTE, value)


def of(variable: tf.Variable) -> Union[InitialValue, Callable[[], Any], None]:
    """Return the source of a variable's first value (from a file or from `initializer`), or
    None.
    """
    return getattr(api.variable_components(variable)[0], ATTRIBUTE, None)


def attach(
    items: dict[int, Any],
    objects: Sequence[Any],
    functions: Mapping[FileName, Any],
    library: FunctionLibrary,
) -> None:
    """Attach the initial values of a file, `items` by the number of the variable's node, to loaded
    variables.

    `objects` has None for nodes that were not loaded; `functions` has the loaded concrete functions
    by name.
    """
    present = {
        number: item for number, item in items.items() if isinstance(objects[number], tf.Variable)
    }
    if not present:
        return
    proto = schema.FunctionDefLibrary()
    names: dict[FileName, None] = {}
    for item in present.values():
        names.update(dict.fromkeys(library.closure(FileName(item.function))))
    proto.function.extend(library.get(name) for name in names)
    own = FunctionLibrary(proto, library.file)
    for number, item in present.items():
        inputs = [_input(given, objects) for given in item.inputs]
        trace = functions.get(FileName(item.trace))
        known = trace is not None or not any(isinstance(given, Argument) for given in inputs)
        if known and all(given is not None for given in inputs):  # else only a part was loaded
            reference = None if trace is None else weakref.ref(trace)
            set_on(objects[number], InitialValue(own, FileName(item.function), inputs, reference))


def _input(given: schema.FunctionInput, objects: Sequence[Any]) -> Any:
    if given.WhichOneof("kind") == "argument":
        return Argument(given.argument)
    found = objects[given.node_id]
    return found if found is None or isinstance(found, tf.Tensor) else weakref.ref(found)
