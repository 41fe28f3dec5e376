"""reference_impl.format.values.structure and tensor_proto: StructuredValue and TensorProto without
TensorFlow.
"""

import collections
import math
import struct

import numpy as np
import pytest

from reference_impl import errors
from reference_impl.format import limits, schema
from reference_impl.format.values import dtypes, structure, tensor_proto
from reference_impl.format.values.structure import (
    BoundedTensorSpec,
    NamedTuple,
    Tensor,
    TensorShape,
    TensorSpec,
    TypeSpec,
)

FLOAT = dtypes.by_name("float32")
ROW = TensorShape((None, 3))

VALUES = {
    "none": None,
    "true": True,
    "false": False,
    "int": -5,
    "largest int": 2**63 - 1,
    "smallest int": -(2**63),
    "float": 0.1,
    "infinity": -math.inf,
    "string": "aé☃\0",
    "empty string": "",
    "list": [1, [2.0, ["x"]]],
    "empty list": [],
    "tuple": (1, (), [()]),
    "empty tuple": (),
    "dict": {"b": 1, "a": {"": (None,)}},
    "empty dict": {},
    "namedtuple": NamedTuple("Point", (("y", 1), ("x", NamedTuple("Empty", ())))),
    "dtype": dtypes.by_name("bfloat16"),
    "reference dtype": dtypes.by_name("float32_ref"),
    "shape": TensorShape((2, None, 0)),
    "scalar shape": TensorShape(()),
    "unknown rank": TensorShape(None),
    "named dimensions": TensorShape((2, None), ("batch", "")),
    "tensor spec": TensorSpec(ROW, FLOAT, "x"),
    "tensor spec without name": TensorSpec(TensorShape(None), FLOAT),
    "bounded": BoundedTensorSpec(
        ROW, FLOAT, Tensor.of(np.float32(0)), Tensor.of(np.float32([1, 2, 3])), "b"
    ),
    "ragged": TypeSpec(3, "RaggedTensorSpec", (ROW, FLOAT, 1, dtypes.by_name("int64")), 2),
    "registered": TypeSpec(12, "a.b.C", {"k": [TensorSpec(ROW, FLOAT)]}, 1),
    "class newer than the schema": TypeSpec(4711, "Newer", None),
    "tensor": Tensor.of(np.arange(6, dtype=np.int16).reshape(2, 3)),
    "array": Tensor.of(np.array([["a", "b"]], object), is_numpy=True),
}


@pytest.mark.parametrize("case", VALUES)
def test_every_kind_there_and_back(case):
    value = VALUES[case]
    message = structure.encode(value)
    again = structure.decode(schema.parse(schema.StructuredValue, schema.serialize(message)))
    assert again == value
    assert repr(again) == repr(value) or isinstance(value, dict)
    assert schema.serialize(structure.encode(again)) == schema.serialize(message)


def test_every_kind_of_the_schema_is_tried():
    tried = {structure.encode(value).WhichOneof("kind") for value in VALUES.values()}
    assert tried == {
        field.name for field in schema.StructuredValue.DESCRIPTOR.oneofs_by_name["kind"].fields
    }


def test_bool_and_int_and_float_stay_apart():
    assert [type(item) for item in structure.decode(structure.encode([True, 1, 1.0, "1"]))] == [
        bool,
        int,
        float,
        str,
    ]


def test_nan_survives():
    assert math.isnan(structure.decode(structure.encode(math.nan)))


def test_dicts_come_back_sorted():
    """PY-05."""
    assert list(structure.decode(structure.encode({"b": 1, "a": 2, "c": 0}))) == ["a", "b", "c"]
    assert structure.decode(structure.encode(collections.OrderedDict(z=1))) == {"z": 1}


def test_pythons_own_namedtuples():
    """PY-04."""
    point = collections.namedtuple("Point", "x y")(1, (2,))
    value = structure.decode(structure.encode(point))
    assert value == NamedTuple("Point", (("x", 1), ("y", (2,))))
    assert value["y"] == (2,)


def test_arrays_and_their_values():
    value = structure.decode(structure.encode([np.array([1.5, -2.0])]))[0]
    assert value.is_numpy
    assert value.array().tolist() == [1.5, -2.0]


def test_names_for_people():
    assert str(TensorShape((None, 3))) == "(?, 3)"
    assert str(TensorShape(None)) == "<unknown>"
    assert VALUES["ragged"].kind_name == "RAGGED_TENSOR_SPEC"
    assert VALUES["class newer than the schema"].kind_name == "4711"


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


def endless():
    value = []
    value.append({"again": value})
    return value


