"""Which releases have everything a SavedModel uses: every op, attr, attr value, dtype and CPU kernel, by the op history.

What decides is told part by part, since a model need not be read whole: a session imports the main graph and runs the initialiser
and one signature, ``tf.saved_model.load`` imports every function. Only ops are looked at: Python objects, checkpoints and custom
libraries are not.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from compat_matrix.skew import advice
from compat_matrix.skew.history import History, OpHistory, history
from compat_matrix.skew.locate import Leads
from compat_matrix.skew.naming import dtypes_of
from compat_matrix.skew.protos import plain_value
from compat_matrix.skew.records import Op
from reference_impl.format import layout, schema
from reference_impl.format.graphs import data_inputs, parse_input, reachable
from reference_impl.format.inspect_signatures import RESERVED, init_ops

SCHEMA = 1
MAX_LACKS = 20  # told of one release
IMPORTS_CALLS = "1.14"  # from this on importing a graph looks into the functions it calls; those it does not call cost nothing
# (node, whether it stands in a function, number of the release, name of an attr it does not know) -> passed over by the loader
Excuse = Callable[[schema.NodeDef, bool, int, str], bool]
SESSION, OBJECTS = "session", "tf.saved_model.load"


@dataclass(frozen=True)
class Lack:
    """Something that a release does not have.

    ``kind`` is one of :data:`compat_matrix.skew.naming.KINDS`; ``members`` are the releases that have it; ``what`` says it.
    """

    kind: str
    op: str
    attr: str
    value: str
    members: tuple[int, ...]
    what: str


@dataclass(frozen=True)
class Part:
    """A way to use a MetaGraph.

    Attributes:
      name: ``session`` (import the graph, restore, initialise), ``signature KEY`` (that, and run it), ``tf.saved_model.load``.
      lacks: release -> what it lacks for that (of many only the first); nothing for a release that has everything. Releases that
        have no such way are left out.
      walk: tells where in the model.
    """

    name: str
    lacks: dict[int, tuple[Lack, ...]]
    walk: Walk

    @property
    def members(self) -> tuple[int, ...]:
        """The releases that have everything."""
        return tuple(index for index, lacks in self.lacks.items() if not lacks)

    @property
    def reasons(self) -> tuple[tuple[int, tuple[Lack, ...]], ...]:
        """(release, what it lacks) of the releases next to these; with no members, of the one that lacks least."""
        members = set(self.members)
        edges = [index for index, lacks in self.lacks.items() if lacks and {index - 1, index + 1} & members]
        if not members:
            edges = [min(self.lacks, key=lambda index: len(self.lacks[index]))]
        return tuple((index, self.lacks[index]) for index in edges)

    def where(self, lack: Lack) -> str:
        """In words, where in the model the first use is that needs it; "" for what is of the whole graph."""
        return self.walk.where(lack)


@dataclass(frozen=True)
class GraphNeeds:
    """The parts of one MetaGraph."""

    tags: tuple[str, ...]
    written_by: str
    producer: int
    parts: tuple[Part, ...]


def needs(model: Path) -> list[GraphNeeds]:
    """What each MetaGraph of a SavedModel needs. Raises SavedModelError, TableError."""
    table = history()
    return [of_graph(graph, table) for graph in layout.read(model).saved_model.meta_graphs]


def to_json(found: Sequence[GraphNeeds], table: History) -> dict[str, Any]:
    """The JSON form, described in docs/contracts.md."""
    return {"schema": SCHEMA, "meta_graphs": [_graph_json(graph, table) for graph in found]}


def _graph_json(graph: GraphNeeds, table: History) -> dict[str, Any]:
    parts = [
        {
            "name": part.name,
            "releases": table.text(part.members),
            "min": table.since(part.members) if part.members else None,
            "max": table.until(part.members) if part.members else None,
            "reasons": [
                {"release": table.releases[index].name, "lacks": [_lack_json(lack, part, table) for lack in lacks]}
                for index, lacks in part.reasons
            ],
        }
        for part in graph.parts
    ]
    return {"tags": list(graph.tags), "tensorflow_version": graph.written_by, "producer": graph.producer, "parts": parts}


def _lack_json(lack: Lack, part: Part, table: History) -> dict[str, Any]:
    fields = {"kind": lack.kind, "op": lack.op, "attr": lack.attr, "value": lack.value, "releases": table.text(lack.members)}
    return {key: value for key, value in {**fields, "what": lack.what, "where": part.where(lack)}.items() if value}


class _Use:
    """The uses of one op with the same attrs: they stand or fall together."""

    def __init__(self, node: schema.NodeDef, history_: Optional[OpHistory]) -> None:
        self.node, self.history = node, history_
        # In a function `node:output` may stand for a list of tensors.
        self.lists = any(re.fullmatch(r"[^:]+:[^:]*[^:\d][^:]*", text) for text in node.input)
        self.attrs = {name: value for name, value in node.attr.items() if not name.startswith("_")}
        self.types = {name: found for name, value in self.attrs.items() if (found := tuple(dtypes_of([value])))}
        self.dtypes = {dtype for found in self.types.values() for dtype in found}


def _key(node: schema.NodeDef, holder: str) -> str:
    """What a release's answer depends on, and where loaders find it. Of values that can be long only that they are there."""
    plain = {
        name: "..." if value.WhichOneof("value") in ("tensor", "func") else plain_value(value)
        for name, value in node.attr.items()
        if not name.startswith("_")
    }
    return json.dumps([node.op, bool(holder), len(data_inputs(node)), sorted(plain.items())])


