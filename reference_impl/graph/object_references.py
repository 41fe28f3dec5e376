"""The nodes and functions that a node of an object graph names, and the roles that it gives them.

RFC: DR-03, RP-04, SIG-02
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from reference_impl.format import schema
from reference_impl.format.names import CREATE, DESTROY, DICT, INITIALIZE, LIST, SIGNATURES, TUPLE

_FUNCTIONS = ("function", "bare_concrete_function")


def typed_references(node: schema.SavedObject) -> Iterator[tuple[str, str, int, tuple[str, ...]]]:
    """Yield role, name, number and possible kinds (empty for all) of each node that a SavedObject
    names, except captures.
    """
    kind = node.WhichOneof("kind")
    is_map = kind == "user_object" and node.user_object.identifier == SIGNATURES
    for child in node.children:
        if kind == "resource" and child.local_name in (CREATE, INITIALIZE, DESTROY):
            yield "", child.local_name, child.node_id, _FUNCTIONS
        elif is_map:
            yield "the signature", child.local_name, child.node_id, _FUNCTIONS
        else:
            yield "child", child.local_name, child.node_id, ()
    for needed in node.dependencies:
        yield "dependency", needed.local_name, needed.node_id, ()
    for slot in node.slot_variables:
        yield "the variable of slot", slot.slot_name, slot.original_variable_node_id, ()
        yield "slot", slot.slot_name, slot.slot_variable_node_id, ("variable",)
    for name in sorted(node.saveable_objects):
        yield "the save function of", name, node.saveable_objects[name].save_function, _FUNCTIONS
        yield (
            "the restore function of",
            name,
            node.saveable_objects[name].restore_function,
            _FUNCTIONS,
        )


def _text(role: str, name: str) -> str:
    return f"{role} {name!r}" if role else name


def references(node: schema.SavedObject) -> Iterator[int]:
    """Yield the numbers of the nodes that a SavedObject names, except captures of functions.

    They may be out of range.
    """
    return (number for _, _, number, _ in typed_references(node))


def dangling(graph: schema.SavedObjectGraph) -> Iterator[tuple[int, str, int]]:
    """Yield the number of a node, a role, and the number of the node in that role, which does not
    exist.
    """
    count = len(graph.nodes)
    for number, node in enumerate(graph.nodes):
        for role, name, other, _ in typed_references(node):
            if not 0 <= other < count:
                yield number, _text(role, name), other


def dangling_captures(graph: schema.SavedObjectGraph) -> Iterator[tuple[str, int]]:
    """Yield the name of a function and the number of a node that it captures, which does not
    exist.
    """
    for name, function in sorted(graph.concrete_functions.items()):
        yield from (
            (name, other) for other in function.bound_inputs if not 0 <= other < len(graph.nodes)
        )


def mistyped_references(graph: schema.SavedObjectGraph) -> Iterator[tuple[int, str]]:
    """Yield the references to nodes of a wrong kind: the number of the node that refers, and the
    reason.

    For example, a signature must be a function: ``the signature 'f' is object 3, which is not a
    function but a variable``. Skip numbers out of range.
    """
    kinds = [node.WhichOneof("kind") for node in graph.nodes]
    for number, node in enumerate(graph.nodes):
        for role, name, other, wanted in typed_references(node):
            if wanted and 0 <= other < len(kinds) and kinds[other] not in wanted:
                yield (
                    number,
                    (
                        f"{_text(role, name)} is object {other}, which is not a {wanted[0]} but a"
                        f" {kinds[other]}"
                    ),
                )
    for name, function in graph.concrete_functions.items():
        for other in function.bound_inputs:
            if 0 <= other < len(kinds) and kinds[other] in _FUNCTIONS:
                yield (
                    other,
                    (
                        f"the function {name!r} captures it in place of a variable, a resource or a"
                        " tensor"
                    ),
                )


def containers(graph: schema.SavedObjectGraph) -> dict[int, list[int]]:
    """Return the numbers of lists, dicts and tuples, each with the numbers of its elements.

    None may contain itself.
    """
    found = {}
    for number, node in enumerate(graph.nodes):
        if node.user_object.identifier in (LIST, DICT, TUPLE):
            found[number] = [child.node_id for child in node.children]
    return found


def traces(node: schema.SavedObject) -> list[str]:
    """Return the names of the FunctionDefs of a function's node; empty for a node of another
    kind.
    """
    kind = node.WhichOneof("kind")
    if kind == "function":
        return list(node.function.concrete_functions)
    return (
        [node.bare_concrete_function.concrete_function_name]
        if kind == "bare_concrete_function"
        else []
    )


def index_of(name: str) -> Optional[int]:
    """Return the name of a child of a list or tuple as an index, or None if the name is not an
    index.
    """
    return int(name[:20]) if name.isdecimal() else None
