"""Describe the differences between two canonical forms: the first place where two graphs differ, not everything after it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from compat_matrix.canonical.body import Body
from compat_matrix.canonical.form import MODEL_SECTIONS, Canonical, Difference
from compat_matrix.canonical.meta_graph import GRAPH_SECTIONS, CanonicalMetaGraph
from compat_matrix.canonical.objects import Fields
from reference_impl.format.names import plain_name
from reference_impl.inspection.text import attribute_text

HASH = re.compile(r"\b[0-9a-f]{64}\b")
_LONG = 100


def diff(first: Canonical, second: Canonical, limit: int) -> list[Difference]:
    """Return the first differences, at most ``limit`` per section and MetaGraph; empty exactly when the hashes are equal."""
    found: list[Difference] = []
    for name in MODEL_SECTIONS:
        if first.sections[name] != second.sections[name]:
            found += islice(_entries(name, getattr(first, name), getattr(second, name)), limit)
    ours = by_tags(first.meta_graphs)
    theirs = by_tags(second.meta_graphs)
    for tags in sorted(ours.keys() | theirs.keys()):
        where = f"MetaGraph {', '.join(tags[0]) or '(no tags)'}"
        if tags not in theirs or tags not in ours:
            found.append(Difference("meta", where, f"only in the {'first' if tags in ours else 'second'}"))
            continue
        one, other = ours[tags], theirs[tags]
        for name in GRAPH_SECTIONS:
            if one.sections[name] != other.sections[name]:
                found += islice(_SECTIONS.get(name, _section_entries)(name, one, other), limit)
    return found


def by_tags(graphs: tuple[CanonicalMetaGraph, ...]) -> dict[tuple[tuple[str, ...], int], CanonicalMetaGraph]:
    """Return the MetaGraphs by tags; MetaGraphs with equal tags are told apart by their position."""
    found: dict[tuple[tuple[str, ...], int], CanonicalMetaGraph] = {}
    for graph in graphs:
        number = 0
        while (graph.tags, number) in found:
            number += 1
        found[graph.tags, number] = graph
    return found


def _section_entries(name: str, one: CanonicalMetaGraph, other: CanonicalMetaGraph) -> Iterator[Difference]:
    return _entries(name, one.entries[name], other.entries[name])


def _entries(section: str, one: Mapping[str, Fields], other: Mapping[str, Fields]) -> Iterator[Difference]:
    for label in sorted(one.keys() | other.keys()):
        if label not in one or label not in other:
            yield Difference(section, label, f"only in the {'first' if label in one else 'second'}")
            continue
        mine, theirs = one[label], other[label]
        for field in sorted(mine.keys() | theirs.keys()):
            if mine.get(field) != theirs.get(field):
                yield Difference(section, label, _change(field, mine.get(field), theirs.get(field)))


def _change(field: str, old: str | None, new: str | None) -> str:
    if old is None or new is None:
        return f"{field} only in the {'first' if new is None else 'second'}: {shown(old or new or '')}"
    if HASH.sub("", old) == HASH.sub("", new):
        return f"{field} differs"
    return f"{field} {shown(old)} in the first, {shown(new)} in the second"


def shown(text: str) -> str:
    text = HASH.sub(lambda match: match.group()[:8], text)
    return text if len(text) <= _LONG else text[:_LONG] + "…"


def _graphs(name: str, one: CanonicalMetaGraph, other: CanonicalMetaGraph) -> Iterator[Difference]:
    """Yield the differences of the main graphs: nodes first, then the roots that refer to them."""
    found = False
    for where, what in _bodies(one.body, other.body):
        found = True
        yield Difference(name, where, what)
    ours, theirs = _roots(one), _roots(other)
    for label in sorted(ours.keys() | theirs.keys()):
        if label not in ours or label not in theirs:
            yield Difference(name, label, f"only in the {'first' if label in ours else 'second'}")
        elif not found and ours[label] != theirs[label]:
            yield Difference(name, label, "is another tensor")
            found = True
    if not found:
        yield Difference(name, "graph", "the same nodes are shared differently")


def _roots(graph: CanonicalMetaGraph) -> dict[str, Any]:
    """Map each label to the hash of everything that its target needs."""
    needs = graph.body.graph.needs(graph.body.graph.base)
    found = {}
    for root in graph.roots:
        place = graph.body.resolve(root.text)
        found[root.label] = root.text if place is None else (needs[place[0]], place[1], graph.body.position[place[0]])
    return found


def _functions(name: str, one: CanonicalMetaGraph, other: CanonicalMetaGraph) -> Iterator[Difference]:
    """Yield functions that only one side has. If functions differ only in a callee, the callee is named instead."""
    ours, theirs = _only(one, other), _only(other, one)
    unmatched = set(ours) | set(theirs)
    found = False
    for label in sorted({plain_name(item) for item in unmatched}):
        mine = [item for item in ours if plain_name(item) == label]
        yours = [item for item in theirs if plain_name(item) == label]
        for left, right in zip(mine, yours):
            for where, what in _bodies(one.functions.body(left), other.functions.body(right)):
                found = True
                yield Difference(name, f"{label}: {where}", what)
        for item in mine[len(yours) :]:
            found = True
            yield Difference(name, item, "only in the first")
        for item in yours[len(mine) :]:
            found = True
            yield Difference(name, item, "only in the second")
    if not found:
        names = ", ".join(sorted(unmatched)[:5]) or "aliases or gradients"
        yield Difference(name, names, "declared or connected differently")


def _only(one: CanonicalMetaGraph, other: CanonicalMetaGraph) -> list[str]:
    known = set(other.functions.hashes.values())
    return [name for name, value in one.functions.hashes.items() if value not in known]


def _bodies(one: Body, other: Body) -> Iterator[tuple[str, str]]:
    """Yield nodes that the other side lacks although it has all their inputs: there the two graphs begin to differ."""
    ours, theirs = _frontier(one, other), _frontier(other, one)
    by_name = {other.names[vertex]: vertex for vertex in theirs}
    for vertex in ours:
        twin = by_name.pop(one.names[vertex], None)
        if twin is None:
            yield _describe(one, vertex), "only in the first"
        else:
            theirs.remove(twin)
            yield _describe(one, vertex), "; ".join(_node_changes(one, vertex, other, twin))
    for vertex in theirs:
        yield _describe(other, vertex), "only in the second"


def _frontier(one: Body, other: Body) -> list[int]:
    mine, theirs = one.graph.needs(one.graph.base), other.graph.needs(other.graph.base)
    known = Counter([theirs[vertex] for vertex in other.order])
    missing = []
    for vertex in one.order:
        if known[mine[vertex]]:
            known[mine[vertex]] -= 1
        else:
            missing.append(vertex)
    lacking = {mine[vertex] for vertex in missing}
    parted = [vertex for vertex in missing if not any(mine[target] in lacking for target in one.targets(vertex))]
    return parted or missing[:1]  # in a cycle every node needs every other


def _describe(body: Body, vertex: int) -> str:
    node = body.nodes[vertex]
    return f"argument {body.names[vertex]}" if node is None else f"{node.name} ({plain_name(node.op)})"


def _node_changes(one: Body, vertex: int, other: Body, twin: int) -> Iterator[str]:
    mine, yours = one.nodes[vertex], other.nodes[twin]
    if mine is None or yours is None:
        yield "declared differently"
        return
    said = False
    if plain_name(mine.op) != plain_name(yours.op):
        said = True
        yield _change("op", mine.op, yours.op)
    if mine.device != yours.device:
        said = True
        yield _change("device", mine.device or "(none)", yours.device or "(none)")
    for key in sorted({*mine.attr, *yours.attr}):
        old = one.values.attribute(key, mine.attr[key], mine.op) if key in mine.attr else None
        new = other.values.attribute(key, yours.attr[key], yours.op) if key in yours.attr else None
        if old != new:
            said = True
            texts = [attribute_text(node.attr[key]) if key in node.attr else None for node in (mine, yours)]
            yield _change(f"attribute {key}", *texts) if texts[0] != texts[1] else f"attribute {key} differs"
    for position in range(max(len(mine.input), len(yours.input))):
        pair = [node.input[position] if position < len(node.input) else None for node in (mine, yours)]
        if pair[0] != pair[1]:
            said = True
            yield _change(f"input {position}", *pair)
    if not said:
        yield "its inputs are other nodes" if mine.input else "differs"


_SECTIONS = {"graph": _graphs, "functions": _functions}