def of_graph(graph: schema.MetaGraphDef, table: History, objects_since: str = "2.0") -> GraphNeeds:
    """What one MetaGraph needs. ``objects_since``: the first release to ask for ``tf.saved_model.load``."""
    walk = Walk(graph, table)
    parts = [walk.part(SESSION, walk.start, walk.at_load, imports_calls=True)]
    keys = sorted(set(graph.signature_def) - set(RESERVED))
    parts += [walk.part(f"signature {key}", walk.start, [*walk.at_load, *walk.reached(key)], imports_calls=True) for key in keys]
    # Without an object graph it imports the main graph, and the functions that are called with all that is in them.
    imported = walk.everything if graph.HasField("object_graph_def") else [*walk.start, *walk.called]
    parts.append(walk.part(OBJECTS, imported, walk.at_load, first=objects_since))
    info = graph.meta_info_def
    return GraphNeeds(tuple(sorted(info.tags)), info.tensorflow_version, graph.graph_def.versions.producer, tuple(parts))


class Walk:
    """One MetaGraph: which uses of ops belong to which part."""

    def __init__(self, graph: schema.MetaGraphDef, table: History) -> None:
        self.graph, self.table = graph, table
        self.leads = Leads(graph)
        self.library, self.calls = self.leads.library, self.leads.calls
        self.uses: dict[str, _Use] = {}
        self.holder: dict[str, str] = {}
        self.lacks: dict[tuple[str, int, bool, Optional[Excuse]], Optional[Lack]] = {}
        self.lack_at: dict[Lack, str] = {}  # a use that has it
        self.versions = graph.graph_def.versions
        self.nodes = {node.name: node for node in graph.graph_def.node}
        self.bodies = {name: self._keys(function.node_def, name) for name, function in self.library.functions.items()}
        self.start = self._keys(self.nodes.values(), "")
        self.everything = [*self.start, *(key for keys in self.bodies.values() for key in keys)]
        ops = [graph.saver_def.restore_op_name, *(item.op for item in init_ops(graph))]
        # All of the main graph is placed on devices before any of it runs.
        self.at_load = [*self.start, *self._run([parse_input(name).source for name in ops if name])]
        called = [name for node in self.nodes.values() for name in self.library.references(node)]
        self.called = [key for name in reachable(called, self.calls) for key in self.bodies[name]]

    def _keys(self, nodes: Iterable[schema.NodeDef], holder: str) -> list[str]:
        found: dict[str, None] = {}
        for node in nodes:
            if node.op in self.library.functions:
                continue  # a call by op type
            key = _key(node, holder)
            found[key] = None
            if key not in self.uses:
                self.uses[key] = _Use(node, self.table.op(node.op))
                self.holder[key] = holder
        return list(found)

    def _run(self, starts: Sequence[str]) -> list[str]:
        """The uses that run when these nodes of the main graph do."""
        edges = {name: [parse_input(text).source for text in node.input] for name, node in self.nodes.items()}
        nodes = [self.nodes[name] for name in reachable(starts, edges) if name in self.nodes]
        called = reachable([name for node in nodes for name in self.library.references(node)], self.calls)
        return [*self._keys(nodes, ""), *(key for name in called for key in self.bodies[name])]

    def bodies_of(self, functions: Iterable[str]) -> list[str]:
        """The uses of some functions and of all that they call."""
        return [key for name in reachable(functions, self.calls) for key in self.bodies.get(name, ())]

    def reached(self, signature: str) -> list[str]:
        """The uses that a call of the signature runs; all of them where that would take too long to find out."""
        if self.leads.reach.signatures is None:
            return self.everything
        nodes, functions = self.leads.reach.signatures[signature]
        found = [self.nodes[name] for name in nodes if name in self.nodes]
        return [*self._keys(found, ""), *(key for name in functions for key in self.bodies.get(name, ()))]

    def part(
        self,
        name: str,
        imported: Iterable[str],
        run: Iterable[str],
        first: str = "",
        imports_calls: bool = False,
        excuse: Optional[Excuse] = None,
        releases: Optional[Iterable[int]] = None,
    ) -> Part:
        """``imported`` must be known to the release, ``run`` needs kernels too. ``first``: the first release with such a part.
        ``imports_calls``: the functions that the main graph calls are imported too, in releases that do that. ``excuse``: says
        of an attr that a release does not know, in a function or not, that the loader gets over it. ``releases``: only these."""
        imported, run = dict.fromkeys(imported), dict.fromkeys(run)
        called = [key for key in dict.fromkeys(self.called) if key not in imported] if imports_calls else []
        start, calls = (self.table.index(release) or 0 for release in (first, IMPORTS_CALLS))
        lacks = {
            index: tuple(dict.fromkeys(self._lacking(imported, called if index >= calls else (), run, index, excuse)))[:MAX_LACKS]
            for index in (range(len(self.table.releases)) if releases is None else releases)
            if index >= start
        }
        return Part(name, lacks, self)

    def _lacking(
        self, imported: Iterable[str], called: Iterable[str], run: Iterable[str], index: int, excuse: Optional[Excuse]
    ) -> Iterator[Lack]:
        yield from _versions(self.versions, self.table, index)
        for keys, kernels, everything in ((imported, False, True), (called, False, False), (run, True, True)):
            for key in keys:
                lack = self._lack(key, index, kernels, excuse)
                if lack is not None and (everything or lack.kind == "unknown_op" or _types_it(self.uses[key], lack, index)):
                    self.lack_at.setdefault(lack, key)
                    yield lack

    def _lack(self, key: str, index: int, kernels: bool, excuse: Optional[Excuse]) -> Optional[Lack]:
        at = key, index, kernels, excuse
        if at not in self.lacks:
            in_function = bool(self.holder[key])
            excused = None if excuse is None else functools.partial(excuse, self.uses[key].node, in_function, index)
            lack = _definition(self.uses[key], self.table, index, self.versions.producer, excused)
            if lack is None and kernels:
                lack = _kernel(self.uses[key], self.table, index) or _version_of_op(self.uses[key], self.table, index)
            self.lacks[at] = lack
        return self.lacks[at]

    def where(self, lack: Lack) -> str:
        """See :meth:`Part.where`."""
        key = self.lack_at.get(lack)
        return "" if key is None else self.leads.place(self.holder[key], self.uses[key].node).text


