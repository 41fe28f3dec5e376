"""Tensors of the harness <-> TensorProto, the form in which gRPC and warm-up records carry them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from reference_impl import errors
from reference_impl.format import limits
from reference_impl.format.schema import TensorProto
from reference_impl.format.values import dtypes, tensor_proto
from savedmodel_common import tensors
from savedmodel_common.tensors import Tensor


def to_proto(tensor: Tensor) -> TensorProto:
    """Return the message of a tensor, with its numbers as bytes.

    Raises DtypeError: no such dtype, or no element of it.
    """
    number = dtypes.by_name(tensor.dtype).number
    proto = tensor_proto.encode(tensor.array)
    proto.dtype = number  # that of the array may be of integers that carry its bits
    return proto


def from_proto(proto: TensorProto) -> Tensor:
    """Return the tensor of a message.

    If there are fewer elements than the shape needs, the last one is repeated.

    Raises SavedModelError: DtypeError, ShapeError, LimitError of
    `reference_impl.format.values.tensor_proto.decode`.
    """
    array = tensor_proto.decode(proto)
    dtype = dtypes.by_number(proto.dtype)
    if dtype.is_ref:
        raise errors.DtypeError(f"a {dtype.name} has no value outside its graph")
    tensor = tensors.from_numpy(array, dtype.name)
    if (
        dtype.bits is not None and dtype.bits < 8
    ):  # what is above the bits of the value differs between writers
        return Tensor(
            dtype.name, np.asarray(tensor.array & tensor.array.dtype.type(2**dtype.bits - 1))
        )
    return tensor


def from_protos(protos: Mapping[str, TensorProto]) -> dict[str, Tensor]:
    """Tensors by name, in the order of the names. All together are at most as large as one may be.

    Raises SavedModelError, as `from_proto`; its `node` is the name.
    """
    left, out = limits.TENSOR_BYTES, {}
    for name in sorted(protos):
        try:
            out[name] = from_proto(protos[name])
        except errors.SavedModelError as error:
            error.node = name
            raise
        left -= out[name].array.size * (
            tensor_proto.STRING_COST if out[name].dtype == "string" else out[name].array.itemsize
        )
        if left < 0:
            raise errors.LimitError("the tensors of one answer", node=name, limit="TENSOR_BYTES")
    return out
