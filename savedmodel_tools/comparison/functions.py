"""Compare the functions of two MetaGraphs: pair them up to renaming, and find the differences
inside of changed ones.

A function is what it does (`savedmodel_tools.canonical.functions`): names and copies do not count.
Of two libraries those functions are paired that stand at the same place: traces of one object,
callees of one node, then those of one name.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reference_impl.format import schema
from reference_impl.format.names import plain_name
from reference_impl.graph.object_references import traces
from reference_impl.graph.references import FunctionIndex
from reference_impl.views.text import dtype_name, flat_text
from reference_impl.views.text import value_text as structure_text
from savedmodel_tools.canonical.body import Body
from savedmodel_tools.canonical.functions import Functions, declared
from savedmodel_tools.canonical.meta_graph import CanonicalMetaGraph
from savedmodel_tools.comparison.align import Alignment
from savedmodel_tools.comparison.model import (
    ADDED,
    CHANGED,
    REMOVED,
    RENAMED,
    Change,
)
from savedmodel_tools.comparison.nodes import NodeChange, node_changes, value_text

SECTION = "functions"
_TENSOR = re.compile(r"\b\w+\[[^\]]*\]")
_NUMBER = re.compile(r"_\d+")
_KEPT = (
    1 << 17
    # nodes of functions that are kept, paired, until they are told; of more functions the bodies
    # are made again
)


class Side(NamedTuple):
    """The functions of one MetaGraph that the other does not have.

    Attributes:
      functions: all of them.
      alone: hash -> name of those that only this side has.
      owners: hash -> where the object graph has it.
    """

    functions: Functions
    alone: dict[bytes, str]
    owners: dict[bytes, dict[str, None]]

    def hash(self, name: str) -> bytes:
        return self.functions.hashes.get(name, b"")


class PairedFunctions:
    """The functions of two MetaGraphs compared.

    `pair_graphs` and `finish` come before anything is asked.

    Attributes:
      paired: hash on one side -> hash on the other, of functions that differ and are compared with
        each other.
    """

    def __init__(self, one: CanonicalMetaGraph, other: CanonicalMetaGraph) -> None:
        self.sides = _side(one, other), _side(other, one)
        self.paired: dict[bytes, bytes] = {}
        self._taken: set[bytes] = set()
        self._queue: deque[tuple[bytes, bytes]] = deque()
        self._alignments: dict[bytes, Alignment] = {}
        self._kept = 0
        self._traces(one, other)

    def _traces(self, one: CanonicalMetaGraph, other: CanonicalMetaGraph) -> None:
        """Traces of one object; those of one input signature first, then of one set of literals,
        then in order.
        """
        found = [_traces(graph, side) for graph, side in zip((one, other), self.sides)]
        for label, mine in found[0].items():
            theirs = found[1].get(label, [])
            for key in (str, literals, lambda _: ""):
                by_spec: dict[str, deque[str]] = {}
                for spec, name in theirs:
                    if self.sides[1].hash(name) not in self._taken:
                        by_spec.setdefault(key(spec), deque()).append(name)
                for spec, name in mine:
                    if self.sides[0].hash(name) not in self.paired and by_spec.get(key(spec)):
                        self.pair(name, by_spec[key(spec)].popleft())

    def pair(self, mine: str, yours: str) -> bool:
        """Take two functions, by their names, for one that changed.

        False when one of them is the same on the other side.
        """
        ours, theirs = self.sides[0].hash(mine), self.sides[1].hash(yours)
        if (
            ours not in self.sides[0].alone
            or theirs not in self.sides[1].alone
            or ours in self.paired
            or theirs in self._taken
        ):
            return False
        self.paired[ours] = theirs
        self._taken.add(theirs)
        self._queue.append((ours, theirs))
        return True

    def same(self, mine: str, yours: str) -> bool:
        """Return whether two names stand for the same function, or for two functions that are
        compared with each other.
        """
        ours, theirs = self.sides[0].hash(mine), self.sides[1].hash(yours)
        return bool(ours) and (ours == theirs or self.paired.get(ours) == theirs)

    def pair_callees(self, alignment: Alignment) -> None:
        """Pair what paired nodes call, in attributes or by op type."""
        for vertex, twin in alignment.pairs.items():
            nodes = alignment.one.nodes[vertex], alignment.other.nodes[twin]
            if nodes[0] is None or nodes[1] is None:
                continue
            callees = [
                _callees(side.functions.library, node)
                for side, node in zip(self.sides, nodes)
                if node is not None
            ]
            if len(callees[0]) == len(callees[1]):
                for mine, yours in zip(*callees):
                    self.pair(mine, yours)

    def finish(self) -> None:
        """Pair what is left: what paired functions call, then functions of one name."""
        while True:
            while self._queue:
                ours, theirs = self._queue.popleft()
                alignment = self._aligned(ours, theirs)
                self._kept += len(alignment.one.order) + len(alignment.other.order)
                if self._kept <= _KEPT:
                    self._alignments[ours] = alignment
                self.pair_callees(alignment)
            waiting: dict[str, deque[str]] = {}
            for key, name in self.sides[1].alone.items():
                if key not in self._taken:
                    waiting.setdefault(_numberless(name), deque()).append(name)
            for key, name in self.sides[0].alone.items():
                if key not in self.paired and waiting.get(_numberless(name)):
                    self.pair(name, waiting[_numberless(name)].popleft())
            if not self._queue:
                return

    def _aligned(self, ours: bytes, theirs: bytes) -> Alignment:
        names = self.sides[0].alone[ours], self.sides[1].alone[theirs]
        bodies = [side.functions.body(name) for side, name in zip(self.sides, names)]
        defined = [side.functions.library.functions[name] for side, name in zip(self.sides, names)]
        ends = [_results(body, function) for body, function in zip(bodies, defined)]
        pairs = [
            (mine[0], yours[0])
            for mine, yours in zip(*ends)
            if mine is not None and yours is not None
        ]
        return Alignment(bodies[0], bodies[1], pairs)

    def changes(self, where: tuple[str, ...]) -> Iterator[Change]:
        """Return the differences, in order of names."""
        for key, name in sorted(self.sides[0].alone.items(), key=_by_name):
            place = (*where, self._label(0, key))
            if key in self.paired:
                yield self._changed(place, key)
            else:
                yield Change(SECTION, REMOVED, place, _summary(self.sides[0], name))
        for key, name in sorted(self.sides[1].alone.items(), key=_by_name):
            if key not in self._taken:
                yield Change(
                    SECTION, ADDED, (*where, self._label(1, key)), _summary(self.sides[1], name)
                )

    def _label(self, number: int, key: bytes) -> str:
        side = self.sides[number]
        name = plain_name(side.alone[key])
        owners = list(side.owners.get(key, ()))
        if not owners or owners == [name]:
            return name
        return f"{name} ({owners[0]}{f' and {len(owners) - 1} more' if len(owners) > 1 else ''})"

    def _changed(self, where: tuple[str, ...], key: bytes) -> Change:
        alignment = self._alignments.pop(key, None) or self._aligned(key, self.paired[key])
        names = self.sides[0].alone[key], self.sides[1].alone[self.paired[key]]
        nodes, calls = node_changes(alignment, self.same)
        declared = list(self._declared(names, alignment))
        details = {
            "before": names[0],
            "after": names[1],
            "declared": declared,
            "nodes": [item.to_json() for item in nodes],
        }
        words = [*declared, *counted(nodes)]
        if not words and calls:
            return Change(
                SECTION,
                CHANGED,
                where,
                "calls functions that changed",
                details=details,
                counts=False,
            )
        what = (
            f"{len(alignment.one.order)} nodes:"
            f" {', '.join(words or ['connected or shared differently'])}"
        )
        return Change(SECTION, CHANGED, where, what, details=details)

    def _declared(self, names: tuple[str, str], alignment: Alignment) -> Iterator[str]:
        """Return the differences in the declaration of a function, its results and side effects."""
        mine, yours = [
            side.functions.library.functions[name] for side, name in zip(self.sides, names)
        ]
        values = [side.functions.values for side in self.sides]
        for word, old, new in (
            ("arguments", mine.signature.input_arg, yours.signature.input_arg),
            ("results", mine.signature.output_arg, yours.signature.output_arg),
        ):
            if [declared(item) for item in old] != [declared(item) for item in new]:
                texts = [_dtypes(items) for items in (old, new)]
                yield (
                    f"{word}: {texts[0]} → {texts[1]}"
                    if texts[0] != texts[1]
                    else f"{word} are declared differently"
                )
        attributes = [dict(value.counted(item.attr)) for value, item in zip(values, (mine, yours))]
        for key in sorted(attributes[0].keys() | attributes[1].keys()):
            if attributes[0].get(key) != attributes[1].get(key):
                shown = [
                    plain_name(value_text(item.attr[key])) if key in item.attr else "(none)"
                    for item in (mine, yours)
                ]
                yield (
                    f"attribute {key}: {shown[0]} → {shown[1]}"
                    if shown[0] != shown[1]
                    else f"attribute {key} differs"
                )
        if mine.signature.is_stateful != yours.signature.is_stateful:
            yield "is now stateful" if yours.signature.is_stateful else "is no longer stateful"
        ends = [
            _results(body, item)
            for body, item in zip((alignment.one, alignment.other), (mine, yours))
        ]
        for number, (old, new) in enumerate(zip(*ends)):
            moved = (None if old is None else (alignment.pairs.get(old[0]), old[1])) != new
            if moved:
                shown = [
                    _end(body, end)
                    for body, end in zip((alignment.one, alignment.other), (old, new))
                ]
                yield f"result {number}: {shown[0]} → {shown[1]}"
        before = _awaited(alignment.one, mine)
        if {alignment.pairs.get(vertex) for vertex in before} != _awaited(alignment.other, yours):
            yield "the side effects that a caller waits for are others"
        gradients = [
            side.functions.library.gradient_of.get(name, "")
            for side, name in zip(self.sides, names)
        ]
        if any(gradients) and not self.same(gradients[0], gradients[1]):
            yield f"gradient: {gradients[0] or '(none)'} → {gradients[1] or '(none)'}"


def literals(text: str) -> str:
    """Return a trace's signature without the dtypes and shapes of its arguments."""
    return _TENSOR.sub("tensor", text)


