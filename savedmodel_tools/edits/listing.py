"""The facts about a model's MetaGraphs in lists of signatures and tags."""

from __future__ import annotations

from typing import Any

from reference_impl.format.container import layout
from reference_impl.format.names import RESERVED_SIGNATURES
from reference_impl.views.signatures import signatures
from reference_impl.views.types import SignatureArgument
from savedmodel_tools.edits.objects import Objects


def signatures_of(model: layout.Layout) -> list[dict[str, Any]]:
    """For each MetaGraph its signatures with arguments; ``loads``: `tf.saved_model.load` offers it,
    too.
    """
    return [
        {"tags": list(layout.tags_of(graph)), "signatures": _signatures(graph)}
        for graph in model.saved_model.meta_graphs
    ]


def _signatures(graph: Any) -> list[dict[str, Any]]:
    offered = None
    if graph.HasField("object_graph_def"):
        objects = Objects(graph.object_graph_def, None)
        holder = objects.signature_map()
        offered = (
            {child.local_name for child in objects.saved.nodes[holder].children}
            if holder is not None
            else set()
        )
    return [
        {
            "key": item.key,
            "method_name": item.method_name,
            "loads": offered is None or item.key in offered,
            "inputs": [_argument(one) for one in item.inputs],
            "outputs": [_argument(one) for one in item.outputs],
        }
        for item in signatures(graph)
    ]


def _argument(one: SignatureArgument) -> dict[str, Any]:
    shape = (
        ""
        if one.shape is None
        else "[" + ",".join("?" if size is None else str(size) for size in one.shape) + "]"
    )
    kind = "" if one.kind == "dense" else f"{one.kind} "
    described = {
        "name": one.name,
        "kind": one.kind,
        "dtype": one.dtype,
        "shape": None if one.shape is None else list(one.shape),
    }
    return {
        **described,
        "type": one.type_spec or f"{kind}{one.dtype}{shape}",
        "tensors": [slot.tensor for slot in one.tensors],
    }


def tags_of(model: layout.Layout) -> list[dict[str, Any]]:
    """For each MetaGraph its tags, whether it has an object graph, and how many signatures."""
    return [
        {
            "tags": list(layout.tags_of(graph)),
            "object_graph": graph.HasField("object_graph_def"),
            "signatures": sum(key not in RESERVED_SIGNATURES for key in graph.signature_def),
        }
        for graph in model.saved_model.meta_graphs
    ]
