"""Convert nested structures of TypeSpecs and literals between messages and TensorFlow's objects.

`reference_impl.format.values.structure` keeps everything as data. This module converts its
TensorSpecs, TypeSpecs, dtypes, shapes and tensors to TensorFlow's, and back.

RFC: FMT-04, FMT-05, PY-04, PY-05, PY-06, PY-07, PY-08
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import keyword
from collections.abc import Iterable, Mapping
from typing import Any, Optional

import numpy as np
import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import (
    DtypeError,
    LimitError,
    MalformedError,
    SavedModelError,
    SaveError,
    StructureError,
)
from reference_impl.format import limits, schema
from reference_impl.format.values import dtypes, shapes, structure, tensor_proto
from reference_impl.graph import node_attributes

_Kind = schema.TypeSpecProto.TypeSpecClass


# TypeSpecs with a number of their own, and the class that takes the state.
_CLASSES = {
    "VARIABLE_SPEC": api.VariableSpec,
    "SPARSE_TENSOR_SPEC": tf.SparseTensorSpec,
    "INDEXED_SLICES_SPEC": tf.IndexedSlicesSpec,
    "RAGGED_TENSOR_SPEC": tf.RaggedTensorSpec,
    "TENSOR_ARRAY_SPEC": tf.TensorArraySpec,
    "DATA_DATASET_SPEC": tf.data.DatasetSpec,
    "DATA_ITERATOR_SPEC": tf.data.IteratorSpec,
    "OPTIONAL_SPEC": tf.OptionalSpec,
    "ROW_PARTITION_SPEC": api.RowPartitionSpec,
    "PER_REPLICA_SPEC": api.PerReplicaSpec,
}
_KINDS = {cls: kind for kind, cls in _CLASSES.items()}


def decode(message: schema.StructuredValue, file: str = "", node: str = "") -> Any:
    """Decode a StructuredValue; errors name `file` and `node`.

    Raises the errors of `structure.decode` and `to_tf`.
    """
    value = structure.decode(message, file, node)
    try:
        return to_tf(value)
    except SavedModelError as error:
        error.file, error.node = error.file or file, error.node or node
        raise


def encode(value: object, path: str, what: str) -> schema.StructuredValue:
    """Return a nested structure as a StructuredValue.

    Raises SaveError if it holds a value that cannot be stored.

    The error names the path of the function that the value belongs to, and `what` it is.

    RFC: FN-09
    """
    try:
        return to_message(value)
    except SavedModelError as error:
        raise SaveError(
            f"{what} of the function cannot be stored: {error.reason}", node=path, clause="FN-09"
        ) from error


def to_tf(value: object) -> Any:
    """Return a decoded structure with TensorFlow's own leaves.

    Raises StructureError: the class of a TypeSpec is not available; DtypeError: this TensorFlow
    does not know a dtype.
    """
    if isinstance(value, structure.TensorSpec):
        return tf.TensorSpec(value.shape.dims, tf_dtype(value.dtype.number), value.name)
    if isinstance(value, structure.BoundedTensorSpec):
        return _bounded_spec(value)
    if isinstance(value, dtypes.DType):
        return tf_dtype(value.number)
    if isinstance(value, structure.TensorShape):
        return tf.TensorShape(value.dims)
    if isinstance(value, structure.NamedTuple):
        fields = [field for field, _ in value.fields]
        return named_tuple(value.name, tuple(fields))._make(
            [to_tf(item) for _, item in value.fields]
        )
    if isinstance(value, structure.TypeSpec):
        return _type_spec(value)
    if isinstance(value, structure.Tensor):
        return value.array() if value.is_numpy else tensor_to_tf(value.proto)
    if isinstance(value, (list, tuple)):
        return type(value)([to_tf(item) for item in value])
    if isinstance(value, dict):
        return {key: to_tf(item) for key, item in value.items()}
    return value


def to_message(value: object, node: Optional[str] = None) -> schema.StructuredValue:
    """Return a structure of TensorFlow's objects as a message.

    Raises the errors of `structure.encode`.
    """
    try:
        data = _from_tf(value, 0)
    except SavedModelError as error:
        error.node = node
        raise
    return structure.encode(data, node)


def _from_tf(value: object, depth: int) -> Any:
    """Return a nested structure as data, the inverse of `to_tf`.

    What is nested deeper than a file allows is left as it is; encoding refuses it.

    Raises StructureError if an object of TensorFlow cannot be stored.
    """
    if depth > limits.STRUCTURE_DEPTH:
        return value
    if isinstance(value, (list, tuple, Mapping)):
        return _container_from_tf(value, depth)
    if isinstance(value, structure.NamedTuple):
        fields = [(name, _from_tf(item, depth + 1)) for name, item in value.fields]
        return structure.NamedTuple(value.name, tuple(fields))
    leaf = _leaf_from_tf(value)
    if isinstance(leaf, structure.TypeSpec):
        return dataclasses.replace(leaf, state=_from_tf(leaf.state, depth + 1))
    return leaf


def _container_from_tf(value: Any, depth: int) -> Any:
    """Return a list, tuple, namedtuple or mapping with its items as data."""
    items = value.values() if isinstance(value, Mapping) else value
    converted = [_from_tf(item, depth + 1) for item in items]
    if isinstance(value, Mapping):
        return dict(zip(value, converted))
    if isinstance(value, list):
        return converted
    fields = getattr(value, "_fields", None)
    if isinstance(fields, tuple):
        return structure.NamedTuple(type(value).__name__, tuple(zip(fields, converted)))
    return tuple(converted)


def _leaf_from_tf(value: object) -> Any:
    """Return one of TensorFlow's objects as data; the state of a TypeSpec stays as it is."""
    if isinstance(value, tf.TensorSpec):
        return _spec_from_tf(value)
    if isinstance(value, tf.TypeSpec):
        return _type_spec_from_tf(value)
    if isinstance(value, tf.DType):
        return dtype_from_tf(value)
    if isinstance(value, tf.TensorShape):
        return shape_from_tf(value)
    if isinstance(value, tf.Tensor):
        return structure.Tensor(tensor_bytes(value))
    if isinstance(value, (np.ndarray, np.generic)):
        return structure.Tensor(tensor_bytes(tf.convert_to_tensor(value)), is_numpy=True)
    return value