def _numberless(name: str) -> str:
    return _NUMBER.sub("", plain_name(name))


def _dtypes(items: Sequence[schema.OpDef.ArgDef]) -> str:
    """``float32, 3 resource``."""
    names = [
        dtype_name(item.type) if item.type else item.type_attr or item.type_list_attr or "?"
        for item in items
    ]
    runs = [(len(list(group)), name) for name, group in itertools.groupby(names)]
    return ", ".join(f"{count} {name}" if count > 1 else name for count, name in runs) or "none"


def _awaited(body: Body, function: schema.FunctionDef) -> set[int]:
    """Return the nodes whose side effects a caller waits for."""
    return {body.index[node] for node in function.control_ret.values() if node in body.index}


def counted(nodes: list[NodeChange]) -> list[str]:
    """``2 added``, ``1 changed``."""
    numbers = Counter([node.kind for node in nodes])
    kinds = (ADDED, REMOVED, CHANGED, RENAMED)
    return [f"{numbers[kind]} {kind}" for kind in kinds if numbers[kind]]


def _by_name(item: tuple[bytes, str]) -> tuple[bool, str]:
    """Return a sort key: functions of the author before those that TensorFlow adds (gradients,
    saving, restoring).
    """
    name = plain_name(item[1])
    return name.startswith("_"), name


