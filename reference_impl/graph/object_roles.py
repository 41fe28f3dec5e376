"""Objects in roles that their kinds cannot play: a variable in place of the function that makes a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from reference_impl.format import limits, schema
from reference_impl.format.names import CREATE, DESTROY, INITIALIZE, LIST, SIGNATURES, TUPLE

_FUNCTIONS = ("function", "bare_concrete_function")


def misfits(graph: schema.SavedObjectGraph) -> Iterator[tuple[int, str]]:
    """Yield the number of an object and why it cannot be what another one takes it for. Numbers out of range are passed over.

    Args:
      graph: the object graph.

    RFC: RP-04, SIG-02
    """
    kinds = [node.WhichOneof("kind") for node in graph.nodes]
    for number, node in enumerate(graph.nodes):
        for what, other, wanted in _roles(node):
            if 0 <= other < len(kinds) and kinds[other] not in wanted:
                yield number, f"{what} is object {other}, which is not a {wanted[0]} but a {kinds[other]}"
    for name, function in graph.concrete_functions.items():
        for other in function.bound_inputs:
            if 0 <= other < len(kinds) and kinds[other] in _FUNCTIONS:
                yield other, f"the function {name!r} captures it in place of a variable, a resource or a tensor"


def _roles(node: schema.SavedObject) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Yield the role, the number and the possible kinds of the objects that a node gives a role to."""
    kind = node.WhichOneof("kind")
    for child in node.children:
        if kind == "resource" and child.local_name in (CREATE, INITIALIZE, DESTROY):
            yield child.local_name, child.node_id, _FUNCTIONS
        elif kind == "user_object" and node.user_object.identifier == SIGNATURES:
            yield f"the signature {child.local_name!r}", child.node_id, _FUNCTIONS
    for name in sorted(node.saveable_objects):
        yield f"the save function of {name!r}", node.saveable_objects[name].save_function, _FUNCTIONS
        yield f"the restore function of {name!r}", node.saveable_objects[name].restore_function, _FUNCTIONS
    for slot in node.slot_variables:
        yield f"slot {slot.slot_name!r}", slot.slot_variable_node_id, ("variable",)


def long_lists(graph: schema.SavedObjectGraph) -> Iterator[tuple[int, int]]:
    """Yield the number and the length of lists and tuples that claim more elements than a loader can afford."""
    for number, node in enumerate(graph.nodes):
        if node.user_object.identifier in (LIST, TUPLE):
            last = max((index for child in node.children if (index := index_of(child.local_name)) is not None), default=-1)
            if last >= limits.LIST_ELEMENTS:
                yield number, last + 1


def index_of(name: str) -> Optional[int]:
    """Return the index that the name of a child of a list or tuple is; None for another name."""
    return int(name[:20]) if name.isdecimal() else None
