"""savedmodel_common.serving.tensors: tensors of the harness <-> TensorProto."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_impl import errors
from reference_impl.format import limits, schema
from savedmodel_common.serving import tensors
from savedmodel_common.tensors import CARRIERS, Tensor
from savedmodel_standin import tensor_protos

NARROW = {"int4": 15, "uint4": 15, "int2": 3, "uint2": 3}  # the bits that carry a value
# An empty tensor of float4_e2m1fn has neither bytes nor a list that the format layer knows of.
DTYPES = sorted({*CARRIERS, "string"} - {"float4_e2m1fn"})


@st.composite
def any_tensor(draw):
    dtype = draw(st.sampled_from(DTYPES))
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    count = math.prod(shape)
    if dtype == "string":
        array = np.empty(count, object)
        array[:] = draw(st.lists(st.binary(max_size=5), min_size=count, max_size=count))
        return Tensor(dtype, array.reshape(shape))
    carrier = np.dtype(CARRIERS[dtype])
    if dtype in NARROW:
        array = np.array(
            draw(st.lists(st.integers(0, NARROW[dtype]), min_size=count, max_size=count)), carrier
        )
    elif dtype == "bool":
        array = np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), carrier)
    else:
        data = draw(st.binary(min_size=count * carrier.itemsize, max_size=count * carrier.itemsize))
        array = np.frombuffer(data, carrier)
        if dtype.startswith("complex") or dtype in ("float32", "float64"):
            # A typed field of Python's protobuf is a double: it may set the quiet bit of a NaN.
            parts = array.view(
                f"float{8 * carrier.itemsize // (2 if dtype.startswith('complex') else 1)}"
            )
            array = np.where(np.isnan(parts), np.array(np.nan, parts.dtype), parts).view(carrier)
    return Tensor(dtype, array.reshape(shape))


@settings(deadline=None)
@given(any_tensor(), st.booleans())
def test_what_is_sent_is_what_is_read(tensor, typed):
    if typed:  # as servers answer: one element after the other in the list of its type
        proto = schema.TensorProto()
        tensor_protos.encode(tensor, proto)
    else:
        proto = tensors.to_proto(tensor)
    read = tensors.from_proto(schema.parse(schema.TensorProto, schema.serialize(proto)))
    assert (read.dtype, read.array.dtype, read.array.shape) == (
        tensor.dtype,
        tensor.array.dtype,
        tensor.array.shape,
    )
    if tensor.dtype == "string":
        assert read.array.tolist() == tensor.array.tolist()
    else:
        assert read.array.tobytes() == tensor.array.tobytes()


def proto(text):
    return schema.parse_text(schema.TensorProto, text)


READ = {
    "the last value fills the rest": (
        "dtype: DT_FLOAT tensor_shape { dim { size: 4 } } float_val: [1, 2]",
        [1, 2, 2, 2],
    ),
    "no value at all": ("dtype: DT_INT64 tensor_shape { dim { size: 2 } }", [0, 0]),
    "one string for all": (
        'dtype: DT_STRING tensor_shape { dim { size: 2 } } string_val: "a"',
        [b"a", b"a"],
    ),
    "half in half_val": (
        "dtype: DT_HALF tensor_shape { dim { size: 2 } } half_val: [15360, 49152]",
        [1.0, -2.0],
    ),
    "bfloat16 in half_val": (
        "dtype: DT_BFLOAT16 tensor_shape { dim { size: 1 } } half_val: 16256",
        [0x3F80],
    ),
    "a scalar": ("dtype: DT_BOOL tensor_shape {} bool_val: true", True),
    "a complex number": ("dtype: DT_COMPLEX64 tensor_shape {} scomplex_val: [1, -2]", 1 - 2j),
    "bytes of numbers": (
        r'dtype: DT_INT16 tensor_shape { dim { size: 2 } } tensor_content: "\001\000\377\377"',
        [1, -1],
    ),
    "bits above a narrow value": (
        r'dtype: DT_INT4 tensor_shape { dim { size: 2 } } tensor_content: "\377\001"',
        [15, 1],
    ),
    "an empty tensor": ("dtype: DT_FLOAT tensor_shape { dim { size: 0 } dim { size: 3 } }", []),
}


@pytest.mark.parametrize("case", READ)
def test_messages_as_servers_write_them(case):
    text, values = READ[case]
    assert tensors.from_proto(proto(text)).array.tolist() == values


def test_a_scalar_has_a_shape_and_numbers_are_bytes():
    scalar = tensors.to_proto(Tensor("float32", np.float32(2)))
    assert scalar.HasField("tensor_shape")
    assert scalar.tensor_content == b"\0\0\0\x40"


def test_sizes_are_bounded_together(monkeypatch):
    monkeypatch.setattr(limits, "TENSOR_BYTES", 100)
    small = proto("dtype: DT_FLOAT tensor_shape { dim { size: 20 } }")
    assert tensors.from_protos({"a": small})["a"].array.shape == (20,)
    with pytest.raises(errors.LimitError, match="b: "):
        tensors.from_protos({"a": small, "b": small})
    with pytest.raises(errors.LimitError, match="a: a float32 tensor"):
        tensors.from_protos({"a": proto("dtype: DT_FLOAT tensor_shape { dim { size: 26 } }")})


def test_no_such_tensor():
    with pytest.raises(errors.DtypeError, match="no dtype 'float7'"):
        tensors.to_proto(Tensor("float7", np.zeros(1)))
    with pytest.raises(errors.DtypeError, match="a int "):
        tensors.to_proto(Tensor("string", np.array([1], object)))
