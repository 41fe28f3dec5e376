"""Make all plain variables of a load in one pass, before the other objects.

`reference_impl.kinds.variable` makes one variable after another. Models have hundreds of variables
and few dtypes and shapes. Here each dtype and shape is decoded and compared once, and the handles
of one dtype and shape share what TensorFlow's Python attaches to them.

The benchmark "load: ResNet50 exported by Keras 3" (docs/evidence/benchmarks.md) justifies it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.fast import values
from reference_impl.format import schema
from reference_impl.functions import specs
from reference_impl.functions.load_context import LoadContext
from reference_impl.kinds import variable as plain


class _Type(NamedTuple):
    """The dtype and shape of variables, and what makes handles for them."""

    dtype: tf.DType
    shape: tf.TensorShape
    new_handle: Callable[[], tf.Tensor]


def make_all(load: LoadContext) -> dict[int, tf.Variable]:
    """Return the variables of a load by node number.

    The dictionary is empty if the plain code must make the variables: on an error, which the plain
    code reports in the order of the nodes, and for options and scopes that are not the default.
    Large values are complete after `Checkpoint.finish`.
    """
    options = load.options
    if (
        options.skip_checkpoint
        or options.keep_variable_devices
        or not load.checkpoint.shares_memory
        or not plain.are_made_here()
    ):
        return {}
    try:
        return _Batch(load).made()
    except Exception:  # the plain code meets it again
        load.checkpoint.drop()
        return {}


class _Batch:
    def __init__(self, load: LoadContext) -> None:
        self._load = load
        self._types: dict[tuple[int, bytes], _Type] = {}

    def made(self) -> dict[int, tf.Variable]:
        """Return the variables, made in passes, one for each step: a pass runs little code many
        times, which stays in the caches of the processor.

        Raises what `plain.VariableKind.read` raises.
        """
        load = self._load
        described = {
            number: load.graph.nodes[number].variable
            for number, kind in enumerate(load.kinds)
            if kind is plain.KIND and not load.has_saver(number)
        }
        keys = [load.checkpoint.variable(number, proto) for number, proto in described.items()]
        made = {number: self._make(proto) for number, proto in described.items()}
        found = load.checkpoint.read_many(keys, values.read)
        for variable, value in zip(made.values(), found):
            tf.raw_ops.AssignVariableOp(resource=variable.handle, value=value)
        return made

    def _make(self, proto: schema.SavedVariable) -> tf.Variable:
        """Make one variable, without a value."""
        known = self._type(proto)
        return api.variable_of_handle(
            proto.name, known.shape, known.dtype, known.new_handle(), **plain.roles(proto)
        )

    def _type(self, proto: schema.SavedVariable) -> _Type:
        key = proto.dtype, proto.shape.SerializeToString()
        if key not in self._types:
            dtype, shape = specs.tf_dtype(proto.dtype), specs.shape_of(proto.shape)
            self._types[key] = _Type(dtype, shape, api.handle_maker(shape, dtype))
        return self._types[key]
