"""Signatures and tags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from property_tests.faults.losses.registry import each, loss, set_field
from reference_impl.format import schema


def signatures(graph: Any) -> list[tuple[str, Any]]:
    return [
        (key, graph.signature_def[key])
        for key in sorted(graph.signature_def)
        if not key.startswith("__")
    ]


def _renamed(fields: Any) -> bool:
    for key in list(fields):
        fields[f"lost_{key}"].CopyFrom(fields[key])
        del fields[key]
    return bool(fields)


@loss
def signature_keys(graph: Any, model: Path) -> bool:
    """Signatures are found under other keys."""
    found = signatures(graph)
    for key, _ in found:
        graph.signature_def[f"lost_{key}"].CopyFrom(graph.signature_def[key])
        del graph.signature_def[key]
    root = graph.object_graph_def.nodes[0] if graph.object_graph_def.nodes else None
    for child in root.children if root else ():
        if child.local_name == "signatures":
            for name in graph.object_graph_def.nodes[child.node_id].children:
                name.local_name = f"lost_{name.local_name}"
    return bool(found)


@loss
def input_order(graph: Any, model: Path) -> bool:
    """The first two inputs of a signature are bound to each other's arguments."""

    def change(node: Any) -> bool:
        names = list(node.bare_concrete_function.argument_keywords)
        if len(names) < 2 or not node.bare_concrete_function.concrete_function_name.startswith(
            "__inference_signature_wrapper"
        ):
            return False
        node.bare_concrete_function.argument_keywords[:2] = [names[1], names[0]]
        return True

    def swap(item: tuple[str, Any]) -> bool:
        inputs = item[1].inputs
        names = sorted(inputs)[:2]
        if len(names) == 2:
            inputs[names[0]].name, inputs[names[1]].name = (
                inputs[names[1]].name,
                inputs[names[0]].name,
            )
        return len(names) == 2

    return each(graph.object_graph_def.nodes, change) | each(signatures(graph), swap)


@loss
def signature_made_up(graph: Any, model: Path) -> bool:
    """There is a signature more."""
    graph.signature_def["made_up"].method_name = "tensorflow/serving/predict"
    return True


@loss
def method_names(graph: Any, model: Path) -> bool:
    """The method of every signature is Predict."""
    found = [item for _, item in signatures(graph)]
    return each(found, lambda item: set_field(item, "method_name", "tensorflow/serving/predict"))


@loss
def signature_defaults(graph: Any, model: Path) -> bool:
    """The defaults of inputs are missing."""

    def change(item: tuple[str, Any]) -> bool:
        found = len(item[1].defaults)
        item[1].ClearField("defaults")
        return bool(found)

    return each(signatures(graph), change)


@loss
def tags(graph: Any, model: Path) -> bool:
    """All tags but the first."""
    found = sorted(graph.meta_info_def.tags)
    graph.meta_info_def.tags[:] = found[:1]
    return len(found) > 1


@loss
def signature_lost(graph: Any, model: Path) -> bool:
    """The first signature."""
    found = signatures(graph)[:1]
    for key, _ in found:
        del graph.signature_def[key]
    return bool(found)


@loss
def input_renamed(graph: Any, model: Path) -> bool:
    """Inputs of signatures have other names."""
    return each(signatures(graph), lambda item: _renamed(item[1].inputs))


@loss
def output_order(graph: Any, model: Path) -> bool:
    """The first two outputs of a signature have each other's tensor."""

    def swap(item: tuple[str, Any]) -> bool:
        outputs = item[1].outputs
        names = sorted(outputs)[:2]
        if len(names) == 2:
            outputs[names[0]].name, outputs[names[1]].name = (
                outputs[names[1]].name,
                outputs[names[0]].name,
            )
        return len(names) == 2

    return each(signatures(graph), swap)


@loss
def signature_dtypes(graph: Any, model: Path) -> bool:
    """A signature says that its outputs are of dtype double."""

    def change(item: tuple[str, Any]) -> bool:
        return each(
            item[1].outputs.values(), lambda info: set_field(info, "dtype", schema.DT_DOUBLE)
        )

    return each(signatures(graph), change)


@loss
def tag_renamed(graph: Any, model: Path) -> bool:
    """The tags are others."""
    graph.meta_info_def.tags[:] = ["lost"]
    return True