def _types_it(use: _Use, lack: Lack, index: int) -> bool:
    """Whether the node's inputs and outputs have no types without what is lacking: that is looked at in functions, too."""
    op = use.history.definition(index) if use.history else None
    return lack.kind == "missing_attr" and op is not None and bool(re.search(rf"\b{re.escape(lack.attr)}\b", op.signature))


def _versions(versions: schema.VersionDef, table: History, index: int) -> Iterator[Lack]:
    """What the GraphDef versions refuse."""
    releases = table.releases
    if releases[index].producer < versions.min_consumer:
        members = tuple(i for i, release in enumerate(releases) if release.producer >= versions.min_consumer)
        yield Lack("min_consumer", "", "", str(versions.min_consumer), members, f"min_consumer {versions.min_consumer}")
    if releases[index].producer in versions.bad_consumers:
        members = tuple(i for i, release in enumerate(releases) if release.producer not in versions.bad_consumers)
        yield Lack("bad_consumer", "", "", str(releases[index].producer), members, f"bad_consumer {releases[index].producer}")


def _definition(
    use: _Use, table: History, index: int, producer: int, excused: Optional[Callable[[str], bool]] = None
) -> Optional[Lack]:
    """What of the op's definition a release lacks."""
    name, known = use.node.op, use.history
    if known is None:
        return Lack("unknown_op", name, "", "", (), f"op '{name}', which no release has: {advice.custom_op(name)}")
    op = known.definition(index)
    if op is None:
        return Lack("unknown_op", name, "", "", known.members, f"op '{name}'")
    if op.library:
        core = tuple(member for member in known.members if not known.library(member))
        return Lack("unknown_op", name, "", "", core, f"op '{name}' ({advice.not_loaded(op.library)})")
    if op.deprecated and 0 < op.deprecated[0] <= producer:
        return Lack("deprecated_op", name, "", str(op.deprecated[0]), (), f"op '{name}', deprecated: {op.deprecated[1]}")
    for dtype in sorted(use.dtypes):
        members = table.dtypes.get(dtype, ())
        if index not in members:
            return Lack("unknown_dtype", name, "", dtype, members, f"dtype {dtype}")
    for attr_name, value in use.attrs.items():
        attr = op.attr(attr_name)
        if attr is None:
            if _is_ignored(known, attr_name, value, table, index) or (excused is not None and excused(attr_name)):
                continue
            members = known.attr_members(attr_name)
            return Lack("unknown_attr", name, attr_name, "", members, f"attr '{attr_name}' of op '{name}'")
        for item in _values(value) if attr.allowed is not None else ():
            if item not in (attr.allowed or ()):
                members = tuple(member for member in known.attr_members(attr_name) if _allows(known, member, attr_name, item))
                return Lack("attr_value", name, attr_name, item, members, f"{attr_name}={item} of op '{name}'")
    for attr in op.attrs:
        if attr.default is None and attr.name not in use.attrs:
            members = tuple(member for member in known.members if not _requires(known, member, attr.name))
            return Lack("missing_attr", name, attr.name, "", members, f"a default for attr '{attr.name}' of op '{name}'")
    return _inputs(use, known, op)


