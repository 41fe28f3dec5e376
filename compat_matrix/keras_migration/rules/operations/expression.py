"""The calls of ``keras.ops`` that replace the call of a TensorFlow function, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from compat_matrix.keras_migration.refused import Refused


@dataclass(frozen=True)
class Expression:
    """A call of ``keras.ops.TARGET``; arguments may be expressions themselves."""

    target: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


class Function:
    """Translates calls of one function of TensorFlow.

    ``arguments`` are their names, the first one first; ``defaults`` are arguments that Keras lacks, which must have this value.
    """

    def __init__(self, arguments: str, make: Callable[..., Any], **defaults: Any) -> None:
        self.names, self.make, self.defaults = arguments.split(), make, defaults
        self.first = self.names[0]

    def __call__(self, given: Mapping[str, Any]) -> Any:
        """Return the expression, or the sizes, that a call gives. Raises Refused."""
        for name, value in given.items():
            if name in self.defaults and value != self.defaults[name] and value is not None:
                raise Refused(f"keras.ops has no {name}={value!r}"[:200])
            if name not in self.names and name not in self.defaults:
                raise Refused(f"the argument {name} of the function is not known")
        try:
            return self.make(**{name: value for name, value in given.items() if name in self.names})
        except TypeError as error:
            raise Refused(f"the arguments of the function are not known: {error}"[:300]) from None


def renamed(target: str, arguments: str, **defaults: Any) -> Function:
    """Return a translation that calls ``keras.ops.TARGET``; ``arguments`` are ``name`` or ``name:name in Keras``."""
    parts = (part.partition(":") for part in arguments.split())
    pairs = {name: other or name for name, _, other in parts}

    def make(**given: Any) -> Expression:
        return Expression(target, {pairs[name]: value for name, value in given.items()})

    return Function(" ".join(pairs), make, **defaults)
