"""The canonical form of one graph or one function body."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Optional

from reference_impl import errors
from reference_impl.format import schema
from reference_impl.format.names import NO_GRADIENT_BECAUSE
from reference_impl.graph.edges import CONTROL, Edge, input_source, parse_input
from savedmodel_tools.canonical.graph import Digraph, digest
from savedmodel_tools.canonical.values import Values

_SUFFIX = re.compile(r"_\d+(?=[/:]|$)")
_DIGITS = re.compile(r"\d+")
# A node to share a device with is described by its place. Why a gradient is missing is for people.
_UNSAID = frozenset({"_class", NO_GRADIENT_BECAUSE})
SAVERS = frozenset({"SaveV2", "RestoreV2", "SaveSlices", "Save", "Restore", "RestoreSlice"})
_SAVER_OPS = SAVERS | {
    *(
        "Assign",
        "AssignVariableOp",
        "Const",
        "DisableCopyOnRead",
        "Identity",
        "MergeV2Checkpoints",
        "NoOp",
        "Pack",
    ),
    *(
        "Placeholder",
        "PlaceholderWithDefault",
        "ReadVariableOp",
        "Reshape",
        "Select",
        "ShardedFilename",
        "StaticRegexFullMatch",
    ),
    *("BoostedTreesDeserializeEnsemble", "BoostedTreesSerializeEnsemble"),
    *(
        "BoostedTreesQuantileStreamResourceDeserialize",
        "BoostedTreesQuantileStreamResourceGetBucketBoundaries",
    ),
    *(
        "StringJoin",
        "LookupTableExport",
        "LookupTableExportV2",
        "LookupTableImport",
        "LookupTableImportV2",
    ),
}


def plain_node_name(name: str) -> str:
    """Return a node name without the numbers that make it unique: ``dense_1/add_3`` becomes
    ``dense/add``.
    """
    return _SUFFIX.sub("", name)


def check_names(names: Sequence[str], distinct: int) -> None:
    """Raise DuplicateKeyError, with one repeated name, when there are fewer distinct names than
    names.
    """
    if distinct != len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise errors.DuplicateKeyError("two nodes of this name", node=twice)


class Body:
    """The nodes of a graph in canonical order, with a line of bytes for each.

    Args:
      nodes: the NodeDefs.
      values: turns attributes into bytes.
      arguments: for a function, its argument names with a hash of each declaration; None for a main
        graph.
      keep_names: node names are part of the form (without their numbers): in TF 1.x programs feed
        and fetch by name.
      ignored: node name -> attributes of the node that do not count.
      part: the nodes are a part of a main graph, and the arguments stand for other nodes of the
        graph.

    Raises:
      DuplicateKeyError: two nodes, or a node and an argument, share a name.
    """

    def __init__(
        self,
        nodes: Sequence[schema.NodeDef],
        values: Values,
        arguments: Optional[Mapping[str, bytes]] = None,
        keep_names: bool = False,
        ignored: Mapping[str, frozenset[str]] = {},
        part: bool = False,
    ):
        self.values = values
        self.part = part
        self.in_function = arguments is not None and not part
        self.arguments = len(arguments or ())
        self.keep_names = keep_names
        self.ignored = ignored
        self.names = [*(arguments or ()), *[node.name for node in nodes]]
        self.nodes: list[Optional[schema.NodeDef]] = [*[None for _ in arguments or ()], *nodes]
        self.index = {name: number for number, name in enumerate(self.names)}
        check_names(self.names, len(self.index))
        base = [
            digest(b"argument", b"%d" % number, item)
            for number, item in enumerate((arguments or {}).values())
        ]
        base += [self.describe(node) for node in nodes]
        functions = values.library.functions if self.in_function else {}
        # Calls by op type, whose outputs have names: vertex -> function.
        self.calls = {
            vertex: node.op
            for vertex, node in enumerate(nodes if functions else (), self.arguments)
            if node.op in functions
        }
        self.dangling = False  # whether a node needs a missing node
        ordered: list[list[tuple[bytes, int]]] = [[] for _ in range(self.arguments)]
        unordered: list[list[int]] = [[] for _ in range(self.arguments)]
        for offset, node in enumerate(nodes):
            data, control, dangling = self._edges(node)
            ordered.append(data)
            unordered.append(control)
            if dangling:
                self.dangling = True
                base[self.arguments + offset] = digest(base[self.arguments + offset], *dangling)
        self.graph = Digraph(base, ordered, unordered, lambda vertex: natural(self.names[vertex]))
        self.order: list[int] = []
        self.position: list[int] = []

    def describe(self, node: schema.NodeDef) -> bytes:
        """Describe a node, apart from its edges."""
        op = node.op
        said = self.values.name(op) if op in self.values.library.functions else op.encode()
        full_type = self._bytes_of(node)
        attributes = self.values.attributes(node.attr, op, self.unsaid(node))
        name = plain_node_name(node.name).encode() if self.keep_names else b""
        return digest(said, node.device.encode(), attributes, full_type, name)

    def unsaid(self, node: schema.NodeDef) -> frozenset[str]:
        """Return the attributes left out of a node's description: a node to share a device with is
        described by its place, not by its name.
        """
        return _UNSAID | self.ignored.get(node.name, frozenset()) if self.ignored else _UNSAID

    @staticmethod
    def _bytes_of(node: schema.NodeDef) -> bytes:
        return (
            schema.serialize(node.experimental_type) if node.HasField("experimental_type") else b""
        )

    def _edges(
        self, node: schema.NodeDef
    ) -> tuple[list[tuple[bytes, int]], list[int], list[bytes]]:
        data: list[tuple[bytes, int]] = []
        control: set[int] = set()
        dangling: list[bytes] = []
        for text in node.input:
            edge = parse_input(text, self.in_function)
            source = self.index.get(edge.source)
            if source is None:
                dangling.append(b"dangling " + text.encode())
            elif edge.port == CONTROL:
                control.add(source)
            else:
                data.append((self.port(edge, source), source))
        return data, sorted(control), dangling

    def port(self, edge: Edge, source: int) -> bytes:
        """Return the port of a node's output.

        A call by op type names outputs as the function does, so positions are used there.
        """
        called = self.calls.get(source)
        if called is None:
            return edge.port.encode()
        name, _, index = edge.port.partition(":")
        number = self.values.library.output_number(called, name)
        return edge.port.encode() if number is None else b"%d:%b" % (number, index.encode())

    def resolve(self, text: str) -> Optional[tuple[int, bytes]]:
        """Return the vertex and output that a tensor or node name means; None when there is no such
        node.
        """
        source = self.index.get(input_source(text, self.in_function))
        return (
            None
            if source is None
            else (source, self.port(parse_input(text, self.in_function), source))
        )

    def arrange(self, roots: Iterable[int], root_sets: Iterable[Sequence[int]] = ()) -> None:
        """Find the canonical order: arguments first, then what the roots need, then the rest."""
        starts = list(roots)
        sets = list(root_sets)
        if self.keep_names and not self.part:
            self.graph.drop(
                self._forgotten_savers(self.graph.needed([*starts, *itertools.chain(*sets)]))
            )
        self.order = self.graph.number([*range(self.arguments), *starts], sets)
        self.position = [-1] * len(self.names)
        for position, vertex in enumerate(self.order):
            self.position[vertex] = position

    def _forgotten_savers(self, needed: bytearray) -> set[int]:
        """Return the savers that nothing names.

        TF 1.x adds one to the graph for every export and keeps the old ones.
        """
        rest = [vertex for vertex in range(len(self.names)) if not needed[vertex]]
        scopes = {
            self.names[vertex].rpartition("/")[0] for vertex in rest if self._op(vertex) in SAVERS
        }
        members: dict[str, list[int]] = {scope: [] for scope in scopes if scope}
        for vertex in rest:
            parts = self.names[vertex].split("/")
            for length in range(1, len(parts)):
                scope = "/".join(parts[:length])
                if scope in members:
                    members[scope].append(vertex)
        dropped: set[int] = set()
        for group in members.values():
            if all(self._op(vertex) in _SAVER_OPS for vertex in group):
                dropped.update(group)
        others = (vertex for vertex in rest if vertex not in dropped)
        used = itertools.chain.from_iterable(map(self.targets, others))
        return dropped if dropped.isdisjoint(used) else set()

    def _op(self, vertex: int) -> str:
        node = self.nodes[vertex]
        return "" if node is None else node.op

    def targets(self, vertex: int) -> list[int]:
        """Return the vertices of all inputs, control edges included."""
        return [
            *[target for _, target in self.graph.ordered[vertex]],
            *self.graph.unordered[vertex],
        ]

    def lines(self) -> list[bytes]:
        """Return a hash per node, in canonical order, over its description and the places of its
        inputs in that order.
        """
        result, position = [], self.position
        for vertex in self.order:
            edges = [
                b"%d:%b" % (position[target], label) for label, target in self.graph.ordered[vertex]
            ]
            before = sorted([position[target] for target in self.graph.unordered[vertex]])
            control = b",".join([b"%d" % place for place in before])
            result.append(
                digest(self.graph.base[vertex], *edges, b"^" + control, *self.colocated(vertex))
            )
        return result

    def colocated(self, vertex: int) -> list[bytes]:
        """Return the other nodes that a node must share a device with."""
        node = self.nodes[vertex]
        if node is None or "_class" not in node.attr:
            return []
        found = set()
        for item in node.attr["_class"].list.s:
            prefix, _, name = item.decode("utf-8", "replace").partition("@")
            place = self.position[self.index[name]] if name in self.index else None
            if place != self.position[vertex]:
                found.add(f"{prefix}@{_DIGITS.sub('#', name) if place is None else place}".encode())
        return sorted(found)

    def shared(self) -> dict[str, list[int]]:
        """Return the names under which nodes share a resource, and the places of the nodes that use
        each.
        """
        found: dict[str, list[int]] = {}
        for position, vertex in enumerate(self.order):
            node = self.nodes[vertex]
            if node is not None and "shared_name" in node.attr and node.attr["shared_name"].s:
                found.setdefault(node.attr["shared_name"].s.decode("utf-8", "replace"), []).append(
                    position
                )
        return found


def natural(name: str) -> str:
    """Return a sort key that puts ``add_2`` before ``add_10``."""
    return _DIGITS.sub(lambda match: match.group().zfill(12), name)
