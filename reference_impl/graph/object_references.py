"""The nodes and functions that a node of an object graph names.

RFC: DR-03
"""

from __future__ import annotations

from collections.abc import Iterator

from reference_impl.format import schema


def references(node: schema.SavedObject) -> Iterator[int]:
    """The numbers of the nodes that a SavedObject names, captures of its functions aside. They may be out of range."""
    for child in (*node.children, *node.dependencies):
        yield child.node_id
    for slot in node.slot_variables:
        yield slot.original_variable_node_id
        yield slot.slot_variable_node_id
    for pair in node.saveable_objects.values():
        yield pair.save_function
        yield pair.restore_function


def traces(node: schema.SavedObject) -> list[str]:
    """Return the names of the FunctionDefs that a node of a function stands for; none for a node of another kind."""
    kind = node.WhichOneof("kind")
    if kind == "function":
        return list(node.function.concrete_functions)
    return [node.bare_concrete_function.concrete_function_name] if kind == "bare_concrete_function" else []
