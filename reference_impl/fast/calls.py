"""Take the arguments of a call as they are, if they are eager tensors that fit.

`reference_impl.functions.registered_function` binds, converts and compares the arguments of each
call. In most calls of a model they are tensors of the right dtypes, and of shapes that came before.

The benchmark "call of a signature, steady" (docs/evidence/benchmarks.md) justifies it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Optional, Union

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.functions.specs import tf_dtype

# Takes args and kwargs; see `TensorArguments.take`.
Take = Callable[[tuple[Any, ...], dict[str, Any]], Optional[list[tf.Tensor]]]

_SHAPES = 64  # remembered for each argument


class _Argument(NamedTuple):
    """An argument that is one tensor.

    Attributes:
      key: its name, or its position.
      shape: what its shape is compared with; None if any shape will do.
      fitting: sizes that were compared before, and fit.
    """

    key: Union[str, int]
    dtype: tf.DType
    shape: Optional[tf.TensorShape]
    fitting: set[tuple[int, ...]]


class TensorArguments:
    """The arguments of a function that takes tensors, all by name or all by position."""

    def __init__(self, arguments: Iterable[_Argument], named: bool) -> None:
        self._arguments, self._named = list(arguments), named

    def take(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Optional[list[tf.Tensor]]:
        """Return the tensors of a call in the order of the FunctionDef, without captures.

        None leaves the call to the plain code: an argument is missing or unknown, or must be
        converted.
        """
        given: Any = kwargs if self._named else args
        if (args if self._named else kwargs) or len(given) != len(self._arguments):
            return None
        tensors = []
        for key, dtype, shape, fitting in self._arguments:
            if self._named and key not in given:
                return None
            value = given[key]
            if type(value) is not api.EagerTensor or value.dtype is not dtype:
                return None
            if shape is not None and (sizes := api.sizes_of(value)) not in fitting:
                if not shape.is_compatible_with(sizes):
                    return None
                if len(fitting) < _SHAPES:
                    fitting.add(sizes)
            tensors.append(value)
        return tensors


def prepare(function: RegisteredFunction) -> Optional[Take]:
    """Return what takes the arguments of a function; None if it takes anything but tensors, or has
    defaults.
    """
    if function.defaults:
        return None
    (args, kwargs), binder = function.structured[0], function.binder
    if binder is None and function.flat_keywords is not None:
        inputs = function.definition.signature.input_arg
        found = [
            _Argument(key, tf_dtype(item.type, node=key), None, set())
            for key, item in zip(function.flat_keywords, inputs)
        ]
        return TensorArguments(found, named=True).take
    if (args and kwargs) or not all(map(_is_tensor, [*args, *kwargs.values()])):
        return None
    if binder is not None and not binder.takes_as_given(args, kwargs):
        return None
    specs = sorted(kwargs.items()) if kwargs else enumerate(args)
    return TensorArguments([_of_spec(key, spec) for key, spec in specs], named=bool(kwargs)).take


def _is_tensor(spec: object) -> bool:
    return type(spec) is tf.TensorSpec


def _of_spec(key: Union[str, int], spec: tf.TensorSpec) -> _Argument:
    return _Argument(key, spec.dtype, None if spec.shape.rank is None else spec.shape, set())
