"""The tensors that a SignatureDef names, and the ops that a loader runs after the restore."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import NamedTuple

from reference_impl.format import schema
from reference_impl.format.names import LEGACY_INIT_OP, MAIN_OP, RESERVED_SIGNATURES, TRAIN_OP
from reference_impl.format.values.shapes import shape_proto

# Signatures that are not entry points: they name ops that a loader runs.
_INIT_COLLECTIONS = (MAIN_OP, LEGACY_INIT_OP, TRAIN_OP)


class InitOp(NamedTuple):
    """An op that runs after loading.

    ``source`` is the collection or reserved signature that names ``op``.
    """

    source: str
    op: str


def tensor_names(infos: Mapping[str, schema.TensorInfo]) -> list[str]:
    """Return the names of all tensors of the inputs or outputs of a signature, in the order of
    their keys.
    """
    found: list[str] = []
    for _, info in sorted(infos.items()):
        found += [part[1] for part in parts_of(info)[1]]
    return found


def parts_of(
    info: schema.TensorInfo,
) -> tuple[str, list[tuple[str, str, int, schema.TensorShapeProto]]]:
    """Return the kind of a TensorInfo, and (part, tensor name, DataType, shape) of each of its
    tensors.

    ``dense`` has one part named ``""``; ``sparse`` has ``values``, ``indices``, ``dense_shape``;
    ``composite`` has one part for each component. Components of components are flattened in order,
    as the loader does.
    """
    shape = info.tensor_shape
    if info.WhichOneof("encoding") == "coo_sparse":
        rank = None if shape.unknown_rank else len(shape.dim)
        coo = info.coo_sparse
        return "sparse", [
            ("values", coo.values_tensor_name, info.dtype, shape_proto((None,))),
            ("indices", coo.indices_tensor_name, schema.DT_INT64, shape_proto((None, rank))),
            ("dense_shape", coo.dense_shape_tensor_name, schema.DT_INT64, shape_proto((rank,))),
        ]
    if info.WhichOneof("encoding") == "composite_tensor":
        parts = (parts_of(component)[1] for component in info.composite_tensor.components)
        flat = itertools.chain.from_iterable(parts)
        return "composite", [(f"component_{number}", *part[1:]) for number, part in enumerate(flat)]
    return "dense", [("", info.name, info.dtype, shape)]


def init_ops(meta_graph: schema.MetaGraphDef) -> tuple[InitOp, ...]:
    """Return the ops that a loader runs after restoring variables: collections of TF 1.x and
    reserved signatures of TF 2.x.
    """
    found = []
    for key in _INIT_COLLECTIONS:
        if key in meta_graph.collection_def:
            found += [InitOp(key, name) for name in meta_graph.collection_def[key].node_list.value]
    for key in RESERVED_SIGNATURES:
        if key in meta_graph.signature_def:
            outputs = meta_graph.signature_def[key].outputs
            found += [InitOp(key, outputs[name].name) for name in sorted(outputs)]
    return tuple(found)