UNENCODABLE = {
    "object": (object(), errors.StructureError, "builtins.object"),
    "set": ({1}, errors.StructureError, "builtins.set"),
    "bytes": (b"x", errors.StructureError, "builtins.bytes"),
    "complex": (1j, errors.StructureError, "builtins.complex"),
    "function": (len, errors.StructureError, "builtin_function"),
    "int over 64 bits": (2**63, errors.StructureError, "64 bits"),
    "int below 64 bits": (-(2**63) - 1, errors.StructureError, "64 bits"),
    "key that is not a string": ({1: 2}, errors.StructureError, "key 1"),
    "half a character": ("\ud800", errors.StructureError, "not text"),
    "negative dimension": (TensorShape((-1,)), errors.ShapeError, "-1"),
    "huge dimension": (TensorShape((2**63,)), errors.ShapeError, "dimension of"),
    "too few names": (TensorShape((1, 2), ("a",)), errors.ShapeError, "1 names for 2"),
    "too deep": (deep(limits.STRUCTURE_DEPTH + 1), errors.LimitError, "deeper than 50"),
    "containing itself": (endless(), errors.LimitError, "deeper than 50"),
    "array of objects": (np.array([{}], object), errors.DtypeError, "dict"),
}


@pytest.mark.parametrize("case", UNENCODABLE)
def test_what_cannot_be_stored_is_refused(case):
    """FN-09, PY-06."""
    value, kind, reason = UNENCODABLE[case]
    with pytest.raises(kind, match=reason) as caught:
        structure.encode(value, node="argument x")
    assert caught.value.node == "argument x"


def test_nesting_up_to_the_limit():
    value = deep(limits.STRUCTURE_DEPTH)
    assert structure.decode(structure.encode(value)) == value


def message(text):
    return schema.parse_text(schema.StructuredValue, text)


UNDECODABLE = {
    "no kind": ("", errors.StructureError, "no kind"),
    "no kind inside": ("list_value { values {} }", errors.StructureError, "no kind"),
    "pair without a value": (
        'named_tuple_value { values { key: "a" } }',
        errors.StructureError,
        "no kind",
    ),
    "field twice": (
        (
            'named_tuple_value { name: "P" values { key: "a" value { none_value {} } } values {'
            ' key: "a" value { none_value {} } } }'
        ),
        errors.DuplicateKeyError,
        "P has a field twice",
    ),
    "dtype 0": ("tensor_dtype_value: DT_INVALID", errors.DtypeError, "invalid"),
    "dtype unknown": ("tensor_dtype_value: 99", errors.DtypeError, "99"),
    "spec without dtype": ("tensor_spec_value {}", errors.DtypeError, "invalid"),
    "negative size": ("tensor_shape_value { dim { size: -2 } }", errors.ShapeError, "negative"),
    "unknown rank with sizes": (
        "tensor_shape_value { unknown_rank: true dim {} }",
        errors.ShapeError,
        "unknown rank",
    ),
}


@pytest.mark.parametrize("case", UNDECODABLE)
def test_what_makes_no_sense_is_refused(case):
    text, kind, reason = UNDECODABLE[case]
    with pytest.raises(kind, match=reason) as caught:
        structure.decode(message(text), "saved_model.pb", "function f")
    assert (caught.value.file, caught.value.node) == ("saved_model.pb", "function f")


def test_a_kind_newer_than_the_schema_is_refused_not_taken_for_nothing():
    newer = schema.parse(schema.StructuredValue, b"\xfa\x03\x02ab")  # field 63
    with pytest.raises(errors.StructureError, match="newer"):
        structure.decode(newer)


NESTS = {
    "list": lambda value: [value],
    "tuple": lambda value: (value,),
    "dict": lambda value: {"k": value},
    "namedtuple": lambda value: structure.NamedTuple("P", (("x", value),)),
    "type spec": lambda value: structure.TypeSpec(1, "C", value),
}


@pytest.mark.parametrize("kind", NESTS)
def test_nesting_over_the_limit_is_refused(kind, monkeypatch):
    value = None
    for _ in range(limits.STRUCTURE_DEPTH):
        value = NESTS[kind](value)
    stored = structure.encode(value)
    with pytest.raises(errors.LimitError):
        structure.encode(NESTS[kind](value))
    monkeypatch.setattr(limits, "STRUCTURE_DEPTH", limits.STRUCTURE_DEPTH - 1)
    with pytest.raises(errors.LimitError):
        structure.decode(stored)


