"""Compare two graphs whose nodes are paired: added and removed nodes, ops, attributes, devices,
edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Optional, Union

from reference_impl.errors import SavedModelError, shortened
from reference_impl.format import schema
from reference_impl.format.names import plain_name
from reference_impl.format.values.shapes import shape_of, shape_text
from reference_impl.graph.edges import data_inputs
from reference_impl.views.text import attribute_text, dtype_name
from savedmodel_tools.canonical.body import Body, plain_node_name
from savedmodel_tools.comparison.align import Alignment
from savedmodel_tools.comparison.model import ADDED, CHANGED, REMOVED

_LONG = 100
MAX_ELEMENTS = 1 << 20  # of a constant that is looked into
SameFunction = Callable[[str, str], bool]


class NodeChange(NamedTuple):
    """A node that was added, removed or changed.

    ``what``: a line for each attribute, input and so on that differs.
    """

    kind: str
    name: str
    op: str
    what: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "node": self.name, "op": self.op, "what": list(self.what)}


def node_changes(alignment: Alignment, same: SameFunction) -> tuple[list[NodeChange], bool]:
    """Return the differences, in canonical order, and whether a node calls a function that changed.

    ``same``: whether two function names, of either side, mean functions that are the same or are
    compared elsewhere.
    """
    one, other = alignment.one, alignment.other
    found = [
        NodeChange(REMOVED, one.names[vertex], _op(one, vertex), _inputs(one, vertex))
        for vertex in alignment.gone
    ]
    calls = False
    for vertex in one.order:
        if vertex not in alignment.pairs:
            continue
        pair = _Pair(alignment, vertex, same)
        what = tuple(pair.changes())
        calls = calls or pair.calls
        if what:
            found.append(NodeChange(CHANGED, one.names[vertex], _op(one, vertex), what))
    found += [
        NodeChange(ADDED, other.names[vertex], _op(other, vertex), _inputs(other, vertex))
        for vertex in alignment.come
    ]
    return found, calls


def _op(body: Body, vertex: int) -> str:
    node = body.nodes[vertex]
    return "argument" if node is None else plain_name(node.op)


def _inputs(body: Body, vertex: int) -> tuple[str, ...]:
    node = body.nodes[vertex]
    return (f"inputs {', '.join(node.input)}",) if node is not None and node.input else ()


class _Pair:
    """Two nodes that are taken for one. ``calls``: it calls a function that changed."""

    def __init__(self, alignment: Alignment, vertex: int, same: SameFunction) -> None:
        self.one, self.other, self.pairs = alignment.one, alignment.other, alignment.pairs
        self.vertex, self.twin = vertex, alignment.pairs[vertex]
        self.same = same
        self.calls = False

    def changes(self) -> Iterator[str]:
        mine, yours = self.one.nodes[self.vertex], self.other.nodes[self.twin]
        if mine is None or yours is None:
            if self.one.graph.base[self.vertex] != self.other.graph.base[self.twin]:
                yield "the argument is declared differently"
            return
        if self.one.graph.base[self.vertex] != self.other.graph.base[self.twin]:
            yield from self._own(mine, yours)
        yield from self._edges(mine, yours)
        if "_class" in mine.attr or "_class" in yours.attr:
            yield from self._places(mine, yours)

    def _own(self, mine: schema.NodeDef, yours: schema.NodeDef) -> Iterator[str]:
        said = self.calls
        if mine.op != yours.op and not self._same(mine.op, yours.op):
            said = True
            yield f"op: {plain_name(mine.op)} → {plain_name(yours.op)}"
        if mine.device != yours.device:
            said = True
            yield f"device: {mine.device or '(none)'} → {yours.device or '(none)'}"
        counted = [
            dict(body.values.counted(node.attr, node.op, body.unsaid(node)))
            for body, node in ((self.one, mine), (self.other, yours))
        ]
        for key in sorted(counted[0].keys() | counted[1].keys()):
            if counted[0].get(key) != counted[1].get(key):
                said = True
                text = self._attribute(key, mine, yours, [key in side for side in counted])
                if text:
                    yield text
        if mine.HasField("experimental_type") != yours.HasField("experimental_type") or (
            mine.experimental_type != yours.experimental_type
        ):
            said = True
            yield "its full type differs"
        if self.one.keep_names and plain_node_name(mine.name) != plain_node_name(yours.name):
            said = True
            yield f"name: {mine.name} → {yours.name}"
        if not (said or self.calls):
            yield "declared differently"

    def _same(self, mine: str, yours: str) -> bool:
        """Return whether two functions are paired, and note it: such a node differs only in what it
        calls.
        """
        known = (
            mine in self.one.values.library.functions
            and yours in self.other.values.library.functions
        )
        if known and self.same(mine, yours):
            self.calls = True
            return True
        return False

    def _attribute(
        self, key: str, mine: schema.NodeDef, yours: schema.NodeDef, there: list[bool]
    ) -> Optional[str]:
        if not all(there):
            node = mine if there[0] else yours
            return f"{key}: {'no longer' if there[0] else 'now'} {value_text(node.attr[key])}"
        old, new = mine.attr[key], yours.attr[key]
        called = [one.name for one in _functions(old)]
        calls = [one.name for one in _functions(new)]
        if called and len(called) == len(calls) and all(map(self._same, called, calls)):
            return None
        before, after = [plain_name(value_text(item)) for item in (old, new)]
        return (
            f"{key}: {before} → {after}"
            if before != after
            else f"{key} differs in {_where(old, new)}"
        )

    def _edges(self, mine: schema.NodeDef, yours: schema.NodeDef) -> Iterator[str]:
        ours, theirs = self.one.graph.ordered[self.vertex], self.other.graph.ordered[self.twin]
        texts = [data_inputs(node) for node in (mine, yours)]
        for position in range(max(len(ours), len(theirs))):
            if position >= len(ours) or position >= len(theirs):
                side, word = (theirs, "now") if position >= len(ours) else (ours, "no longer")
                text = texts[0 if side is ours else 1]
                yield f"input {position}: {word} {text[position] if position < len(text) else '?'}"
            elif (
                ours[position][0] != theirs[position][0]
                or self.pairs.get(ours[position][1]) != theirs[position][1]
            ):
                both = [text[position] if position < len(text) else "?" for text in texts]
                yield f"input {position}: {' → '.join(both)}"
        before = {
            self.pairs.get(target, -1 - target) for target in self.one.graph.unordered[self.vertex]
        }
        after = set(self.other.graph.unordered[self.twin])
        if before != after:
            gone = [
                self.one.names[item]
                for item in self.one.graph.unordered[self.vertex]
                if self.pairs.get(item) not in after
            ]
            come = [self.other.names[item] for item in sorted(after - before)]
            yield (
                "control inputs:"
                f" {', '.join([*(f'-^{name}' for name in gone), *(f'+^{name}' for name in come)])}"
            )

    def _places(self, mine: schema.NodeDef, yours: schema.NodeDef) -> Iterator[str]:
        """Yield a line if the nodes with which it must share a device differ, compared by name:
        places shift with every node.
        """
        names = []
        for body, node in ((self.one, mine), (self.other, yours)):
            items = node.attr["_class"].list.s if "_class" in node.attr else ()
            found = {item.decode("utf-8", "replace").partition("@")[2] for item in items} - {
                node.name
            }
            names.append({body.index.get(name, name) for name in found})
        if {
            self.pairs.get(item, item) if isinstance(item, int) else item for item in names[0]
        } != names[1]:
            texts = [_places_text(self.one, names[0]), _places_text(self.other, names[1])]
            yield f"colocated with: {texts[0]} → {texts[1]}"


def value_text(value: schema.AttrValue) -> str:
    """Return an attribute as text, shortened if it is long."""
    items = value.list
    if not value.HasField("list") or items.tensor:
        return attribute_text(value)
    texts = [shape_text(shape_of(item)) for item in items.shape] + [
        dtype_name(item) for item in items.type
    ]
    texts += [item.name for item in items.func] + [
        repr(item) for item in (*items.s, *items.i, *items.f, *items.b)
    ]
    return shortened(f"[{', '.join(texts)}]", _LONG)


def _places_text(body: Body, places: Iterable[Union[int, str]]) -> str:
    names = [body.names[place] if isinstance(place, int) else place for place in places]
    return ", ".join(sorted(names)) or "(none)"


def _functions(value: schema.AttrValue) -> list[schema.NameAttrList]:
    if value.HasField("func"):
        return [value.func]
    return list(value.list.func) if value.HasField("list") else []


def _where(old: schema.AttrValue, new: schema.AttrValue) -> str:
    """Return where two values with the same text differ: the text shows only the beginning of long
    tensors and lists.
    """
    if not (old.HasField("tensor") and new.HasField("tensor")):
        return "a part that is not shown"
    import numpy as np

    from reference_impl.format.values.tensor_proto import decode

    try:
        one, other = (
            decode(old.tensor),
            decode(new.tensor),
        )  # of one repeated value without memory, whatever the shape
    except SavedModelError:
        return "a tensor that cannot be decoded"
    if one.shape != other.shape or one.dtype != other.dtype:
        return "its tensor's type"
    if one.size > MAX_ELEMENTS:
        return f"{one.size} elements"
    different = np.flatnonzero(
        [left != right for left, right in zip(one.ravel().tolist(), other.ravel().tolist())]
    )
    if not len(different):
        return "the bits of NaN or zero"
    at = int(different[0])
    return (
        f"{len(different)} of {one.size} elements, first at {at}: {one.ravel()[at]!r} →"
        f" {other.ravel()[at]!r}"
    )
