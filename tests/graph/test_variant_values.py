"""The metadata of a list of tensors, whose decoder in TensorFlow trusts them."""

from __future__ import annotations

import pytest

from reference_impl.errors import MalformedError
from reference_impl.format import schema
from reference_impl.format.values.shapes import shape_proto
from reference_impl.graph.variant_values import TENSOR_LIST, element_shape

SHAPE = shape_proto([2, None])


def tensor_list(*numbers, tensors=0, shape=SHAPE):
    value = schema.VariantTensorDataProto(type_name=TENSOR_LIST)
    value.metadata = bytes(numbers) + shape.SerializeToString()
    for _ in range(tensors):
        value.tensors.add()
    return value


def test_the_shape_of_the_elements():
    assert element_shape(tensor_list(0, schema.DT_FLOAT, 5)) == SHAPE
    assert element_shape(tensor_list(1, 0, schema.DT_FLOAT, 5, tensors=1)) == SHAPE


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (tensor_list(120, schema.DT_FLOAT, 5), "120 elements without a tensor"),
        (tensor_list(1, 3, schema.DT_FLOAT, 5), "element 3 of a list of 1"),
        (tensor_list(0, 99, 5), "the dtype 99"),
        (schema.VariantTensorDataProto(metadata=b"\0"), "end early"),
        (schema.VariantTensorDataProto(metadata=b"\0\1\5\x0a\xff"), "shape of the elements"),
    ],
)
def test_contradictions_are_refused(value, reason):
    with pytest.raises(MalformedError, match=reason):
        element_shape(value)