def _version_of_op(use: _Use, table: History, index: int) -> Optional[Lack]:
    """The reader of an op's own format."""
    name, version = use.node.op, use.node.attr["version"].i if "version" in use.node.attr else 0
    members = advice.reading_version(name, version, table)
    first = next(iter(advice.OP_VERSIONS.get(name, ())), None)
    if members is None or first is None or index in members or index < (table.index(first) or 0):
        return None
    return Lack("op_version", name, "version", str(version), tuple(members), f"version {version} of op '{name}'")


def _inputs(use: _Use, known: OpHistory, op: Op) -> Optional[Lack]:
    """The form of the op with as many inputs as the node has."""
    given = len(data_inputs(use.node))
    if use.lists or _input_count(op, use) in (given, None):
        return None
    forms = {member: found for member in known.members if (found := known.definition(member))}
    members = tuple(member for member, form in forms.items() if _input_count(form, use) == given)
    return Lack("changed_inputs", op.name, "", str(given), members, f"op '{op.name}' with {given} inputs ({op.signature} here)")


def _input_count(op: Op, use: _Use) -> Optional[int]:
    """How many tensors a node with these attrs takes; None when they do not tell."""
    count = 0
    for argument in filter(None, op.signature.partition("->")[0].strip().split(", ")):
        kind = argument.partition(": ")[2]
        repeated, star, _ = kind.partition("*")
        attr = op.attr(repeated if star else kind)
        if attr is None or not (star or attr.type == "list(type)"):
            count += 1
            continue
        given = use.attrs.get(attr.name)
        value = plain_value(given) if given is not None else attr.default
        size = value if star else len(value) if isinstance(value, list) else None
        if not isinstance(size, int):
            return None
        count += size
    return count


def _is_ignored(known: OpHistory, attr_name: str, value: schema.AttrValue, table: History, index: int) -> bool:
    """Whether the release passes over the attr, and no answer depends on that: the attr is idle, or has its default."""
    members = known.attr_members(attr_name)
    op = known.definition(members[-1]) if members else None
    attr = op.attr(attr_name) if op else None
    idle = (known.name, attr_name) in advice.IDLE_ATTRS or (attr is not None and plain_value(value) == attr.default)
    return idle and index >= (table.index(advice.IGNORES_UNKNOWN_ATTRS) or 0)


def _values(value: schema.AttrValue) -> Iterator[str]:
    """The values that a list of allowed ones is about; none for an attr that a function passes on (legacy Defun)."""
    if value.WhichOneof("value") == "placeholder":
        return
    plain = plain_value(value)
    for item in plain if isinstance(plain, list) else [plain]:
        if isinstance(item, str):
            yield item


def _allows(known: OpHistory, member: int, attr_name: str, value: str) -> bool:
    op = known.definition(member)
    attr = op.attr(attr_name) if op else None
    return attr is not None and (attr.allowed is None or value in attr.allowed)


def _requires(known: OpHistory, member: int, attr_name: str) -> bool:
    op = known.definition(member)
    attr = op.attr(attr_name) if op else None
    return attr is not None and attr.default is None


def _kernel(use: _Use, table: History, index: int) -> Optional[Lack]:
    """The kernel that a release lacks; nothing where the table has none of any release (Python's, a TPU's), or does not tell."""
    known = use.history
    if known is None or not table.releases[index].has_kernels or advice.takes(known.products(index), use.types):
        return None
    members = tuple(advice.with_kernel(known, use.types, table))
    if not any(known.products(member) for member in known.members):
        return None
    op = use.node.op
    words = ", ".join(f"{attr}={'/'.join(dtypes)}" for attr, dtypes in sorted(use.types.items()))
    return Lack("missing_kernel", op, "", words, members, f"a CPU kernel of op '{op}'" + (f" for {words}" if words else ""))
