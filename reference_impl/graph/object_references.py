"""The nodes and functions that a node of an object graph names, and the roles that it gives them.

RFC: DR-03, RP-04, SIG-02
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Optional

from reference_impl.errors import CycleError, MalformedError
from reference_impl.format import schema
from reference_impl.format.names import CREATE, DESTROY, DICT, INITIALIZE, LIST, SIGNATURES, TUPLE
from reference_impl.graph import order
from reference_impl.graph.object_graph import Paths
from reference_impl.graph.saved_variables import invalid

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


_Reference = tuple[int, str, str, int, tuple[str, ...]]  # a node, then as `typed_references`


def _all_references(graph: schema.SavedObjectGraph) -> Iterator[_Reference]:
    """Yield the number of each node with each of its `typed_references`."""
    for number, node in enumerate(graph.nodes):
        for reference in typed_references(node):
            yield (number, *reference)


def dangling(graph: schema.SavedObjectGraph) -> Iterator[tuple[int, str, int]]:
    """Yield the number of a node, a role, and the number of the node in that role, which does not
    exist.
    """
    count = len(graph.nodes)
    for number, role, name, other, _ in _all_references(graph):
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


class Mistyped(NamedTuple):
    """A reference to a node of a wrong kind.

    Attributes:
      number: the node that refers to it.
      reason: what is wrong.
      rule: id of the constraint that is broken, or None.
    """

    number: int
    reason: str
    rule: Optional[str]


_RULES = {
    "": "SM-KIND-6",  # the functions of a resource
    "the save function of": "SM-KIND-10",
    "the restore function of": "SM-KIND-10",
}


def mistyped_references(graph: schema.SavedObjectGraph) -> Iterator[Mistyped]:
    """Return the references to nodes of a wrong kind.

    For example, a signature must be a function: ``the signature 'f' is object 3, which is not a
    function but a variable``. Skip numbers out of range.
    """
    return _mistyped(graph, _all_references(graph))


def _mistyped(
    graph: schema.SavedObjectGraph, references: Iterable[_Reference]
) -> Iterator[Mistyped]:
    kinds = [node.WhichOneof("kind") for node in graph.nodes]
    for number, role, name, other, wanted in references:
        if wanted and 0 <= other < len(kinds) and kinds[other] not in wanted:
            reason = (
                f"{_text(role, name)} is object {other}, which is not a {wanted[0]} but a"
                f" {kinds[other]}"
            )
            yield Mistyped(number, reason, _RULES.get(role))
    for name, function in graph.concrete_functions.items():
        for other in function.bound_inputs:
            if 0 <= other < len(kinds) and kinds[other] in _FUNCTIONS:
                reason = (
                    f"the function {name!r} captures it in place of a variable, a resource or a"
                    " tensor"
                )
                yield Mistyped(other, reason, "SM-FN-3")


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


def check(graph: schema.SavedObjectGraph, file: str) -> None:
    """Check node numbers, variables and roles, and that no container contains itself.

    Raises MalformedError, CycleError.
    """
    if not graph.nodes:
        reason = "the object graph is empty"
        raise MalformedError(reason, file=file, node="object_graph_def", rule="SM-OBJ-1")
    count = len(graph.nodes)
    typed = []  # the references that only nodes of some kinds can satisfy
    for reference in _all_references(graph):
        number, _, _, other, wanted = reference
        if not 0 <= other < count:
            raise MalformedError(
                f"refers to node {other} of {count}",
                file=file,
                node=f"object_graph_def.nodes[{number}]",
                rule="SM-OBJ-2",
            )
        if wanted:
            typed.append(reference)
    for number, reason, rule in (*_impossible_variables(graph), *_mistyped(graph, typed)):
        raise MalformedError(
            reason, file=file, node=Paths(graph.nodes).from_root(number), rule=rule
        )
    needed_first(containers(graph), file)
    for name, other in dangling_captures(graph):
        raise MalformedError(
            f"a function captures node {other} of {len(graph.nodes)}",
            file=file,
            node=name,
            rule="SM-OBJ-2",
        )


def needed_first(needs: Mapping[int, Iterable[int]], file: str) -> list[int]:
    """Return the nodes, each after the nodes that it is made of.

    Those that are not keys are ignored. Raises CycleError.
    """
    if not needs:
        return []
    found = order.sources_first({number: needs[number] for number in sorted(needs)})
    if found is None:
        first = order.circles(needs)[0][0]
        reason = "a list, dict or tuple contains itself, or objects are made of each other"
        raise CycleError(
            reason, file=file, node=f"object_graph_def.nodes[{first}]", rule="SM-OBJ-6"
        )
    return found


def _impossible_variables(graph: schema.SavedObjectGraph) -> Iterator[tuple[int, str, str]]:
    """Yield the number of a variable that cannot exist, the reason, and the rule."""
    for number, node in enumerate(graph.nodes):
        if node.HasField("variable") and (why := invalid(node.variable)):
            yield number, f"the variable {node.variable.name!r}: {why}", "SM-KIND-3"
