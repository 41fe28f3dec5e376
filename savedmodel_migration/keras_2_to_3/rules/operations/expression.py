"""The calls of ``keras.ops`` that replace the call of a TensorFlow function, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from savedmodel_migration.keras_2_to_3.refused import Refused


@dataclass(frozen=True)
class Expression:
    """A call of ``keras.ops.TARGET``; arguments may be expressions themselves."""

    target: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


class Function:
    """Translates calls of one function of TensorFlow.

    ``arguments`` are their names, the first one first. A ``*`` is before the name of a tensor that
    may be a constant. ``defaults`` are arguments that Keras lacks, which must have this value.
    """

    def __init__(self, arguments: str, make: Callable[..., Any], **defaults: Any) -> None:
        self.names, self.make, self.defaults = arguments.replace("*", "").split(), make, defaults
        self.first = self.names[0]
        self.tensors = [name[1:] for name in arguments.split() if name.startswith("*")]

    def __call__(self, given: Mapping[str, Any]) -> Any:
        """Return the expression, or the sizes, that a call gives. Raises Refused."""
        for name, value in given.items():
            if name in self.defaults and value != self.defaults[name] and value is not None:
                raise Refused(f"keras.ops has no {name}={value!r}"[:200])
            if name not in self.names and name not in self.defaults:
                raise Refused(f"the argument {name} of the function is not known")
        given = {**given, **self._constants(given)}
        try:
            return self.make(**{name: value for name, value in given.items() if name in self.names})
        except TypeError as error:
            raise Refused(f"the arguments of the function are not known: {error}"[:300]) from None

    def _constants(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return arrays for the tensors that a configuration holds as lists, of the dtype of the
        other tensors of the call.
        """
        tensors = {name: given[name] for name in self.tensors if name in given}
        dtypes = [str(item.dtype) for item in tensors.values() if hasattr(item, "dtype")]
        return {name: array_of(item, dtypes) for name, item in tensors.items() if is_numbers(item)}


def is_numbers(value: Any) -> bool:
    """Return whether a value is a list of numbers, or of such lists."""
    listed = isinstance(value, (list, tuple))
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return listed and isinstance(value, (int, float))


def array_of(numbers: Any, dtypes: Sequence[str]) -> npt.NDArray[Any]:
    """Return the array of a constant that is written as a list: of the first of the dtypes, else of
    TensorFlow's own for it.
    """
    array = np.array(numbers)
    if array.dtype == bool:
        return array
    return array.astype(next(iter(dtypes), "int32" if array.dtype.kind == "i" else "float32"))


def renamed(target: str, arguments: str, **defaults: Any) -> Function:
    """Return a translation that calls ``keras.ops.TARGET``; ``arguments`` are ``name`` or
    ``name:name in Keras``.
    """
    parts = (part.partition(":") for part in arguments.split())
    pairs = {name.lstrip("*"): other or name.lstrip("*") for name, _, other in parts}

    def make(**given: Any) -> Expression:
        return Expression(target, {pairs[name]: value for name, value in given.items()})

    return Function(
        " ".join(part.partition(":")[0] for part in arguments.split()), make, **defaults
    )
