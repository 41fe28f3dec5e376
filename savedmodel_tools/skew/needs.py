"""Find the releases that have everything a SavedModel uses: every op, attr, attr value, dtype and
CPU kernel, by the op history.

The answer is given part by part, since a model need not be read whole: a session imports the main
graph and runs the initialiser and one signature; ``tf.saved_model.load`` imports every function.
Only ops are examined, not Python objects, checkpoints and custom libraries.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

from reference_impl.format import schema
from reference_impl.format.container import layout
from reference_impl.format.names import CREATE, INITIALIZE, RESERVED_SIGNATURES
from reference_impl.graph.closure import reachable
from reference_impl.graph.edges import data_inputs, input_source, without_controls
from reference_impl.graph.graph_view import Reached
from reference_impl.graph.node_forms import NodeForm
from reference_impl.graph.object_references import traces
from reference_impl.graph.signature_tensors import init_ops
from savedmodel_tools.skew import lacks
from savedmodel_tools.skew.history import History, history
from savedmodel_tools.skew.lacks import Lack
from savedmodel_tools.skew.locate import Leads

SCHEMA = 1
MAX_LACKS = 20  # reported for one release
MAX_ALSO = 100
# Since this release, importing a graph looks into the functions that it calls, by these ops or by
# their own names. It does not look into other functions, such as branches.
IMPORTS_CALLS = "1.14"
_LOOKED_INTO = ("PartitionedCall", "StatefulPartitionedCall")
# (node, whether it is in a function, number of the release, name of an unknown attr) -> whether the
# loader ignores the attr
Excuse = Callable[[schema.NodeDef, bool, int, str], bool]
UseKey = tuple[
    str, bool, int, tuple[tuple[str, bytes], ...]
]  # of `Walk.uses`: op, in a function, inputs, attributes
SESSION, OBJECTS = "session", "tf.saved_model.load"


class Part(NamedTuple):
    """One way to use a MetaGraph.

    Attributes:
      name: ``session`` (import the graph, restore, initialise), ``signature KEY`` (also run the
          signature), ``tf.saved_model.load``.
      lacks: release -> what it lacks (only the first of many); empty for a release that has
          everything. Releases that do not support this way are left out.
      walk: locates uses in the model.
      every: release -> everything that the same nodes lack: a release may name any of it.
    """

    name: str
    lacks: dict[int, tuple[Lack, ...]]
    walk: Walk
    every: dict[int, tuple[Lack, ...]]

    @property
    def members(self) -> tuple[int, ...]:
        """Return the releases that have everything."""
        return tuple(index for index, lacks in self.lacks.items() if not lacks)

    @property
    def reasons(self) -> tuple[tuple[int, tuple[Lack, ...]], ...]:
        """Return (release, what it lacks) for the releases next to the members.

        Without members, for the release that lacks least.
        """
        members = set(self.members)
        edges = [
            index
            for index, lacks in self.lacks.items()
            if lacks and {index - 1, index + 1} & members
        ]
        if not members:
            edges = [min(self.lacks, key=lambda index: len(self.lacks[index]))]
        return tuple((index, self.lacks[index]) for index in edges)

    def where(self, lack: Lack) -> str:
        """Describe where in the model the first use of the lacking thing is; "" if it concerns the
        whole graph.
        """
        return self.walk.where(lack)


class GraphNeeds(NamedTuple):
    """The parts of one MetaGraph."""

    tags: tuple[str, ...]
    written_by: str
    producer: int
    parts: tuple[Part, ...]


def needs(model: Path, *, follow_links: bool = False) -> list[GraphNeeds]:
    """Return what each MetaGraph of a SavedModel needs. Raises SavedModelError, TableError."""
    table = history()
    return [
        of_graph(graph, table)
        for graph in layout.read(model, follow_links=follow_links).saved_model.meta_graphs
    ]


def to_json(found: Sequence[GraphNeeds], table: History) -> dict[str, Any]:
    """Return the JSON form, described in docs/contribute/internals.md."""
    return {"schema": SCHEMA, "meta_graphs": [_graph_json(graph, table) for graph in found]}


def _graph_json(graph: GraphNeeds, table: History) -> dict[str, Any]:
    return {
        "tags": list(graph.tags),
        "tensorflow_version": graph.written_by,
        "producer": graph.producer,
        "parts": [_part_json(part, table) for part in graph.parts],
    }


def _part_json(part: Part, table: History) -> dict[str, Any]:
    reasons = []
    for index, found in part.reasons:
        told = [_lack_json(lack, part, table) for lack in found]
        reasons.append({"release": table.releases[index].name, "lacks": told})
    return {
        "name": part.name,
        "releases": table.text(part.members),
        "min": table.since(part.members) if part.members else None,
        "max": table.until(part.members) if part.members else None,
        "reasons": reasons,
    }


def _lack_json(lack: Lack, part: Part, table: History) -> dict[str, Any]:
    fields = {
        "kind": lack.kind,
        "op": lack.op,
        "attr": lack.attr,
        "value": lack.value,
        "releases": table.text(lack.members),
    }
    return {
        key: value
        for key, value in {**fields, "what": lack.what, "where": part.where(lack)}.items()
        if value
    }


def _attributes(node: schema.NodeDef) -> tuple[tuple[str, bytes], ...]:
    """Return the attributes of a node on which a release's answer depends.

    Long values count only as present.
    """
    attributes, plain = node.attr, []
    for name in attributes:  # items() of a map is slow
        if not name.startswith("_"):
            value = attributes[name]
            long = value.WhichOneof("value") in ("tensor", "func")
            plain.append((name, b"" if long else value.SerializeToString(deterministic=True)))
    return tuple(sorted(plain))


def _distinct(*lists: Iterable[UseKey]) -> list[UseKey]:
    """Return the uses of several lists, each once: thousands of functions mostly use the same
    ops.
    """
    return list(dict.fromkeys(itertools.chain.from_iterable(lists)))


def of_graph(graph: schema.MetaGraphDef, table: History, objects_since: str = "2.0") -> GraphNeeds:
    """Return what one MetaGraph needs.

    ``objects_since``: the first release to ask for ``tf.saved_model.load``.
    """
    walk = Walk(graph, table)
    parts = [walk.part(SESSION, walk.start, walk.at_load, imports_calls=True)]
    keys = sorted(set(graph.signature_def) - set(RESERVED_SIGNATURES))
    parts += [
        walk.part(
            f"signature {key}", walk.start, [*walk.at_load, *walk.reached(key)], imports_calls=True
        )
        for key in keys
    ]
    imported, run = walk.python_load()
    parts.append(walk.part(OBJECTS, imported, run, first=objects_since))
    info = graph.meta_info_def
    return GraphNeeds(
        layout.tags_of(graph),
        info.tensorflow_version,
        graph.graph_def.versions.producer,
        tuple(parts),
    )


class _Imports(NamedTuple):
    """The uses that a loader imports, whichever signature is asked, and what releases lack of
    them.
    """

    given: Iterable[UseKey]  # kept, so that no other list gets its id
    uses: dict[UseKey, None]
    # By release, excuse, what else is looked up (its id; the value keeps it) and whether calls are.
    lacking: dict[
        tuple[int, Optional[Excuse], int, bool], tuple[Iterable[UseKey], list[tuple[Lack, ...]]]
    ]


class Walk:
    """One MetaGraph, and which uses of ops belong to which part.

    ``leads``: views of the MetaGraph, if there are any yet.
    """

    def __init__(
        self, graph: schema.MetaGraphDef, table: History, leads: Optional[Leads] = None
    ) -> None:
        self.graph, self.table = graph, table
        self.leads = leads or Leads(graph)
        self.library, self.calls = self.leads.library, self.leads.calls
        self.uses: dict[UseKey, lacks.Use] = {}
        self.holder: dict[UseKey, str] = {}
        self.lacks: dict[tuple[UseKey, int, bool, Optional[Excuse]], tuple[Lack, ...]] = {}
        # Pairs of a use and a definition that has all the use needs; the same with kernels, where
        # one kernel takes the use.
        self.defined: set[tuple[UseKey, int]] = set()
        self.with_kernel: set[tuple[UseKey, int, int]] = set()
        self._imports: dict[int, _Imports] = {}  # by the id of the list that parts share
        self.lack_at: dict[Lack, UseKey] = {}  # a use with this lack
        self.added: list[schema.NodeDef] = []  # nodes that the model does not have
        self.versions = graph.graph_def.versions
        self._key_of_form: dict[tuple[NodeForm, bool, int], Optional[UseKey]] = {}
        self.nodes = self.leads.main.by_name
        self._forms = dict(zip(self.leads.main.names, self.leads.forms[0]))
        bodies = zip(self.library.functions, self.leads.indexes[1:], self.leads.forms[1:])
        self.bodies = {
            name: self._keys(nodes.messages, forms, map(without_controls, nodes.inputs), name)
            for name, nodes, forms in bodies
        }
        self._inputs = self.leads.main.data_inputs
        self.start = self._keys_of(self.nodes)
        self.everything = _distinct(self.start, *self.bodies.values())
        ops = [graph.saver_def.restore_op_name, *(item.op for item in init_ops(graph))]
        # The nodes that run when the model is loaded. A session first places the whole main graph
        # on devices.
        self.running = self._uses_of(
            self.leads.reached([input_source(name) for name in ops if name])
        )
        self.at_load = [*self.start, *self.running]
        called = list(
            itertools.chain.from_iterable(map(self.leads.references, self.nodes.values()))
        )
        self.called = _distinct(*(self.bodies[name] for name in reachable(called, self.calls)))
        looked_into = reachable(
            self._called_with_inputs(self.nodes.values()),
            lambda name: self._called_with_inputs(self.library.functions[name].node_def),
        )
        self.looked_into = _distinct(*(self.bodies[name] for name in looked_into))

    def _called_with_inputs(self, nodes: Iterable[schema.NodeDef]) -> list[str]:
        """Return the functions that nodes call with their own inputs: those that an import looks
        into for shapes.
        """
        called = ((node.op, self.library.called(node)) for node in nodes)
        return [name for op, name in called if name is not None and op in (name, *_LOOKED_INTO)]

    def _key(self, form: NodeForm, inputs: int, in_function: bool) -> Optional[UseKey]:
        """Return what a release's answer on a node with this many inputs depends on, and where
        loaders find it; None for a call by op type.
        """
        at = form.plain, in_function, inputs
        if at not in self._key_of_form:
            is_call = form.op in self.library.functions
            plain = () if is_call else _attributes(form.node)
            self._key_of_form[at] = None if is_call else (form.op, in_function, inputs, plain)
        return self._key_of_form[at]

    def _keys(
        self,
        nodes: Iterable[schema.NodeDef],
        forms: Iterable[NodeForm],
        inputs: Iterable[Sequence[str]],
        holder: str,
    ) -> list[UseKey]:
        """Return the uses that nodes of these forms, with these inputs, make, each once."""
        first: dict[tuple[NodeForm, int], schema.NodeDef] = {}
        for node, form, given in zip(nodes, forms, inputs):
            first.setdefault((form.plain, len(given)), node)
        found: dict[UseKey, None] = {}
        for (form, count), node in first.items():
            key = self._key(form, count, bool(holder))
            if key is None:
                continue
            found[key] = None
            if key not in self.uses:
                self.uses[key] = lacks.Use(node, self.table.op(node.op))
                self.holder[key] = holder
        return list(found)

    def _keys_of(self, names: Iterable[str]) -> list[UseKey]:
        """Return the uses that some nodes of the main graph make, each once."""
        known = [name for name in names if name in self.nodes]
        nodes, forms = map(self.nodes.__getitem__, known), map(self._forms.__getitem__, known)
        return self._keys(nodes, forms, map(self._inputs, known), "")

    def _uses_of(self, reached: Reached) -> list[UseKey]:
        """Return the uses that run when these nodes of the main graph run."""
        main = self._keys_of(reached.nodes)
        return _distinct(main, *(self.bodies.get(name, ()) for name in reached.functions))

    def uses_of(self, names: Iterable[str]) -> list[UseKey]:
        """Return the uses of some nodes of the main graph and of the functions they call, without
        those of their inputs.
        """
        known = [name for name in names if name in self.nodes]
        referred = map(self.leads.references, [self.nodes[name] for name in known])
        functions = itertools.chain.from_iterable(referred)
        return [*self._keys_of(known), *self.bodies_of(functions)]

    def python_load(self) -> tuple[list[UseKey], list[UseKey]]:
        """Return what ``tf.saved_model.load`` imports and what it runs.

        These are all functions, those that fill resources, and assignments to the variables;
        without an object graph the main graph, the functions called from it, the restore op and the
        init op.
        """
        if not self.graph.HasField("object_graph_def"):
            return [*self.start, *self.called], self.running
        functions, nodes = _distinct(*self.bodies.values()), self.graph.object_graph_def.nodes
        assigned = self.assignments(
            node.variable.dtype for node in nodes if node.HasField("variable")
        )
        return functions, [*self.bodies_of(run_at_load(nodes)), *assigned]

    def assignments(self, dtypes: Iterable[int]) -> list[UseKey]:
        """Return the uses of the op that gives resource variables of some dtypes their values."""
        made = []
        for dtype in dict.fromkeys(dtypes):
            made.append(
                schema.NodeDef(name="restore", op="AssignVariableOp", input=["resource", "value"])
            )
            made[-1].attr["dtype"].type = dtype
        self.added += made
        return self._keys(made, map(self.leads.form, made), map(data_inputs, made), "")

    def bodies_of(self, functions: Iterable[str]) -> list[UseKey]:
        """Return the uses of some functions and of all functions they call."""
        return _distinct(*(self.bodies.get(name, ()) for name in reachable(functions, self.calls)))

    def reached(self, signature: str) -> list[UseKey]:
        """Return the uses that a call of the signature runs; all uses where finding them would take
        too long.
        """
        return (
            self.everything
            if self.leads.by_signature is None
            else self._uses_of(self.leads.by_signature[signature])
        )

    def part(
        self,
        name: str,
        imported: Iterable[UseKey],
        run: Iterable[UseKey],
        first: str = "",
        imports_calls: bool = False,
        excuse: Optional[Excuse] = None,
        releases: Optional[Iterable[int]] = None,
        looked_up: Iterable[UseKey] = (),
        tried: Iterable[UseKey] = (),
        checks_versions: bool = True,
        most: Optional[int] = MAX_LACKS,
    ) -> Part:
        """Return what the releases lack for one way to use the MetaGraph.

        Args:
          imported: uses that the release must know.
          run: uses that also need kernels.
          first: the first release with such a part.
          imports_calls: also look into the functions that the main graph calls, in releases that do
            so.
          excuse: returns whether the loader tolerates an attr that a release does not know, in a
            function or not.
          releases: the only releases to examine.
          looked_up: uses whose ops the release must know, but not their attrs.
          tried: uses that also need kernels, but whose ops the release need not know: the loader
            goes on without them.
          checks_versions: the loader heeds the versions of the GraphDef.
          most: how many lacks of a release are told; None for all.
        """
        if id(imported) not in self._imports:
            self._imports[id(imported)] = _Imports(imported, dict.fromkeys(imported), {})
        shared, run, tried = self._imports[id(imported)], dict.fromkeys(run), dict.fromkeys(tried)
        called = self.looked_into if imports_calls else ()
        start, calls = (self.table.index(release) or 0 for release in (first, IMPORTS_CALLS))
        seen = list(looked_up)
        told: dict[int, tuple[Lack, ...]] = {}
        also: dict[int, tuple[Lack, ...]] = {}
        for index in range(len(self.table.releases)) if releases is None else releases:
            if index >= start:
                found: list[tuple[Lack, ...]] = []
                if checks_versions:
                    found += [(lack,) for lack in lacks.versions(self.versions, self.table, index)]
                at = index, excuse, id(looked_up), imports_calls
                if at not in shared.lacking:
                    more = [
                        *seen,
                        *(
                            key
                            for key in (called if index >= calls else ())
                            if key not in shared.uses
                        ),
                    ]
                    shared.lacking[at] = (
                        looked_up,
                        list(self._lacking(shared.uses, more, (), (), index, excuse)),
                    )
                found += shared.lacking[at][1]
                found += self._lacking((), (), run, tried, index, excuse)
                told[index] = tuple(dict.fromkeys(each[0] for each in found))[:most]
                every = dict.fromkeys(itertools.chain.from_iterable(found))
                also[index] = tuple(every)[:MAX_ALSO]
        return Part(name, told, self, also)

    def _lacking(
        self,
        imported: Iterable[UseKey],
        called: Iterable[UseKey],
        run: Iterable[UseKey],
        tried: Iterable[UseKey],
        index: int,
        excuse: Optional[Excuse],
    ) -> Iterator[tuple[Lack, ...]]:
        """Return what each use lacks, beginning with what a release is most likely to name."""
        for keys, kernels, everything in (
            (imported, False, True),
            (called, False, False),
            (run, True, True),
        ):
            for key in keys:
                found = self._lacks(key, index, kernels, excuse)
                first = found[0] if found else None
                if first and (
                    everything
                    or first.kind == "unknown_op"
                    or lacks.types_it(self.uses[key], first, index)
                ):
                    self.lack_at.setdefault(first, key)
                    yield found
        for key in tried:
            found = self._lacks(key, index, True, excuse)
            if found and found[0].kind != "unknown_op":
                self.lack_at.setdefault(found[0], key)
                yield found

    def _lacks(
        self, key: UseKey, index: int, kernels: bool, excuse: Optional[Excuse]
    ) -> tuple[Lack, ...]:
        at = key, index, kernels, excuse
        if at not in self.lacks:
            found = self._undefined(key, index, excuse)
            if kernels and not any(lack.kind in ("unknown_op", "unknown_dtype") for lack in found):
                more = self._kernel(key, index) or lacks.version_of_op(
                    self.uses[key], self.table, index
                )
                found = [*found, *([more] if more else [])]
            self.lacks[at] = tuple(found)
        return self.lacks[at]

    def _undefined(self, key: UseKey, index: int, excuse: Optional[Excuse]) -> Sequence[Lack]:
        """Return what the definition of the op lacks.

        Releases with one definition, which knows every attr, are asked once.
        """
        use, in_function = self.uses[key], bool(self.holder[key])
        op = use.history.definition(index) if use.history is not None else None
        if (key, id(op)) in self.defined and all(
            index in self.table.dtypes.get(dtype, ()) for dtype in use.dtypes
        ):
            return ()
        excused = (
            None if excuse is None else functools.partial(excuse, use.node, in_function, index)
        )
        found = list(lacks.definition(use, self.table, index, self.versions.producer, excused))
        if op is not None and not found and use.attrs.keys() <= {attr.name for attr in op.attrs}:
            self.defined.add((key, id(op)))
        return found

    def _kernel(self, key: UseKey, index: int) -> Optional[Lack]:
        """Return the kernel that a release lacks.

        Releases with one definition and the same kernels are asked once.
        """
        known = self.uses[key].history
        if known is None:
            return None
        at = key, id(known.definition(index)), id(known.products(index))
        if at in self.with_kernel:
            return None
        found = lacks.kernel(self.uses[key], self.table, index)
        if found is None and self.table.releases[index].has_kernels:
            self.with_kernel.add(at)
        return found

    def where(self, lack: Lack) -> str:
        """See :meth:`Part.where`."""
        key = self.lack_at.get(lack)
        if key is None or any(node is self.uses[key].node for node in self.added):
            return ""
        return self.leads.place(self.holder[key], self.uses[key].node).text


def run_at_load(
    nodes: Sequence[schema.SavedObject], resources: Optional[Iterable[int]] = None
) -> list[str]:
    """Return the functions that the loader of an object graph runs: they create and fill
    ``resources`` (None: all of them).
    """
    found: list[str] = []
    for number in range(len(nodes)) if resources is None else resources:
        node = nodes[number] if 0 <= number < len(nodes) else None
        if node is None or node.WhichOneof("kind") != "resource":
            continue
        functions = [
            child.node_id for child in node.children if child.local_name in (CREATE, INITIALIZE)
        ]
        functions += [pair.restore_function for pair in node.saveable_objects.values()]
        for other in functions:
            if 0 <= other < len(nodes):
                found += traces(nodes[other])
    return found