@pytest.mark.tensorflow
def test_tensorflow_reads_what_we_write_and_writes_what_we_read():
    import tensorflow as tf
    from tensorflow.core.protobuf import struct_pb2
    from tensorflow.python.saved_model import nested_structure_coder as coder

    point = collections.namedtuple("Point", ["x", "y"])
    theirs = [
        None, True, 3, -1.5, "s", [], (), {}, [1, (2, {"a": None})], tf.float16,
        tf.TensorShape([None, 2]), tf.TensorShape(None), tf.TensorSpec([None], tf.int32, "n"),
        tf.RaggedTensorSpec([None, None], tf.string), tf.SparseTensorSpec([3], tf.bool),
        tf.TensorArraySpec([2], tf.float32),
    ]  # fmt: skip
    if coder.can_encode(tf.constant(1.0)):  # not in 2.12
        theirs += [point(1, tf.constant([1.0, 2.0])), np.array([[True]])]
    for value in theirs:
        stored = coder.encode_structure(value)
        ours = structure.decode(schema.parse(schema.StructuredValue, stored.SerializeToString()))
        data = schema.serialize(structure.encode(ours))
        assert struct_pb2.StructuredValue.FromString(data) == stored
    rebuilt = coder.decode_proto(
        struct_pb2.StructuredValue.FromString(schema.serialize(structure.encode(VALUES["tuple"])))
    )
    assert rebuilt == VALUES["tuple"]


# TensorProto


def listed(dtype, field, values, *shape):
    out = schema.TensorProto(dtype=dtypes.by_name(dtype).number)
    out.tensor_shape.SetInParent()
    for size in shape:
        out.tensor_shape.dim.add(size=size)
    if field:
        target = getattr(out, field)
        setattr(out, field, values) if isinstance(target, bytes) else target.extend(values)
    return out


def test_a_short_list_is_filled_with_its_last_element():
    assert tensor_proto.decode(listed("int32", "int_val", [1, 7], 2, 2)).tolist() == [
        [1, 7],
        [7, 7],
    ]
    assert tensor_proto.decode(listed("string", "string_val", [b"a"], 2)).tolist() == [b"a", b"a"]
    assert tensor_proto.decode(listed("complex64", "scomplex_val", [1, 2], 2)).tolist() == [
        1 + 2j,
        1 + 2j,
    ]


def test_no_element_means_zeros():
    assert tensor_proto.decode(listed("float64", None, None, 3)).tolist() == [0, 0, 0]
    assert tensor_proto.decode(listed("string", None, None, 2)).tolist() == [b"", b""]
    assert tensor_proto.decode(listed("bool", None, None)).tolist() is False
    assert tensor_proto.decode(listed("int8", None, None, 0, 5)).shape == (0, 5)


def test_half_precision_is_listed_as_bits():
    assert tensor_proto.decode(listed("float16", "half_val", [0x3C00, 0xC000], 2)).tolist() == [
        1.0,
        -2.0,
    ]
    assert tensor_proto.decode(listed("bfloat16", "half_val", [0x3F80], 1)).astype(
        float
    ).tolist() == [1.0]
    assert tensor_proto.decode(listed("float8_e5m2", "float8_val", b"\x3c", 1)).astype(
        float
    ).tolist() == [1.0]


def test_values_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        tensor_proto.decode(listed("int32", "int_val", [1], 2))[0] = 5


def content(dtype, data, *shape):
    out = listed(dtype, None, None, *shape)
    out.tensor_content = data
    return out


WRONG_TENSORS = {
    "fills a gigabyte": (
        listed("float32", "float_val", [1.0, 2.0], 2**14, 2**14),
        errors.LimitError,
        "elements stores 2",
    ),
    "promises a terabyte": (
        listed("float32", "float_val", [1.0], 2**20, 2**20),
        errors.LimitError,
        "1048576",
    ),
    "overflows": (
        listed("float32", "float_val", [1.0], 2**62, 2**62, 2**62),
        errors.LimitError,
        "shape",
    ),
    "a product of 4800 digits": (
        listed("float32", "float_val", [1.0], *[2**63 - 1] * 254),
        errors.LimitError,
        "shape",
    ),
    "300 dimensions": (
        listed("float32", "float_val", [1.0], *[1] * 300),
        errors.ShapeError,
        "300 dimensions",
    ),
    "many strings": (listed("string", "string_val", [b""], 2**28), errors.LimitError, "string"),
    "negative": (listed("float32", None, None, -1), errors.ShapeError, "negative"),
    "unknown rank": (
        schema.TensorProto(dtype=1, tensor_shape={"unknown_rank": True}),
        errors.ShapeError,
        "unknown",
    ),
    "too many values": (listed("int32", "int_val", [1, 2], 1), errors.ShapeError, "2 values for 1"),
    "too few bytes": (content("int32", b"\0" * 7, 2), errors.ShapeError, "7 bytes for 2"),
    "too many bytes": (content("int32", b"\0" * 9, 2), errors.ShapeError, "9 bytes for 2"),
    "half a complex": (
        listed("complex64", "scomplex_val", [1.0], 1),
        errors.ShapeError,
        "imaginary",
    ),
    "no dtype": (schema.TensorProto(), errors.DtypeError, "invalid"),
    "unknown dtype": (schema.TensorProto(dtype=77), errors.DtypeError, "77"),
    "reference": (listed("float32_ref", None, None), errors.DtypeError, "float32_ref"),
    "resource": (listed("resource", None, None), errors.DtypeError, "resource"),
    "variant": (listed("variant", None, None, 1), errors.DtypeError, "variant"),
    "bytes of a reference": (content("float32_ref", b"\0" * 4), errors.DtypeError, "float32_ref"),
    "strings cut off": (content("string", b"\x05", 2), errors.ShapeError, "length of string 1"),
    "strings too short": (content("string", b"\x05\x05abc", 2), errors.ShapeError, "do not add up"),
    "dimensions without end": (listed("int8", None, None, *[1] * 200), errors.ShapeError, "shape"),
}


