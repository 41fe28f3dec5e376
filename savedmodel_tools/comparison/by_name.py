"""Compare main graphs whose nodes kept their names: only nodes whose bytes differ are examined.

The canonical order, and the hash over it, cost more than all the rest of a comparison, and one is
needed of either graph. Here nodes of one name and equal bytes are taken for the same node, and only
the others are looked at. That says

- *equal*, when no node is left that means anything else, and everything outside the graph means the
  same nodes of it;
- *different*, when the others are different by themselves, whatever their names and places: the
  graphs then hold different multisets of nodes, and so have different hashes;
- *nothing*, where neither is certain, or where numbers in names moved on (an op inserted in front
  makes ``add_1`` of ``add``), so that names would explain the difference badly. Then the canonical
  order decides.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Optional

from reference_impl.format import schema
from reference_impl.graph.edges import parse_input
from savedmodel_tools.canonical.body import SAVERS, Body, plain_node_name
from savedmodel_tools.canonical.meta_graph import CanonicalMetaGraph, Root
from savedmodel_tools.comparison.align import Alignment

_SEARCHED = 1 << 28  # bytes of collections, times names that are looked for in them


class Decided(NamedTuple):
    """``alignment``: the nodes that differ, and those next to them, paired; None when the graphs
    are equal.
    """

    alignment: Optional[Alignment]


def same_collections(one: CanonicalMetaGraph, other: CanonicalMetaGraph) -> bool:
    """Return whether the collections have the same bytes and mention no node that only one side
    has. Then they are equal, whatever their entries mean."""
    mine, yours = _collections(one), _collections(other)
    moved = one.nodes.keys() ^ other.nodes.keys()
    text = b"".join(mine.values())
    return (
        mine == yours
        and len(moved) * len(text) < _SEARCHED
        and not any(name.encode() in text for name in moved)
    )


def _collections(graph: CanonicalMetaGraph) -> dict[str, bytes]:
    found = graph.definition.collection_def
    return {key: schema.serialize(found[key]) for key in found}


def decide(
    one: CanonicalMetaGraph, other: CanonicalMetaGraph, roots: Sequence[Sequence[Root]]
) -> Optional[Decided]:
    """Return what is certain about two main graphs without their canonical order, or None.

    ``roots``: what outside of either graph means its nodes, as far as it is not known to be the
    same.
    """
    if one.by_name != other.by_name or not _same_roots(one, other, roots):
        return None
    left = _left(one, other)
    if not any(left):
        shared = (*one.functions.shared.values(), *other.functions.shared.values())
        alone = not any(shared)
        return Decided(None) if alone or _sharing(one) == _sharing(other) else None
    if _may_be_dropped(left, one, other):
        return None
    parts = _parts(left, one, other)
    if any(body.dangling for body in parts):
        return None
    ends = [
        (mine[0], yours[0])
        for texts in zip(*roots)
        if (mine := parts[0].resolve(texts[0].text)) is not None
        and (yours := parts[1].resolve(texts[1].text)) is not None
    ]
    for body, starts in zip(parts, zip(*ends) if ends else ((), ())):
        body.arrange(starts)
    own = [_own(body, twin) for body, twin in zip(parts, reversed(parts))]
    if not any(own):
        moved = any(_edges(parts[0], name) != _edges(parts[1], name) for name in left[0])
        return None if moved or _sharing(one) != _sharing(other) else Decided(None)
    if own[0].keys() & own[1].keys():
        return None  # names cannot pair these
    alignment = Alignment(parts[0], parts[1], ends)
    return Decided(alignment) if _explains(alignment) else None


def _same_roots(
    one: CanonicalMetaGraph, other: CanonicalMetaGraph, roots: Sequence[Sequence[Root]]
) -> bool:
    """Return whether the same signatures, assets and so on refer to the same nodes, or to nodes
    that only their own side has.
    """
    if [root.label for root in roots[0]] != [root.label for root in roots[1]]:
        return False
    for mine, yours in zip(*roots):
        if mine.text != yours.text:
            sources = parse_input(mine.text), parse_input(yours.text)
            if (
                sources[0].port != sources[1].port
                or sources[0].source in other.nodes
                or sources[1].source in one.nodes
            ):
                return False
    return True


def _left(one: CanonicalMetaGraph, other: CanonicalMetaGraph) -> list[list[str]]:
    """Return the names of nodes on either side for which the other side has no equal node of the
    same name.
    """
    names = _function_names(one, other)
    ops = {
        op
        for op in one.functions.values.defaults.keys() | other.functions.values.defaults.keys()
        if one.functions.values.defaults.get(op) != other.functions.values.defaults.get(op)
    }
    assets = one.ignored.keys() ^ other.ignored.keys()
    left = (
        [name for name in one.nodes if name not in other.nodes],
        [name for name in other.nodes if name not in one.nodes],
    )
    for name, node in one.nodes.items():
        twin = other.nodes.get(name)
        if twin is None:
            continue
        # In any order of their attributes if they happen to have the same, which takes less to find
        # out.
        same = node.SerializeToString() == twin.SerializeToString() or schema.serialize(
            node
        ) == schema.serialize(twin)
        if not same or name in assets or node.op in ops or (names and _mentions(one, node, names)):
            left[0].append(name)
            left[1].append(name)
    return list(left)


def _function_names(one: CanonicalMetaGraph, other: CanonicalMetaGraph) -> set[str]:
    """Return the names that stand for different functions on the two sides."""
    mine, yours = one.functions.hashes, other.functions.hashes
    names = {name for name in mine.keys() | yours.keys() if mine.get(name) != yours.get(name)}
    gradients = one.functions.library.gradients, other.functions.library.gradients
    if gradients[0] != gradients[1]:
        names.update(gradients[0].values(), gradients[1].values())
    return names


def _mentions(graph: CanonicalMetaGraph, node: schema.NodeDef, names: set[str]) -> bool:
    library = graph.functions.library
    return not names.isdisjoint(library.references(node)) or not names.isdisjoint(
        library.in_strings(node.attr)
    )


def _may_be_dropped(
    left: list[list[str]], one: CanonicalMetaGraph, other: CanonicalMetaGraph
) -> bool:
    """Return whether a node may belong to a saver, which the canonical form leaves out, ignoring
    numbers in names too.
    """
    if not one.by_name:
        return False
    nodes = itertools.chain(one.nodes.items(), other.nodes.items())
    found = {name for name, node in nodes if node.op in SAVERS}
    scopes = {plain_node_name(name.rpartition("/")[0]) for name in found} - {""}
    inside = tuple([f"{scope}/" for scope in scopes])
    names = itertools.chain.from_iterable(left)
    return bool(inside) and any(plain_node_name(name).startswith(inside) for name in names)


def _parts(left: list[list[str]], one: CanonicalMetaGraph, other: CanonicalMetaGraph) -> list[Body]:
    """Return the remaining nodes of each side as a graph whose arguments are their neighbours."""
    mine = [one.nodes[name] for name in left[0]]
    yours = [other.nodes[name] for name in left[1]]
    inner = set(itertools.chain.from_iterable(left))
    inputs = itertools.chain.from_iterable(node.input for node in (*mine, *yours))
    near = {parse_input(text).source for text in inputs}
    arguments = dict.fromkeys(sorted(near - inner & one.nodes.keys() & other.nodes.keys()), b"")
    parts = []
    for graph, side in ((one, mine), (other, yours)):
        values = graph.functions.values
        parts.append(
            Body(
                side, values, arguments, keep_names=graph.by_name, ignored=graph.ignored, part=True
            )
        )
    return parts


def _own(body: Body, twin: Body) -> Counter[bytes]:
    """Count the nodes without their edges, for nodes that differ from the node of the same name on
    the other side.
    """
    mine, yours = [
        dict(zip(side.names[side.arguments :], side.graph.base[side.arguments :]))
        for side in (body, twin)
    ]
    return Counter([text for name, text in mine.items() if yours.get(name) != text])


class _Needed(NamedTuple):
    """Return the names that a node needs: inputs, control inputs, nodes with which it must share a
    device.
    """

    inputs: list[tuple[bytes, str]]
    after: set[str]
    places: list[bytes]


def _edges(body: Body, name: str) -> _Needed:
    vertex = body.index[name]
    node = body.nodes[vertex]
    places = [] if node is None or "_class" not in node.attr else sorted(node.attr["_class"].list.s)
    inputs = [(label, body.names[target]) for label, target in body.graph.ordered[vertex]]
    return _Needed(inputs, {body.names[target] for target in body.graph.unordered[vertex]}, places)


def _explains(alignment: Alignment) -> bool:
    """Return whether the alignment agrees with the names: paired nodes have one name, and so have
    their inputs, except those that only one side has."""
    one, other = alignment.one, alignment.other
    if any(one.names[vertex] != other.names[twin] for vertex, twin in alignment.pairs.items()):
        return False
    for name in one.index.keys() & other.index.keys():
        mine, yours = _edges(one, name), _edges(other, name)
        if (
            len(mine.inputs) != len(yours.inputs)
            or mine.after & other.index.keys() != yours.after & one.index.keys()
        ):
            return False
        for (_, source), (_, twin) in zip(mine.inputs, yours.inputs):
            if source != twin and source in other.index and twin in one.index:
                return False
    return len(alignment.pairs) == len(one.index.keys() & other.index.keys())


def _sharing(graph: CanonicalMetaGraph) -> Counter[frozenset[tuple[bytes, tuple[int, ...]]]]:
    """Count the groups of nodes that share a resource: nodes of the main graph by name, nodes of
    functions by place. The shared name may be generated."""
    groups: dict[str, set[tuple[bytes, tuple[int, ...]]]] = {}
    for function, shared in graph.functions.shared.items():
        for name, places in shared.items():
            groups.setdefault(name, set()).add((graph.functions.hashes[function], tuple(places)))
    for node in graph.nodes.values():
        if "shared_name" in node.attr and node.attr["shared_name"].s:
            name = node.attr["shared_name"].s.decode("utf-8", "replace")
            groups.setdefault(name, set()).add((node.name.encode(), ()))
    return Counter(map(frozenset, groups.values()))