def _side(one: CanonicalMetaGraph, other: CanonicalMetaGraph) -> Side:
    known = set(other.functions.hashes.values())
    alone: dict[bytes, str] = {}
    for name, value in one.functions.hashes.items():
        if value not in known:
            alone.setdefault(value, name)
    side = Side(one.functions, alone, {})
    for label, known_traces in _traces(one, side).items():
        for _, name in known_traces:
            side.owners.setdefault(side.hash(name), {})[label] = None
    return side


def _traces(graph: CanonicalMetaGraph, side: Side) -> dict[str, list[tuple[str, str]]]:
    """Label of an object -> input signature and function name of its traces, of those that only
    this side has.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    objects = graph.objects
    for number in objects.labels.order:
        for name in traces(objects.graph.nodes[number]):
            if side.hash(name) in side.alone:
                trace = objects.graph.concrete_functions.get(name)
                spec = "" if trace is None else structure_text(trace.canonicalized_input_signature)
                found.setdefault(objects.labels[number], []).append((spec, name))
    return found


def _callees(library: FunctionIndex, node: schema.NodeDef) -> list[str]:
    """Return the functions that a node mentions, by their first place: the op, or an attribute and
    the position in it.
    """
    found = set(library.references(node))
    if len(found) < 2:
        return list(found)
    places = {node.op: ("", 0)}
    for key in sorted(node.attr):
        value = node.attr[key]
        items = (
            [value.func]
            if value.HasField("func")
            else value.list.func
            if value.HasField("list")
            else ()
        )
        for position, item in enumerate(items):
            places.setdefault(item.name, (key, position))
    return sorted(found, key=lambda name: (places.get(name, ("~", 0)), name))


def _results(body: Body, function: schema.FunctionDef) -> list[tuple[int, bytes] | None]:
    return [body.resolve(function.ret.get(item.name, "")) for item in function.signature.output_arg]


def _end(body: Body, end: tuple[int, bytes] | None) -> str:
    return "(none)" if end is None else f"{body.names[end[0]]}:{end[1].decode('utf-8', 'replace')}"


def _summary(side: Side, name: str) -> str:
    function = side.functions.library.functions[name]
    return f"{flat_text(plain_name(name), function, 0)}  {len(function.node_def)} nodes"
