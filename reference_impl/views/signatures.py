"""The signatures of a MetaGraph for serving systems, and the plain form with which consumers are
compared.

RFC: SIG-01
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Optional

from reference_impl.format import schema
from reference_impl.format.names import RESERVED_SIGNATURES, SIGNATURES, SIGNATURES_CHILD
from reference_impl.format.values.shapes import shape_of
from reference_impl.graph.signature_tensors import parts_of
from reference_impl.views.text import dtype_name, tensor_text, type_spec_text
from reference_impl.views.types import Signature, SignatureArgument, TensorSlot


def signatures(meta_graph: schema.MetaGraphDef) -> tuple[Signature, ...]:
    """Return all signatures except reserved ones, sorted by key."""
    offered = _offered(meta_graph)
    return tuple(
        Signature(
            key,
            signature.method_name,
            tuple(_arguments(signature.inputs, signature.defaults)),
            tuple(_arguments(signature.outputs, {})),
            offered is None or key in offered,
        )
        for key, signature in sorted(meta_graph.signature_def.items())
        if key not in RESERVED_SIGNATURES
    )


def _offered(meta_graph: schema.MetaGraphDef) -> Optional[set[str]]:
    """Return the keys in the signature map of the object graph, which `tf.saved_model.load` offers.

    Return None for a MetaGraph without an object graph: it offers all.
    """
    if not meta_graph.HasField("object_graph_def"):
        return None
    nodes = meta_graph.object_graph_def.nodes
    for child in nodes[0].children if nodes else ():
        if child.local_name == SIGNATURES_CHILD and 0 <= child.node_id < len(nodes):
            found = nodes[child.node_id]
            if found.user_object.identifier == SIGNATURES:
                return {one.local_name for one in found.children}
    return set()


def _arguments(
    infos: Mapping[str, schema.TensorInfo], defaults: Mapping[str, schema.TensorProto]
) -> Iterator[SignatureArgument]:
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
    found: dict[str, dict[str, Any]] = {}
    for argument in arguments:
        for slot in argument.tensors:
            name = f"{argument.name}/{slot.part}" if slot.part else argument.name
            shape = None if slot.shape is None else list(slot.shape)
            found[name] = {"dtype": slot.dtype, "shape": shape}
    return found
