"""The nodes and functions that a node of an object graph names.

RFC: DR-03
"""

from __future__ import annotations

from collections.abc import Iterator

from reference_impl.format import schema


def roles(node: schema.SavedObject) -> Iterator[tuple[str, int]]:
    """Yield the role and the number of each node that a SavedObject names, in the order of `references`."""
    for child in node.children:
        yield f"child {child.local_name!r}", child.node_id
    for needed in node.dependencies:
        yield f"dependency {needed.local_name!r}", needed.node_id
    for slot in node.slot_variables:
        yield f"the variable of slot {slot.slot_name!r}", slot.original_variable_node_id
        yield f"slot {slot.slot_name!r}", slot.slot_variable_node_id
    for name in sorted(node.saveable_objects):
        yield f"the save function of {name!r}", node.saveable_objects[name].save_function
        yield f"the restore function of {name!r}", node.saveable_objects[name].restore_function


def dangling(graph: schema.SavedObjectGraph) -> Iterator[tuple[int, str, int]]:
    """Yield the number of a node, a role, and the number of the node in that role, which does not exist."""
    count = len(graph.nodes)
    for number, node in enumerate(graph.nodes):
        if not all(0 <= other < count for other in references(node)):  # names only where they are needed
            yield from ((number, role, other) for role, other in roles(node) if not 0 <= other < count)


def dangling_captures(graph: schema.SavedObjectGraph) -> Iterator[tuple[str, int]]:
    """Yield the name of a function and the number of a node that it captures, which does not exist."""
    for name, function in sorted(graph.concrete_functions.items()):
        yield from ((name, other) for other in function.bound_inputs if not 0 <= other < len(graph.nodes))


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