@pytest.mark.parametrize("case", WRONG_TENSORS)
def test_tensors_that_make_no_sense(case):
    proto, kind, reason = WRONG_TENSORS[case]
    with pytest.raises(kind, match=reason):
        tensor_proto.decode(proto)


def test_strings_as_bytes():
    assert tensor_proto.decode(content("string", b"\x01\x02abc", 2)).tolist() == [b"a", b"bc"]


NUMBERS = [dtype for dtype in dtypes.ALL if dtype.itemsize is not None]


@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda dtype: dtype.name)
def test_bytes_of_every_number_type(dtype):
    data = bytes(range(1, 2 * dtype.itemsize + 1)) if (dtype.bits or 8) >= 8 else b"\1\0"
    data = b"\1\0" if dtype.name == "bool" else data
    try:
        array = tensor_proto.decode(content(dtype.name, data, 2))
    except errors.UnsupportedError as error:
        pytest.skip(str(error))  # of an older ml_dtypes
    assert array.dtype == dtype.numpy()
    assert array.tobytes() == data
    if not dtype.name.startswith("q"):
        assert schema.serialize(tensor_proto.encode(array)) == schema.serialize(
            content(dtype.name, data, 2)
        )


def test_byte_order_of_an_array_does_not_matter():
    swapped = np.array([1, 2], ">i4")
    assert tensor_proto.encode(swapped).tensor_content == struct.pack("<2i", 1, 2)


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "lists", [{}, {"float8_val": b"\x02"}, {"int_val": [2]}, {"half_val": [2]}], ids="".join
)
def test_short_and_missing_lists_are_filled_as_tensorflow_fills_them(lists):
    import tensorflow as tf
    from tensorflow.core.framework import types_pb2

    known = [
        dtype for dtype in NUMBERS if dtype.number in types_pb2.DataType.values()
    ]  # 2.21 has them all
    assert known
    for dtype in known:
        proto = schema.TensorProto(dtype=dtype.number, tensor_shape={"dim": [{"size": 2}]}, **lists)
        theirs = tf.io.parse_tensor(schema.serialize(proto), dtype.number).numpy()
        assert (dtype.name, tensor_proto.decode(proto).tolist()) == (dtype.name, theirs.tolist())


@pytest.mark.tensorflow
@pytest.mark.parametrize("as_list", [False, True])
def test_the_same_values_as_tensorflow(as_list):
    import tensorflow as tf
    from tensorflow.core.framework import tensor_pb2, types_pb2

    known = [
        dtype for dtype in NUMBERS if dtype.number in types_pb2.DataType.values()
    ]  # 2.21 has them all
    values = {
        **{
            dtype.name: np.array([[0, 1, 1]]).astype(dtype.numpy())
            for dtype in known
            if not dtype.name.startswith("q")
        },
        "string": np.array([b"a", "ä".encode(), b""], object),
        "float64": np.array([1e300, -0.0, np.inf]),
        "int64": np.array([2**63 - 1, -(2**63)]),
        "uint64": np.array([2**64 - 1], np.uint64),
    }
    for name, array in values.items():
        dtype = tf.as_dtype(name)
        if name != "string":
            array = array.view(
                dtype.as_numpy_dtype
            )  # TensorFlow before 2.14 has a bfloat16 of its own
        theirs = (
            tf.make_tensor_proto(array.tolist(), dtype, shape=array.shape)
            if as_list
            else tf.make_tensor_proto(array, dtype)
        )
        ours = tensor_proto.decode(schema.parse(schema.TensorProto, theirs.SerializeToString()))
        expected = tf.make_ndarray(theirs)
        assert (ours.dtype.name, ours.shape) == (expected.dtype.name, expected.shape), name
        assert ours.tolist() == expected.tolist(), name
        back = tensor_pb2.TensorProto.FromString(schema.serialize(tensor_proto.encode(ours)))
        assert tf.make_ndarray(back).tolist() == expected.tolist(), name
