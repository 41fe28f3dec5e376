"""The signatures of a MetaGraph for serving systems, and the plain form with which consumers are
compared.

RFC: SIG-01
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reference_impl.format import schema
from reference_impl.format.names import LEGACY_INIT_OP, MAIN_OP, RESERVED_SIGNATURES, TRAIN_OP
from reference_impl.format.values.shapes import shape_of, shape_proto
from reference_impl.inspection.text import dtype_name, tensor_text, type_spec_text
from reference_impl.inspection.types import InitOp, Signature, SignatureArgument, TensorSlot

# Signatures that are not entry points: they name ops that a loader runs.
_INIT_COLLECTIONS = (MAIN_OP, LEGACY_INIT_OP, TRAIN_OP)


def signatures(meta_graph: schema.MetaGraphDef) -> tuple[Signature, ...]:
    """Return all signatures except reserved ones, sorted by key."""
    return tuple(
        Signature(
            key,
            signature.method_name,
            tuple(_arguments(signature.inputs, signature.defaults)),
            tuple(_arguments(signature.outputs, {})),
        )
        for key, signature in sorted(meta_graph.signature_def.items())
        if key not in RESERVED_SIGNATURES
    )


def _arguments(infos: Any, defaults: Any) -> Iterator[SignatureArgument]:
    for name, info in sorted(infos.items()):
        kind, slots = slots_of(info)
        spec = type_spec_text(info.composite_tensor.type_spec) if kind == "composite" else None
        default = tensor_text(defaults[name]) if name in defaults else None
        # The writer of a composite type leaves dtype and shape to the type and its components.
        described = info.dtype != 0 or kind != "composite"
        dtype, shape = (
            (dtype_name(info.dtype), shape_of(info.tensor_shape)) if described else (None, None)
        )
        yield SignatureArgument(name, kind, dtype, shape, tuple(slots), spec, default)


def slots_of(info: schema.TensorInfo) -> tuple[str, list[TensorSlot]]:
    """Return the kind of a TensorInfo and its tensors, as `parts_of` does."""
    kind, parts = parts_of(info)
    return kind, [
        TensorSlot(part, name, dtype_name(dtype), shape_of(shape))
        for part, name, dtype, shape in parts
    ]


def tensor_names(infos: Mapping[str, schema.TensorInfo]) -> list[str]:
    """Return the names of all tensors of the inputs or outputs of a signature, in the order of
    their keys.
    """
    return [part[1] for _, info in sorted(infos.items()) for part in parts_of(info)[1]]


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
        flat = [
            part
            for component in info.composite_tensor.components
            for part in parts_of(component)[1]
        ]
        return "composite", [(f"component_{number}", *part[1:]) for number, part in enumerate(flat)]
    return "dense", [("", info.name, info.dtype, shape)]


def signature_spec(
    meta_graph: schema.MetaGraphDef,
) -> dict[str, dict[str, dict[str, dict[str, Any]]]]:
    """Return a MetaGraph's signatures as every consumer must see them, as plain data.

    Returns:
      ``{key: {"inputs": {name: {"dtype", "shape"}}, "outputs": {...}}}``. dtype is TensorFlow's
      lower-case name; shape a list with None for an unknown size, or None for unknown rank. A
      sparse argument ``k`` is three entries ``k/values``, ``k/indices``, ``k/dense_shape``; a
      composite one is ``k/component_0``, ….
    """
    return {
        item.key: {"inputs": _spec(item.inputs), "outputs": _spec(item.outputs)}
        for item in signatures(meta_graph)
    }


def _spec(arguments: tuple[SignatureArgument, ...]) -> dict[str, dict[str, Any]]:
    return {
        f"{argument.name}/{slot.part}" if slot.part else argument.name: {
            "dtype": slot.dtype,
            "shape": None if slot.shape is None else list(slot.shape),
        }
        for argument in arguments
        for slot in argument.tensors
    }


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
