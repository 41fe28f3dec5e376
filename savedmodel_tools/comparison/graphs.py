"""Two MetaGraphs, section by section: a section is looked into when its canonical hash says that it
differs.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Optional

from reference_impl.format.names import plain_name
from savedmodel_tools.canonical.body import Body
from savedmodel_tools.canonical.meta_graph import CanonicalMetaGraph, Root
from savedmodel_tools.comparison import signatures
from savedmodel_tools.comparison.align import Alignment
from savedmodel_tools.comparison.by_name import decide, same_collections
from savedmodel_tools.comparison.entries import field_changes
from savedmodel_tools.comparison.functions import PairedFunctions, counted
from savedmodel_tools.comparison.model import (
    ADDED,
    CHANGED,
    REMOVED,
    Change,
)
from savedmodel_tools.comparison.nodes import node_changes
from savedmodel_tools.comparison.objects import Objects

# References to other sections: objects, nodes and collections name functions by the hash of their
# body.
_FUNCTIONS = "functions"

Roots = Sequence[Sequence[Root]]  # for each graph, the references to its nodes from outside


def compare(
    where: tuple[str, ...], one: CanonicalMetaGraph, other: CanonicalMetaGraph
) -> Iterator[Change]:
    """Yield the changes between two MetaGraphs: none if their hashes are equal, else at least one
    that counts.
    """
    differing = {
        name for name in one.own_entries if one.own_entries[name] != other.own_entries[name]
    }
    same = same_collections(one, other)
    if not same and one.entries["collections"] != other.entries["collections"]:
        differing.add("collections")
    roots = [graph.own_roots if same else graph.roots for graph in (one, other)]
    if one.functions_hash != other.functions_hash:
        differing.add(_FUNCTIONS)
    alignment = _main_graphs(one, other, roots)
    if alignment is not None:
        differing.add("graph")
    if not differing:
        return
    found: list[Change] = []
    library = PairedFunctions(one, other)
    if alignment is not None:
        library.pair_callees(alignment)
    library.finish()
    if "meta" in differing:
        found += field_changes("meta", where, one.entries["meta"], other.entries["meta"])
    if "signatures" in differing:
        pairs = [(graph.definition, graph.entries["signatures"]) for graph in (one, other)]
        found += signatures.compare(where, pairs[0], pairs[1])
    if _FUNCTIONS in differing:
        found += library.changes(where)
        found += _aliases(where, one, other)
    if alignment is not None:
        found += _graph(where, alignment, len(one.nodes), roots, library)
    if differing & {_FUNCTIONS, "graph"}:
        found += _ops(where, one, other)
    if "objects" in differing:
        found += Objects(one, other, _FUNCTIONS in differing).changes(where)
    if "collections" in differing:
        found += field_changes(
            "collections", where, one.entries["collections"], other.entries["collections"]
        )
    yield from found
    yield from _unexplained(where, differing, found)


def _unexplained(
    where: tuple[str, ...], differing: set[str], found: list[Change]
) -> Iterator[Change]:
    """Yield a change for every section that differs without an explanation: else different models
    would be called equal.
    """
    counting = {change.section for change in found if change.counts}
    for name in sorted(differing - counting):
        follows = any(change.section == name for change in found) and bool(counting)
        if not follows:
            what = "connected, declared or shared differently"
            yield Change(
                name, CHANGED, where, what, counts=not (name == "graph" and _FUNCTIONS in counting)
            )


def _aliases(
    where: tuple[str, ...], one: CanonicalMetaGraph, other: CanonicalMetaGraph
) -> Iterator[Change]:
    """Aliases of functions that one side lacks, and those of other functions: not of functions that
    changed themselves.
    """
    known = [set(graph.functions.hashes.values()) for graph in (one, other)]
    aliases = [_by_alias(graph) for graph in (one, other)]
    for alias in sorted(aliases[0].keys() | aliases[1].keys()):
        mine, yours = (found.get(alias) for found in aliases)
        place = (*where, f"alias {alias}")
        if mine is None or yours is None:
            yield Change(
                _FUNCTIONS,
                ADDED if mine is None else REMOVED,
                place,
                "is new" if mine is None else "is gone",
            )
        elif mine != yours and known[1].issuperset(mine) and known[0].issuperset(yours):
            yield Change(_FUNCTIONS, CHANGED, place, "stands for other functions")


def _by_alias(graph: CanonicalMetaGraph) -> dict[str, set[bytes]]:
    """Alias -> hashes of the functions it stands for."""
    found: dict[str, set[bytes]] = {}
    for name, alias in graph.definition.meta_info_def.function_aliases.items():
        found.setdefault(alias, set()).add(graph.functions.hashes.get(name, b""))
    return found


def _main_graphs(
    one: CanonicalMetaGraph, other: CanonicalMetaGraph, roots: Roots
) -> Optional[Alignment]:
    """Return the alignment of the main graphs, or of parts that contain all differences; None if
    there are no differences.
    """
    decided = decide(one, other, roots)
    if decided is not None:
        return decided.alignment
    # The nodes without their edges are part of the hash, and mostly suffice.
    same_nodes = _counted_nodes(one.body) == _counted_nodes(other.body)
    if same_nodes and one.sections["graph"] == other.sections["graph"]:
        return None
    return Alignment(one.body, other.body, _results(one.body, other.body, (one.roots, other.roots)))


def _counted_nodes(body: Body) -> Counter[bytes]:
    return Counter([body.graph.base[vertex] for vertex in body.order])


def _results(one: Body, other: Body, roots: Roots) -> Iterator[tuple[int, int]]:
    places = {root.label: other.resolve(root.text) for root in roots[1]}
    for label, text in _texts(roots[0]).items():
        mine, yours = one.resolve(text), places.get(label)
        if mine is not None and yours is not None:
            yield mine[0], yours[0]


def _graph(
    where: tuple[str, ...], alignment: Alignment, size: int, found: Roots, library: PairedFunctions
) -> Iterator[Change]:
    """Yield the changes of the main graph: its nodes, and the references to them from signatures,
    assets and other parts.
    """
    nodes, calls = node_changes(alignment, library.same)
    if nodes:
        details = {"nodes": [item.to_json() for item in nodes]}
        yield Change(
            "graph", CHANGED, where, f"{size} nodes: {', '.join(counted(nodes))}", details=details
        )
    elif calls:
        yield Change("graph", CHANGED, where, "calls functions that changed", counts=False)
    roots = list(map(_texts, found))
    for label in sorted(roots[0].keys() | roots[1].keys()):
        if label not in roots[0] or label not in roots[1]:
            # The sections of signatures, assets and objects report which of them exist.
            kind, text = (
                (ADDED, roots[1][label]) if label not in roots[0] else (REMOVED, roots[0][label])
            )
            yield Change(
                "graph", kind, (*where, label), f"means {text}", counts=label.startswith("saver")
            )
            continue
        mine, yours = (
            alignment.one.resolve(roots[0][label]),
            alignment.other.resolve(roots[1][label]),
        )
        before = roots[0][label] if mine is None else (alignment.pairs.get(mine[0]), mine[1])
        after = roots[1][label] if yours is None else yours
        if before != after:
            what = f"means {roots[0][label]} → {roots[1][label]}"
            yield Change("graph", CHANGED, (*where, label), what, roots[0][label], roots[1][label])


def _ops(
    where: tuple[str, ...], one: CanonicalMetaGraph, other: CanonicalMetaGraph
) -> Iterator[Change]:
    """Yield changes in how often each op occurs in the main graph and the functions, each function
    counted once. They follow from other changes, and so do not count."""
    mine, yours = _histogram(one), _histogram(other)
    for op in sorted(mine.keys() | yours.keys()):
        if mine[op] != yours[op]:
            kind = ADDED if not mine[op] else REMOVED if not yours[op] else CHANGED
            yield Change(
                "ops",
                kind,
                (*where, op),
                f"{mine[op]} → {yours[op]}",
                mine[op],
                yours[op],
                counts=False,
            )


def _texts(roots: Iterable[Root]) -> dict[str, str]:
    return {root.label: root.text for root in roots}


def _histogram(graph: CanonicalMetaGraph) -> Counter[str]:
    by_hash = {value: name for name, value in sorted(graph.functions.hashes.items(), reverse=True)}
    bodies = [graph.functions.library.functions[name].node_def for name in by_hash.values()]
    counted: Counter[str] = Counter()
    nodes = itertools.chain(graph.nodes.values(), *bodies)
    for op, number in Counter([node.op for node in nodes]).items():
        counted[plain_name(op)] += number
    return counted
