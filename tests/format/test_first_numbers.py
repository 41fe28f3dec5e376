"""The first elements of a tensor without NumPy are those that `decode` returns."""

import struct

import numpy as np
import pytest

from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.format.values import tensor_proto

FRAME = {
    "float32": [1.5, -0.0, 1e-40, float("inf"), 0.1],
    "float64": [0.1, -2.0, 1e300],
    "int32": [-(2**31), 7, 2**31 - 1],
    "int64": [-(2**63), 5],
    "bool": [True, False],
}
FIELDS = {"float32": "float_val", "float64": "double_val", "int32": "int_val"}
FIELDS |= {"int64": "int64_val", "bool": "bool_val"}


def listed(dtype, values, shape):
    proto = tensor_proto.encode(np.zeros(shape, dtype))
    proto.ClearField("tensor_content")
    getattr(proto, FIELDS[dtype]).extend(values)
    return proto


def decoded(proto, most):
    values = tensor_proto.decode(proto)
    return [value.item() for value in values.flat[:most]], values.size


@pytest.mark.parametrize("most", [0, 2, 6])
@pytest.mark.parametrize("dtype", FRAME)
def test_elements(dtype, most):
    values = FRAME[dtype]
    for proto in (
        tensor_proto.encode(np.array(values, dtype)),
        tensor_proto.encode(np.array(values[0], dtype)),
        tensor_proto.encode(np.zeros((2, 0), dtype)),
        listed(dtype, values, [len(values)]),
        listed(dtype, values, [len(values) + 3]),
        listed(dtype, [], [3]),
        listed(dtype, values[:1], [2, 4]),
    ):
        found, count = tensor_proto.first_numbers(proto, most)
        assert (repr(found), count) == (repr(decoded(proto, most)[0]), decoded(proto, most)[1])
        assert list(map(type, found)) == list(map(type, decoded(proto, most)[0]))


def test_bytes_of_bool_are_true_or_false():
    proto = schema.TensorProto(dtype=schema.DT_BOOL, tensor_content=b"\0\1\2")
    proto.tensor_shape.dim.add(size=3)
    assert tensor_proto.first_numbers(proto, 3)[0] == decoded(proto, 3)[0] == [False, True, True]


@pytest.mark.parametrize("dtype", ["float16", "int8", "complex64", "uint8"])
def test_other_dtypes_are_left_to_decode(dtype):
    assert tensor_proto.first_numbers(tensor_proto.encode(np.zeros(2, dtype)), 1) is None


def test_many_dimensions_are_left_to_decode():
    proto = listed("int32", [], [1] * 9)
    assert tensor_proto.first_numbers(proto, 1) is None


@pytest.mark.parametrize(
    "proto",
    [
        listed("int32", [1, 2, 3], [2]),
        schema.TensorProto(dtype=schema.DT_FLOAT, tensor_content=struct.pack("<f", 1) + b"\0"),
        schema.TensorProto(
            dtype=schema.DT_FLOAT, tensor_shape=schema.TensorShapeProto(unknown_rank=True)
        ),
        schema.TensorProto(
            dtype=schema.DT_INT64,
            tensor_shape=schema.TensorShapeProto(
                dim=[schema.TensorShapeProto.Dim(size=1 << 50)] * 2
            ),
        ),
        schema.TensorProto(dtype=99),
    ],
    ids=["too many", "bytes over", "no rank", "too large", "no dtype"],
)
def test_errors_are_those_of_decode(proto):
    errors = []
    for read in (tensor_proto.decode, lambda proto: tensor_proto.first_numbers(proto, 6)):
        with pytest.raises(SavedModelError) as caught:
            read(proto)
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]