def _spec_from_tf(value: tf.TensorSpec) -> Any:
    spec = structure.tensor_spec(dims_of(value.shape), value.dtype.as_datatype_enum, value.name)
    if not isinstance(value, api.BoundedTensorSpec):
        return spec
    lowest, highest = (
        structure.Tensor(tensor_bytes(tf.constant(bound)))
        for bound in (value.minimum, value.maximum)
    )
    return structure.BoundedTensorSpec(spec.shape, spec.dtype, lowest, highest, value.name)


def tf_dtype(number: int, file: str = "", node: str = "") -> tf.DType:
    """Return the dtype with a number of the DataType enumeration.

    Raises DtypeError, which names `file` and `node`.
    """
    try:
        name = dtypes.by_number(number).name
        return tf.dtypes.as_dtype(number)
    except DtypeError as error:
        reason = error.reason
    except TypeError:
        reason = f"TensorFlow {tf.__version__} has no dtype {name}"
    raise DtypeError(reason, file=file, node=node)


def dtype_from_tf(dtype: tf.DType) -> dtypes.DType:
    return dtypes.by_number(dtype.as_datatype_enum)


def shape_of(proto: schema.TensorShapeProto) -> tf.TensorShape:
    """Return the shape in a TensorShapeProto. Raises ShapeError."""
    return tf.TensorShape(structure.decode_shape(proto).dims)


def dims_of(shape: tf.TensorShape) -> Optional[tuple[Optional[int], ...]]:
    """Return the sizes of a shape, None for an unknown size; None for an unknown rank."""
    return None if shape.rank is None else tuple(shape.as_list())


def shape_from_tf(shape: tf.TensorShape) -> structure.TensorShape:
    return structure.TensorShape(dims_of(shape))


def shape_proto(shape: tf.TensorShape) -> schema.TensorShapeProto:
    """Return the TensorShapeProto of a shape."""
    return shapes.shape_proto(dims_of(shape))


def shape_protos(given: Iterable[tf.TensorShape]) -> list[schema.TensorShapeProto]:
    """Return the TensorShapeProtos of several shapes."""
    return shapes.shape_protos([dims_of(shape) for shape in given])


def check_extra_bytes(extra: int) -> None:
    """Raise LimitError if constants are so much larger than in the file that they may be meant to
    exhaust memory.
    """
    if extra > limits.FILLED_BYTES:
        raise LimitError(
            f"constants take {limits.FILLED_BYTES} bytes more than are stored", limit="FILLED_BYTES"
        )


