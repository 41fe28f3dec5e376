"""The object trees of two MetaGraphs: objects by their paths (RP-01), children, variables, traces
of functions (FN-05).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from reference_impl.format import schema
from reference_impl.format.values.shapes import shape_of, shape_text
from reference_impl.graph.object_references import traces
from reference_impl.views.text import dtype_name, parameter_names, trace_text
from savedmodel_common.printable import counted
from savedmodel_tools.canonical.meta_graph import CanonicalMetaGraph
from savedmodel_tools.comparison.entries import field_change, only_hashes
from savedmodel_tools.comparison.functions import literals
from savedmodel_tools.comparison.model import (
    ADDED,
    CHANGED,
    REMOVED,
    RENAMED,
    Change,
)

SECTION = "objects"
_LINKS = {"children": "children", "dependencies": "dependencies"}
_CODES = {"synchronization": "VariableSynchronization", "aggregation": "VariableAggregation"}


class _Side:
    """The object graph of one MetaGraph: canonical entries, and the nodes they describe, by
    label.
    """

    def __init__(self, graph: CanonicalMetaGraph) -> None:
        self.entries = graph.entries[SECTION]
        self.objects = graph.objects
        self.labels = graph.objects.labels
        self.nodes = {
            self.labels[number]: graph.objects.graph.nodes[number] for number in self.labels.order
        }

    def links(self, label: str, kind: str) -> dict[str, str]:
        """Name -> label of the children, or dependencies, of an object."""
        node = self.nodes.get(label)
        return (
            {}
            if node is None
            else {item.local_name: self.labels[item.node_id] for item in getattr(node, kind)}
        )

    def describe(self, label: str) -> str:
        """Return an object in a few words."""
        node, kind = self.nodes.get(label), self.entries[label].get("kind", "object")
        if node is not None and kind == "variable":
            return (
                "variable"
                f" {dtype_name(node.variable.dtype)}{shape_text(shape_of(node.variable.shape))}"
            )
        if node is not None and kind == "function":
            return f"function of {counted(len(node.function.concrete_functions), 'trace')}"
        if node is not None and kind == "user_object":
            return f"object {node.user_object.identifier}"
        return kind.replace("_", " ")


class Objects:
    """Compares the object trees of two MetaGraphs.

    ``functions_differ``: whether functions of theirs do; what differs in nothing else is then no
    change of an object.
    """

    def __init__(
        self, one: CanonicalMetaGraph, other: CanonicalMetaGraph, functions_differ: bool
    ) -> None:
        self.sides = _Side(one), _Side(other)
        self.functions_differ = functions_differ
        self.moved = self._renamed()

    def _renamed(self) -> dict[str, str]:
        """Label -> new label, of objects whose parent knows them under another name, and of what is
        below them.
        """
        one, other = self.sides
        found: dict[str, str] = {}
        for label in one.nodes:  # parents before children
            here = found.get(label, label)
            if here not in other.nodes:
                continue
            mine, theirs = one.links(label, "children"), other.links(here, "children")
            gone = [
                name
                for name in sorted(mine)
                if name not in theirs and mine[name] not in other.entries
            ]
            come = [
                name
                for name in sorted(theirs)
                if name not in mine and theirs[name] not in one.entries
            ]
            waiting: dict[object, list[str]] = {}
            for name in reversed(come if gone else []):
                waiting.setdefault(self._kind(1, theirs[name]), []).append(name)
            for name in gone if come else []:
                twins = waiting.get(self._kind(0, mine[name]))
                if twins:
                    found.setdefault(mine[name], theirs[twins.pop()])
            for name, target in mine.items():
                if (
                    target not in other.entries
                    and name in theirs
                    and theirs[name] not in one.entries
                ):
                    found.setdefault(target, theirs[name])
        return found

    def _kind(self, number: int, label: str) -> tuple[str, frozenset[str]]:
        """Return the facts about an object that its counterpart must share: its description and its
        children.
        """
        side = self.sides[number]
        return side.describe(label), frozenset(side.links(label, "children"))

    def changes(self, where: tuple[str, ...]) -> Iterator[Change]:
        """Return the differences, in the order of labels.

        A change that only follows from another one does not count.
        """
        one, other = self.sides
        arrived = set(self.moved.values())
        for label in sorted(one.entries.keys() | other.entries.keys()):
            place = (*where, label)
            if label in one.entries and label in self.moved:
                parent = self._follows(label)
                yield Change(
                    SECTION,
                    RENAMED,
                    place,
                    f"is now {self.moved[label]}",
                    label,
                    self.moved[label],
                    counts=parent is None,
                )
                yield from self._fields(place, label, self.moved[label])
            elif label in one.entries and label not in other.entries:
                yield Change.between(SECTION, place, one.describe(label), None)
            elif label in other.entries and label not in one.entries:
                if label not in arrived:
                    yield Change.between(SECTION, place, None, other.describe(label))
            elif label in one.entries:
                yield from self._fields(place, label, label)

    def _follows(self, label: str) -> Optional[str]:
        """Return the parent of an object if it was renamed, and the object has a new label only
        because of that.
        """
        parent, _, name = label.rpartition(".")
        return (
            parent
            if parent in self.moved and self.moved[label] == f"{self.moved[parent]}.{name}"
            else None
        )

    def _fields(self, where: tuple[str, ...], mine: str, yours: str) -> Iterator[Change]:
        one, other = self.sides
        before, after = one.entries[mine], other.entries[yours]
        for name in sorted(before.keys() | after.keys()):
            old, new = before.get(name), after.get(name)
            if old == new:
                continue
            if name in _LINKS and mine in one.nodes and yours in other.nodes:
                yield from self._links(where, name, mine, yours)
            elif (
                name in ("traces", "function", "arguments")
                and mine in one.nodes
                and yours in other.nodes
            ):
                yield from self._callable(where, name, one.nodes[mine], other.nodes[yours])
            elif (
                name in ("dtype", "shape") and before.get("kind") == after.get("kind") == "variable"
            ):
                texts = [
                    _variable(side.nodes[label].variable, name)
                    for side, label in ((one, mine), (other, yours))
                ]
                yield _changed(where, f"{name}:", texts)
            elif name in _CODES and old is not None and new is not None:
                texts = [_code(_CODES[name], text) for text in (old, new)]
                yield _changed(where, f"{name}:", texts)
            else:
                yield from self._other(where, name, old, new)

    def _other(
        self, where: tuple[str, ...], name: str, old: Optional[str], new: Optional[str]
    ) -> Iterator[Change]:
        change = field_change(SECTION, where, name, old, new)
        if change is None:
            return
        renamed = old is not None and new is not None and self._translated(old) == new
        follows = renamed or (self.functions_differ and only_hashes(old or "", new or ""))
        yield change if not follows else Change(SECTION, CHANGED, where, change.what, counts=False)

    def _translated(self, text: str) -> str:
        return ", ".join(sorted(self.moved.get(part, part) for part in text.split(", ")))

    def _links(self, where: tuple[str, ...], kind: str, mine: str, yours: str) -> Iterator[Change]:
        old, new = self.sides[0].links(mine, kind), self.sides[1].links(yours, kind)
        word = "child" if kind == "children" else "dependency"
        come = {
            self.moved[old[name]] for name in old if name not in new and old[name] in self.moved
        }
        for name in sorted(old.keys() | new.keys()):
            if name not in new:
                told = old[name] in self.moved or old[name] not in self.sides[1].entries
                yield Change(SECTION, REMOVED, where, f"{word} {name}", name, counts=not told)
            elif name not in old:
                told = new[name] in come or new[name] not in self.sides[0].entries
                yield Change(SECTION, ADDED, where, f"{word} {name}", None, name, counts=not told)
            elif self.moved.get(old[name], old[name]) != new[name]:
                yield Change(
                    SECTION,
                    CHANGED,
                    where,
                    f"{word} {name}: {old[name]} → {new[name]}",
                    old[name],
                    new[name],
                )

    def _callable(
        self,
        where: tuple[str, ...],
        field: str,
        mine: schema.SavedObject,
        yours: schema.SavedObject,
    ) -> Iterator[Change]:
        if field == "arguments":
            texts = [_keywords(node.bare_concrete_function) for node in (mine, yours)]
            yield _changed(where, "arguments:", texts)
            return
        names = [traces(node) for node in (mine, yours)]
        hashes = [list(map(side.objects.concrete, found)) for side, found in zip(self.sides, names)]
        if Counter(hashes[0]) == Counter(hashes[1]):
            yield Change(
                SECTION,
                CHANGED,
                where,
                "the order of its traces, which decides where two fit a call",
            )
            return
        common = Counter(hashes[0]) & Counter(hashes[1])
        rest = [_without(found, keys, common) for found, keys in zip(names, hashes)]
        display = where[-1].rpartition(".")[2]
        pairs = self._paired(display, mine, yours, rest)
        for old, new in pairs:
            yield from self._trace(where, (display, mine, old), (display, yours, new))
        for kind, side, node, left in (
            (REMOVED, self.sides[0], mine, rest[0]),
            (ADDED, self.sides[1], yours, rest[1]),
        ):
            for name in left:
                text = _trace_text(side, display, node, name)
                pair = (text, None) if kind == REMOVED else (None, text)
                yield Change(SECTION, kind, where, f"trace {text}", pair[0], pair[1])

    def _paired(
        self,
        display: str,
        mine: schema.SavedObject,
        yours: schema.SavedObject,
        rest: list[list[str]],
    ) -> list[tuple[str, str]]:
        """Take traces of ``rest`` for each other: of one signature, then of the same literals, then
        in order.
        """
        pairs: list[tuple[str, str]] = []
        texts = [
            _trace_texts(side, display, node, names)
            for side, node, names in zip(self.sides, (mine, yours), rest)
        ]
        for key in (str, literals, lambda _: ""):
            waiting: dict[str, deque[str]] = {}
            for name in rest[1]:
                waiting.setdefault(key(texts[1][name]), deque()).append(name)
            found = [
                (name, waiting[key(texts[0][name])].popleft())
                for name in rest[0]
                if waiting.get(key(texts[0][name]))
            ]
            for side in (0, 1):
                taken = {pair[side] for pair in found}
                rest[side] = [name for name in rest[side] if name not in taken]
            pairs += found
        return pairs

    def _trace(
        self, where: tuple[str, ...], one: tuple[str, Any, str], other: tuple[str, Any, str]
    ) -> Iterator[Change]:
        """Two traces that are taken for one: how they are called, what they capture, what they
        do.
        """
        texts = [_trace_text(side, *item) for side, item in zip(self.sides, (one, other))]
        bound = [_captures(side, item[2]) for side, item in zip(self.sides, (one, other))]
        if texts[0] != texts[1]:
            yield _changed(where, "trace", texts)
        translated = [self.moved.get(label, label) for label in bound[0]]
        if translated != bound[1]:
            shown = [", ".join(items) or "nothing" for items in bound]
            yield _changed(where, f"trace {texts[0]} captures", shown)
        elif texts[0] == texts[1]:
            hashes = [
                side.objects.functions.hashes.get(item[2])
                for side, item in zip(self.sides, (one, other))
            ]
            moved = bound[0] != bound[1]
            if hashes[0] != hashes[1]:
                # The reference differs: the functions themselves are compared in their own section.
                yield Change(
                    SECTION,
                    CHANGED,
                    where,
                    f"trace {texts[0]} does something else",
                    counts=not self.functions_differ,
                )
            elif moved:
                yield Change(
                    SECTION,
                    CHANGED,
                    where,
                    f"trace {texts[0]} captures an object of a new name",
                    counts=False,
                )
            else:
                yield Change(SECTION, CHANGED, where, f"trace {texts[0]} is declared differently")


def _changed(where: tuple[str, ...], what: str, pair: Sequence[str]) -> Change:
    return Change(SECTION, CHANGED, where, f"{what} {pair[0]} → {pair[1]}", pair[0], pair[1])


def _without(names: Sequence[str], hashes: Sequence[str], common: Counter[str]) -> list[str]:
    left, found = Counter(common), []
    for name, value in zip(names, hashes):
        if left[value]:
            left[value] -= 1
        else:
            found.append(name)
    return found


def _trace_texts(
    side: _Side, display: str, node: schema.SavedObject, names: Sequence[str]
) -> dict[str, str]:
    return {name: _trace_text(side, display, node, name) for name in names}


def _trace_text(side: _Side, display: str, node: schema.SavedObject, name: str) -> str:
    if name not in side.objects.graph.concrete_functions:
        return f"{display}(?)"
    spec = node.function.function_spec if node.HasField("function") else None
    if node.HasField("bare_concrete_function") and node.bare_concrete_function.HasField(
        "function_spec"
    ):
        spec = node.bare_concrete_function.function_spec
    return trace_text(display, parameter_names(spec), side.objects.graph.concrete_functions[name])


def _captures(side: _Side, name: str) -> list[str]:
    traces = side.objects.graph.concrete_functions
    return [side.labels[number] for number in traces[name].bound_inputs] if name in traces else []


def _keywords(item: schema.SavedBareConcreteFunction) -> str:
    return f"({', '.join(item.argument_keywords)}), {item.allowed_positional_arguments} positional"


def _variable(item: schema.SavedVariable, name: str) -> str:
    return dtype_name(item.dtype) if name == "dtype" else shape_text(shape_of(item.shape))


def _code(enum: str, text: str) -> str:
    kind = getattr(schema, enum)
    number = int(text)
    return str(kind.Name(number)) if number in kind.values() else text
