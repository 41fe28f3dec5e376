"""Values, types and specs as text."""

import numpy as np
import pytest

from reference_impl.format import schema
from reference_impl.format.values.tensor_proto import encode
from reference_impl.views.text import type_spec_text, value_text


def value(**fields):
    return schema.StructuredValue(**fields)


def nest(kind, *items):
    made = schema.StructuredValue()
    getattr(made, kind).SetInParent()
    for item in items:
        getattr(made, kind).values.add().CopyFrom(item)
    return made


def type_spec(kind, *state, name=""):
    made = schema.TypeSpecProto(
        type_spec_class=schema.TypeSpecProto.TypeSpecClass.Value(kind), type_spec_class_name=name
    )
    made.type_state.CopyFrom(nest("tuple_value", *state))
    return made


SHAPE = value(tensor_shape_value=schema.TensorShapeProto(dim=[{"size": 3}, {"size": -1}]))
LARGE, EMPTY = (schema.TensorShapeProto(dim=[{"size": size}]) for size in (999_999, 0))
INT32 = value(tensor_dtype_value=schema.DT_INT32)


@pytest.mark.parametrize(
    ("structure", "text"),
    [
        (schema.StructuredValue(), "None"),
        (value(none_value=schema.NoneValue()), "None"),
        (value(float64_value=0.5), "0.5"),
        (value(int64_value=-3), "-3"),
        (value(string_value="a'b\n"), '"a\'b\\n"'),
        (value(bool_value=False), "False"),
        (SHAPE, "[3,?]"),
        (INT32, "int32"),
        (value(tensor_dtype_value=77), "dtype_77"),
        (value(tensor_spec_value=schema.TensorSpecProto(dtype=schema.DT_BFLOAT16)), "bfloat16[]"),
        (
            value(bounded_tensor_spec_value=schema.BoundedTensorSpecProto(dtype=schema.DT_HALF)),
            "float16[]",
        ),
        (nest("list_value", INT32, INT32), "[int32, int32]"),
        (nest("tuple_value"), "()"),
        (nest("tuple_value", INT32), "(int32,)"),
        (
            value(dict_value=schema.DictValue(fields={"b": INT32, "a": SHAPE})),
            "{'a': [3,?], 'b': int32}",
        ),
        (
            value(
                named_tuple_value=schema.NamedTupleValue(
                    name="P", values=[{"key": "x", "value": INT32}]
                )
            ),
            "P(x=int32)",
        ),
        (value(tensor_value=encode(np.arange(9))), "int64[9] = 0, 1, 2, 3, 4, 5, …"),
        (
            value(tensor_value=encode(np.array([b"a", b"\xff"], object))),
            "string[2] = b'a', b'\\xff'",
        ),
        (
            value(
                numpy_value=schema.TensorProto(dtype=schema.DT_INT32, tensor_content=b"\1\0\0\0")
            ),
            "int32[] = 1",
        ),
        (
            value(numpy_value=schema.TensorProto(dtype=schema.DT_HALF, half_val=[0x3C00])),
            "float16[] = 1.0",
        ),
        (
            value(
                numpy_value=schema.TensorProto(
                    dtype=schema.DT_INT32, int_val=[7], tensor_shape=LARGE
                )
            ),
            "int32[999999] = 7, 7, 7, 7, 7, 7, …",
        ),
        (
            value(numpy_value=schema.TensorProto(dtype=schema.DT_INT32, tensor_shape=EMPTY)),
            "int32[0] = ",
        ),
        (
            value(numpy_value=schema.TensorProto(dtype=schema.DT_INT32, tensor_content=b"\1")),
            "int32[]",
        ),  # damaged
        (value(numpy_value=schema.TensorProto(dtype=schema.DT_RESOURCE)), "resource[]"),
    ],
)
def test_values_as_text(structure, text):
    assert value_text(structure) == text


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            type_spec("RAGGED_TENSOR_SPEC", SHAPE, INT32, value(int64_value=1), INT32),
            "Ragged(int32[3,?])",
        ),
        (type_spec("SPARSE_TENSOR_SPEC", SHAPE, INT32), "Sparse(int32[3,?])"),
        (type_spec("VARIABLE_SPEC", SHAPE, INT32, value(bool_value=True)), "Variable(int32[3,?])"),
        (type_spec("RAGGED_TENSOR_SPEC", INT32), "Ragged(int32)"),
        (type_spec("EXTENSION_TYPE_SPEC", INT32, name="my.module.Masked"), "Masked(int32)"),
        (type_spec("OPTIONAL_SPEC"), "TypeSpec7(())"),
    ],
)
def test_types_as_text(spec, text):
    assert type_spec_text(spec) == text