def tensor_to_tf(proto: schema.TensorProto) -> tf.Tensor:
    """Return a tensor with the value of a TensorProto, which the runtime parses; in a graph, return
    a constant.

    Raises MalformedError: the value is damaged; DtypeError: there is no such dtype; LimitError: a
    few bytes claim an enormous tensor.
    """
    check_extra_bytes(tensor_proto.extra_bytes(proto))
    if proto.variant_val:  # parsing trusts them
        node_attributes.check_tensor(proto)
    with contextlib.nullcontext() if tf.executing_eagerly() else api.eager_mode():
        try:
            value = tf.io.parse_tensor(proto.SerializeToString(), tf_dtype(proto.dtype))
        except tf.errors.InvalidArgumentError as error:
            raise MalformedError(f"the value of a constant is damaged: {error.message}") from None
    return value if tf.executing_eagerly() else tf.constant(value.numpy(), value.dtype)


def tensor_bytes(tensor: tf.Tensor) -> bytes:
    """Return a serialised TensorProto with the value of an eager tensor or of a constant of a
    graph.

    Raises StructureError: the value of the tensor is known only when its graph runs.
    """
    with api.eager_mode():
        if not hasattr(tensor, "numpy"):
            value = tf.get_static_value(tensor)
            if value is None:
                raise StructureError(
                    f"the value of {tensor.name} is not known before its graph runs"
                )
            tensor = tf.constant(value, tensor.dtype)
        dtype = dtype_from_tf(tensor.dtype)
        if dtype.carrier is None:
            return bytes(tf.io.serialize_tensor(tensor).numpy())
        # TensorFlow cannot serialise tensors of 8-bit floating point, narrow and quantized types.
        proto = tensor_proto.encode(np.asarray(tensor.numpy()).view(dtype.carrier))
        proto.dtype = dtype.number
        return schema.serialize(proto)


@functools.cache
def named_tuple(name: str, fields: tuple[str, ...]) -> Any:
    """Return the namedtuple class with this name and these fields, always the same one.

    RFC: PY-04
    """
    usable = all(
        field.isidentifier() and not keyword.iskeyword(field) and not field.startswith("_")
        for field in fields
    )
    if (
        not usable
        or len(set(fields)) < len(fields)
        or not name.isidentifier()
        or keyword.iskeyword(name)
    ):
        raise StructureError(
            f"namedtuple {name!r} with the fields {fields} cannot be made in Python"
        )
    return collections.namedtuple(name, fields)


def _bounded_spec(value: structure.BoundedTensorSpec) -> tf.TensorSpec:
    dtype, bounds = tf_dtype(value.dtype.number), (value.minimum.array(), value.maximum.array())
    try:
        return api.BoundedTensorSpec(value.shape.dims, dtype, *bounds, value.name)
    except (TypeError, ValueError) as error:
        raise StructureError(
            f"the bounds of a tensor {value.name!r} do not fit it: {error}"
        ) from error


def _type_spec(value: structure.TypeSpec) -> tf.TypeSpec:
    cls = _CLASSES.get(value.kind_name) or api.registered_type_spec(value.class_name)
    if cls is None and value.kind_name == "EXTENSION_TYPE_SPEC":
        cls = api.AnonymousExtensionTypeSpec  # its fields, under their names
    if cls is None:
        raise StructureError(
            f"The type '{value.class_name}' is not supported: no TypeSpec is registered under that"
            " name",
            rule="SM-FN-9",
        )
    state = to_tf(value.state)
    try:
        return api.deserialize_type_spec(cls, state)
    except (TypeError, ValueError) as error:
        raise StructureError(
            f"a {value.class_name or value.kind_name} cannot be made: {error}"
        ) from error


def _type_spec_from_tf(spec: tf.TypeSpec) -> structure.TypeSpec:
    cls, extension = type(spec), isinstance(spec, api.ExtensionTypeSpec)
    kind = _KINDS.get(cls, "EXTENSION_TYPE_SPEC" if extension else "REGISTERED_TYPE_SPEC")
    name = cls.__name__ if cls in _KINDS else api.type_spec_name(cls)
    if name is None:
        raise StructureError(
            f"a {cls.__qualname__} cannot be stored: it is not registered under a name"
        )
    components = len(tf.nest.flatten(spec, expand_composites=True))
    return structure.TypeSpec(_Kind.Value(kind), name, api.serialize_type_spec(spec), components)
