"""Containers: lists, dicts, tuples and namedtuples whose elements are objects.

A container is a user object with an identifier of its own. Its elements are children: those of a
list or tuple are named ``0``, ``1``, ...; a namedtuple has each element under its field as well.

RFC: PRIM-05, PRIM-06
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

from reference_impl import tensorflow_api as api
from reference_impl.errors import LimitError, StructureError
from reference_impl.format import limits, schema
from reference_impl.format.names import DICT, LIST, TUPLE
from reference_impl.functions import specs
from reference_impl.functions.load_context import LoadContext
from reference_impl.graph import node_kinds
from reference_impl.graph.object_references import index_of
from reference_impl.kinds import user_object
from reference_impl.kinds.kind import Export, Kind, SavedNode, write_dependencies


class ContainerKind(Kind):
    """Lists, dicts and tuples. The children are the elements."""

    message = node_kinds.CONTAINER

    def made_of(self, node: schema.SavedObject) -> Iterable[int]:
        """Return the elements of a tuple, which cannot be added later."""
        if node.user_object.identifier == TUPLE:
            return [child.node_id for child in node.children]
        return [needed.node_id for needed in node.dependencies]

    def read(self, load: LoadContext, number: int, node: schema.SavedObject) -> Any:
        """Make the container of a node: empty, except for a tuple."""
        identifier = node.user_object.identifier
        if identifier == LIST:
            return api.wrap([])
        if identifier == DICT:
            return user_object.RootDict({}) if number == 0 else api.wrap({})
        elements = [(child.local_name, child.node_id) for child in _elements(load, node)]
        return _new_tuple(elements, load.objects, root=number == 0)

    def attach(self, load: LoadContext, number: int, node: schema.SavedObject) -> None:
        """Add the elements of a list or dict."""
        parent = load.objects[number]
        elements = {
            child.local_name: load.objects[child.node_id]
            for child in (_elements(load, node) if number == 0 else node.children)
        }
        if node.user_object.identifier == LIST:
            # A gap, left by an element that was not trackable, is None.
            numbered = _numbered(elements.items())
            size = max(numbered, default=-1) + 1
            api.fill(parent, [numbered.get(index) for index in range(size)])
        elif node.user_object.identifier == DICT:
            api.fill(parent, elements)

    def matches(self, obj: object) -> bool:
        # A tuple is only a container in TensorFlow's wrapper.
        return isinstance(obj, (list, dict, api.TrackableTuple))

    def write(self, export: Export, node: SavedNode, out: schema.SavedObject) -> None:
        """Write the identifier of the type."""
        user_object.write_identifier(out, _identifier(node.object))
        write_dependencies(out, node.dependencies)


def _elements(
    load: LoadContext, node: schema.SavedObject
) -> Iterable[schema.TrackableObjectGraph.TrackableObject.ObjectReference]:
    """Yield the children that are elements. The signatures of a root container are not."""
    for child in node.children:
        if load.kinds[child.node_id].message is not node_kinds.SIGNATURE_MAP:
            yield child


def _identifier(obj: object) -> str:
    if isinstance(obj, api.TrackableTuple):
        return TUPLE
    return LIST if isinstance(obj, list) else DICT


def _new_tuple(children: Sequence[tuple[str, int]], objects: Sequence[Any], root: bool) -> Any:
    """Return a tuple of the loaded `objects`, or a namedtuple if its `children` (number by name)
    are also stored under names.

    RFC: PRIM-06
    """
    numbered = _numbered(children)
    size = max(numbered, default=-1) + 1
    items = [objects[numbered[index]] if index in numbered else None for index in range(size)]
    fields = _fields(
        [(name, node) for name, node in children if not name.isdecimal()], numbered, size
    )
    made: Any = tuple(items)
    if fields is not None:
        with contextlib.suppress(
            StructureError
        ):  # names that are invalid in Python, which writers never use
            made = specs.named_tuple("NamedTuple", fields)._make(items)
    return user_object.RootTuple(made) if root else api.wrap(made)


def _numbered(children: Iterable[tuple[str, Any]]) -> dict[int, Any]:
    numbered = {index: child for name, child in children if (index := index_of(name)) is not None}
    if max(numbered, default=0) >= limits.LIST_ELEMENTS:
        reason = f"a list or tuple of {max(numbered) + 1} elements"
        raise LimitError(reason, limit="LIST_ELEMENTS", rule="SM-KIND-7")
    return numbered


def _fields(
    named: Sequence[tuple[str, int]], numbered: Mapping[int, int], size: int
) -> Optional[tuple[str, ...]]:
    """Return the fields in order, found by the nodes they share with the numbered children; None
    for a plain tuple.

    A field whose value is not trackable has no name in the file.
    """
    left = list(named)
    fields = []
    for index in range(size):
        match = next((pair for pair in left if pair[1] == numbered.get(index)), None)
        if match is not None:
            left.remove(match)
        elif index in numbered:
            return None
        fields.append(match[0] if match is not None else f"field_{index}")
    return tuple(fields) if named and not left else None


KIND = ContainerKind()
