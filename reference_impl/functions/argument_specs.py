"""The arguments of a FunctionDef as TensorSpecs."""

from __future__ import annotations

import tensorflow as tf

from reference_impl.format import schema
from reference_impl.format.values.shapes import Shape, shape_of
from reference_impl.functions.specs import tf_dtype
from reference_impl.graph.node_attributes import argument_shape

_HANDLES = (schema.DT_RESOURCE, schema.DT_VARIANT)


def input_specs(function_def: schema.FunctionDef) -> list[tf.TensorSpec]:
    """Return the specs of a function's arguments, with the shapes of the trace if the file has
    them.
    """
    specs = []
    for index, argument in enumerate(function_def.signature.input_arg):
        dtype = tf_dtype(argument.type, node=argument.name)
        specs.append(tf.TensorSpec(_shape(function_def, index), dtype, argument.name))
    return specs


def _shape(function_def: schema.FunctionDef, index: int) -> Shape:
    """Return the shape of one argument, or None if it is unknown."""
    noted = argument_shape(function_def, index)
    if noted is not None:
        return shape_of(noted)
    if "_input_shapes" in function_def.attr:
        shapes = function_def.attr["_input_shapes"].list.shape
        if index < len(shapes):
            return shape_of(shapes[index])
    return () if function_def.signature.input_arg[index].type in _HANDLES else None
