"""The arguments of a FunctionDef as TensorSpecs."""

from __future__ import annotations

import pytest

from reference_impl.format import schema

pytestmark = pytest.mark.tensorflow


def test_shapes_come_from_the_argument_then_from_the_function(tf):
    from reference_impl.functions.argument_specs import input_specs

    function = schema.FunctionDef()
    for name in ("own", "listed", "unknown"):
        function.signature.input_arg.add(name=name, type=schema.DT_FLOAT)
    function.signature.input_arg.add(name="handle", type=schema.DT_RESOURCE)
    own = function.arg_attr[0].attr["_output_shapes"].list.shape.add()
    own.dim.add(size=7)
    listed = function.attr["_input_shapes"].list
    for size in (1, -1):
        listed.shape.add().dim.add(size=size)
    specs = input_specs(function)
    assert [spec.name for spec in specs] == ["own", "listed", "unknown", "handle"]
    shapes = [None if spec.shape.rank is None else spec.shape.as_list() for spec in specs]
    assert shapes == [[7], [None], None, []]
