"""Find the ops of a MetaGraph that act on the machine, and when they run: at load, or in calls of a
function.

The graph is followed from everything that a loader or a user can start: restore and init ops,
functions of resources, signatures, functions of objects. It is followed through calls, and to every
function that TensorFlow may choose in place of a called one. Every node of a function counts as
run.

Three things are not findings: a restore op that reads the given checkpoint, a save op that writes
it, and an op that reads a file of assets/ where its path surely is one. Any other use of a file is
one, also where the path is not known.

The import of a graph is a start, too: TensorFlow computes some nodes then. Our own load imports
none.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, Optional

from reference_impl.format import limits, schema
from reference_impl.format.names import CREATE, DESTROY, INITIALIZE, RESERVED_SIGNATURES, SIGNATURES
from reference_impl.graph.called_children import called_children
from reference_impl.graph.closure import reachable, reversed_edges
from reference_impl.graph.edges import Edge, data_inputs, input_source, parse_input
from reference_impl.graph.graph_view import GraphView
from reference_impl.graph.object_graph import Paths
from reference_impl.graph.object_references import traces
from reference_impl.graph.signature_tensors import init_ops, tensor_names
from reference_impl.safety.effect import Effect
from reference_impl.safety.folded_sizes import Sizes, too_many_outputs
from reference_impl.safety.import_folding import imported as imported_bodies
from reference_impl.safety.load_sizes import Large, LoadSizes
from reference_impl.safety.op_effects import (
    MEMORY,
    READS,
    UNMEASURED,
    WITHOUT_PATH,
    OpEffect,
    op_effect,
)
from reference_impl.safety.path_origins import (
    ASSET,
    COMPUTED,
    COMPUTED_PATH,
    GIVEN,
    GIVEN_PATH,
    LITERAL,
    PART,
    UNSEEN,
    UNSEEN_PATH,
    Arguments,
    Body,
    Origin,
    function_arguments,
    is_given,
    is_model_file,
    is_one_of,
    loop_body,
    of_attribute,
    variable_name,
)

LOAD, CALL = "load", "call"
# Functions of a resource that run without being called: the last one when the object is collected
# (RP-04).
_OWN = (CREATE, INITIALIZE, DESTROY)


_LARGE = OpEffect(
    MEMORY,
    f"may make a tensor of more than {limits.FOLDED_ELEMENTS} elements while shapes are inferred",
)
_MANY_OUTPUTS = OpEffect(MEMORY, f"promises more than {limits.FOLDED_OUTPUTS} outputs")


class Start(NamedTuple):
    """Something that a loader or a user can run: nodes of the main graph, or a function of the
    library.
    """

    label: str  # its name in a report
    when: str  # LOAD or CALL
    nodes: tuple[str, ...] = ()
    function: Optional[str] = None
    bound: tuple[int, ...] = ()  # the objects that the function captures
    arguments: Optional[Arguments] = None
    checkpoint: bool = False  # whether it saves or restores, so that its caller names a file
    fed: tuple[str, ...] = ()  # tensors of the main graph that its caller gives


class Sighting(NamedTuple):
    """Nodes of one op in one body that have one effect."""

    effect: OpEffect
    node: str
    names: set[str]
    origins: set[Origin]
    labels: dict[str, dict[str, None]]


def graph_starts(meta_graph: schema.MetaGraphDef) -> Iterator[Start]:
    """Yield the parts of the main graph that sessions and servers run: restore, init ops,
    signatures, saving.

    RFC: V1-08, SIG-01
    """
    saver = meta_graph.saver_def
    if saver.restore_op_name:
        yield Start(
            f"restore op {saver.restore_op_name}",
            LOAD,
            (input_source(saver.restore_op_name),),
            checkpoint=True,
        )
    for op in dict.fromkeys(item.op for item in init_ops(meta_graph)):
        yield Start(f"init op {op}", LOAD, (input_source(op),))
    for key, signature in sorted(meta_graph.signature_def.items()):
        if key in RESERVED_SIGNATURES:
            continue
        outputs, inputs = tensor_names(signature.outputs), tensor_names(signature.inputs)
        yield Start(
            signature_label(key), CALL, tuple(map(input_source, outputs)), fed=tuple(inputs)
        )
    if saver.save_tensor_name:
        yield Start(
            "saving a checkpoint", CALL, (input_source(saver.save_tensor_name),), checkpoint=True
        )


def signature_label(key: str) -> str:
    """Return the name of a signature in the list of starts of an effect."""
    return f"signature {key}"


def object_starts(
    graph: schema.SavedObjectGraph, paths: Paths, *, by_name: bool = False
) -> Iterator[Start]:
    """Yield the functions of objects that loaders run, and those that users may call.

    `by_name` adds the children that TensorFlow's loader runs because of their names, and our own
    does not.

    RFC: RP-04, FN-05
    """
    at_load: dict[int, str] = {}
    for called in called_children(graph.nodes) if by_name else ():
        if called.runs:
            at_load[called.number] = f"{called.name} of {paths.label(called.parent)}"
    named: set[int] = (
        set()
    )  # entries of signatures are starts of the main graph, a trace is one of its function
    for number, node in enumerate(graph.nodes):
        kind = node.WhichOneof("kind")
        if kind == "function" or (
            kind == "user_object" and node.user_object.identifier == SIGNATURES
        ):
            named.update(child.node_id for child in node.children)
        if kind == "resource":
            for child in node.children:
                if child.local_name in _OWN:
                    at_load[child.node_id] = f"{child.local_name} of {paths.label(number)}"
            for pair in node.saveable_objects.values():
                at_load[pair.save_function] = at_load[pair.restore_function] = (
                    f"content of {paths.label(number)}"
                )
    for number, node in enumerate(graph.nodes):
        if number in at_load or number not in named:
            when, label = (
                (LOAD, at_load[number])
                if number in at_load
                else (CALL, f"function {paths.label(number)}")
            )
            for name in traces(node):
                bound = (
                    graph.concrete_functions[name].bound_inputs
                    if name in graph.concrete_functions
                    else ()
                )
                yield Start(label, when, function=name, bound=tuple(bound))


def effects(
    view: GraphView,
    objects: schema.SavedObjectGraph,
    assets: Sequence[schema.AssetFileDef],
    paths: Paths,
) -> tuple[Effect, ...]:
    """Return every effect of a MetaGraph on the machine, including effects of nodes that are never
    started.
    """
    search = Search(view, objects, assets)

    acting = {
        name for name, nodes in view.function_nodes.items() if any(map(search.effect, nodes.op_set))
    }
    search.follow_import()
    starts = [*graph_starts(view.proto), *object_starts(objects, paths, by_name=True)]
    search.follow_sizes(starts)
    if not acting and not search.acting:
        return search.results()
    callers = reversed_edges(
        (name, view.library.may_run(called)) for name, called in view.calls.items()
    )
    search.relevant = reachable(sorted(acting), callers)
    for start in sorted(
        starts, key=lambda start: start.when != LOAD
    ):  # what runs in any case is followed first
        search.follow(start)
    search.rest(acting)
    return search.results()


class Search:
    """One search through a MetaGraph with an object graph and assets."""

    def __init__(
        self,
        view: GraphView,
        objects: schema.SavedObjectGraph,
        assets: Sequence[schema.AssetFileDef],
    ):
        self.view, self.library = view, view.library
        self.objects = objects
        self.relevant: Optional[Collection[str]] = None  # functions worth entering; None for all
        self.steps = 0
        # The effect of each op; a function has the effects of its nodes.
        self.effect = functools.cache(lambda op: op_effect(op, self.library.functions))
        self._assets = assets
        self.found: dict[tuple[Optional[str], str, str], Sighting] = {}
        self._counted: set[tuple[Optional[str], str]] = set()

    @functools.cached_property
    def main(self) -> Body:
        """The main graph in a call, in which no loader feeds the tensors of assets.

        Ours uses the files all the same.
        """
        return self._main({}, self._asset_tensors)

    @functools.cached_property
    def _initialized(self) -> Body:
        """The main graph while loaders run the init ops and feed the tensors of assets."""
        return self._main(self._asset_tensors, {})

    @functools.cached_property
    def _checkpointed(self) -> Body:
        """The main graph while a checkpoint is saved or restored.

        Only some loaders feed the tensors of assets then.
        """
        name = self.view.proto.saver_def.filename_tensor_name
        return self._main({parse_input(name): GIVEN_PATH} if name else {}, self._asset_tensors)

    def _main(
        self, fed: dict[Edge, frozenset[Origin]], believed: dict[Edge, frozenset[Origin]]
    ) -> Body:
        return Body(None, self.view.main.by_name, fed, believed, self._shared_variables)

    @functools.cached_property
    def _asset_tensors(self) -> dict[Edge, frozenset[Origin]]:
        found: dict[Edge, frozenset[Origin]] = {}
        for item in self._assets:
            edge = parse_input(item.tensor_info.name)
            found[edge] = found.get(edge, frozenset()) | {Origin(ASSET, item.filename)}
        return found

    @functools.cached_property
    def _shared_variables(self) -> frozenset[str]:
        """The names of variables that have handles in functions, or several."""
        handles = [
            (function, variable_name(node)) for function, node in self.view.of_op(("VarHandleOp",))
        ]
        counts = Counter(name for _, name in handles)
        return frozenset(
            name for function, name in handles if function is not None or counts[name] > 1
        )

    def _body(self, start: Start) -> Body:
        """Return the main graph as something that starts there sees it."""
        if start.checkpoint:
            return self._checkpointed
        if start.when == LOAD:
            return self._initialized
        return (
            self._main({parse_input(text): GIVEN_PATH for text in start.fed}, self._asset_tensors)
            if start.fed
            else self.main
        )

    @functools.cached_property
    def acting(self) -> dict[str, schema.NodeDef]:
        """The nodes of the main graph that have effects."""
        return {
            name: self.view.main.by_name[name]
            for name, op in self.view.main.op_of.items()
            if self.effect(op)
        }

    @property
    def complete(self) -> bool:
        """Whether the search visited everything within its limits."""
        return self.steps <= limits.EFFECT_STEPS

    def follow(self, start: Start) -> None:
        """Visit everything that a start runs, up to `limits.EFFECT_STEPS` nodes."""
        ways: dict[str, set[Arguments]] = {}
        pending: list[tuple[str, Arguments]] = []
        if start.nodes:
            waits = self.view.main.waits
            names = [name for name in reachable(start.nodes, waits) if name in waits]
            main = self._body(start)
            self._note(main, [self.acting[name] for name in names if name in self.acting], start)
            self._enter(main, [main.nodes[name] for name in names], pending)
        elif start.function in self.library.functions:
            pending.append(
                (start.function, start.arguments or self._arguments(start.function, start.bound))
            )
        while pending:
            name, arguments = pending.pop()
            known = ways.setdefault(name, set())
            if arguments in known:
                continue
            if len(known) >= limits.EFFECT_ARGUMENTS:
                arguments = (UNSEEN_PATH,) * len(arguments)
                if arguments in known:
                    continue
            known.add(arguments)
            if not self.complete:
                return
            nodes = self.view.function_nodes[name].by_name
            body = Body(name, nodes, function_arguments(self.library.functions[name], arguments))
            self._note(body, nodes.values(), start)
            self._enter(body, nodes.values(), pending)

    def follow_import(self) -> None:
        """Record the effects of the nodes that TensorFlow computes when it imports the graph and
        its functions.
        """
        start = Start("the import of the graph", LOAD)
        for imported, nodes in imported_bodies(self.view):
            sizes = Sizes(nodes, imported.name is not None, imported.nodes)
            arguments = {Edge(name): COMPUTED_PATH for name in imported.arguments}
            body = (
                self.main
                if imported.name is None
                else Body(imported.name, imported.nodes, arguments)
            )
            self._note(body, nodes, start)
            for node in nodes:
                if sizes.is_large(node):
                    self._record(body, node, _LARGE, start)
            for node in imported.counted:
                if too_many_outputs(node):
                    self._record(body, node, _MANY_OUTPUTS, start)

    def follow_sizes(self, starts: Iterable[Start]) -> list[Large]:
        """Record and return the nodes that make more than a load may take."""
        sizes, found = LoadSizes(self.view, self.objects), []
        for start in starts:
            if start.when != LOAD:
                continue
            if start.nodes:
                waits = self.view.main.waits
                large = sizes.of_nodes(
                    [name for name in reachable(start.nodes, waits) if name in waits]
                )
            else:
                large = (
                    sizes.of_function(start.function, start.bound)
                    if start.function in self.library.functions
                    else []
                )
            for item in large:
                self._record(
                    Body(item.function, {}, {}),
                    item.node,
                    OpEffect(UNMEASURED if item.unmeasured else MEMORY, item.reason),
                    start,
                )
            found += large
        return found

    def _record(
        self, body: Body, node: schema.NodeDef, effect: OpEffect, start: Optional[Start]
    ) -> Sighting:
        """Return the entry of a node's effect, with this node and start."""
        key = (body.name, node.op, effect.kind)
        found = self.found.setdefault(
            key, Sighting(effect, node.name, set(), set(), {LOAD: {}, CALL: {}})
        )
        found.names.add(node.name)
        if start is not None:
            found.labels[start.when][start.label] = None
        return found

    def rest(self, acting: Iterable[str]) -> None:
        """Record the effects that nothing starts."""
        self._note(self._initialized, self.acting.values(), None)
        for name in acting:
            function = self.library.functions[name]
            arguments = function_arguments(function, itertools.repeat(COMPUTED_PATH))
            self._note(
                Body(name, self.view.function_nodes[name].by_name, arguments),
                function.node_def,
                None,
            )

    def _arguments(self, name: str, bound: Sequence[int]) -> Arguments:
        """Return the origins of a function's arguments: given, up to the captures at their end."""
        count = len(self.library.functions[name].signature.input_arg)
        captured = [self._object(number) for number in bound[:count]]
        return tuple([GIVEN_PATH] * (count - len(captured)) + captured)

    def _object(self, number: int) -> frozenset[Origin]:
        nodes = self.objects.nodes
        if not 0 <= number < len(nodes):
            return COMPUTED_PATH
        if nodes[number].HasField("asset"):
            index = nodes[number].asset.asset_file_def_index
            return (
                frozenset({Origin(ASSET, self._assets[index].filename)})
                if 0 <= index < len(self._assets)
                else COMPUTED_PATH
            )
        return (
            self.main.origins(nodes[number].constant.operation)
            if nodes[number].HasField("constant")
            else COMPUTED_PATH
        )

    def _enter(
        self, body: Body, nodes: Collection[schema.NodeDef], pending: list[tuple[str, Arguments]]
    ) -> None:
        """Queue the functions that nodes call or pass on."""
        self.steps += len(nodes)
        for node in nodes if self.library.functions else ():
            referred = self.view.references(node)
            if not referred:
                continue
            possible = self.library.may_run(referred)
            names = [name for name in possible if self.relevant is None or name in self.relevant]
            loop = self.library.functions.get(loop_body(node)) if names else None
            pending.extend(
                (name, body.forwarded_inputs(node, self.library.functions[name], loop))
                for name in names
            )

    def _note(self, body: Body, nodes: Iterable[schema.NodeDef], start: Optional[Start]) -> None:
        for node in nodes:
            effect = self.effect(node.op)
            if effect is None:
                continue
            origins = _path(body, node, effect)
            if is_one_of(origins, effect.without, effect.content):
                effect = WITHOUT_PATH.get(node.op)
                if effect is None:
                    continue
            # Savers that nothing names are left in many graphs; but where not everything was
            # followed, one of them may run.
            if (
                start is None
                and self.complete
                and (effect.checkpoint or (body.name, node.name) in self._counted)
            ):
                continue
            self._counted.add((body.name, node.name))
            if _harmless(effect, origins, start):
                continue
            self._record(body, node, effect, start).origins.update(origins)

    def is_handed_files(self, start: Start) -> bool:
        """Return whether a start gets a path in the model's directory: of the checkpoint or an
        asset.
        """
        if start.checkpoint:
            return True
        arguments = start.arguments
        if arguments is None and start.function in self.library.functions:
            arguments = self._arguments(start.function, start.bound)
        return any(item.kind == ASSET for item in itertools.chain.from_iterable(arguments or ()))

    def results(self) -> tuple[Effect, ...]:
        """Return one entry per op and body.

        If the search was not complete, the time of the effects is unknown.
        """
        entries = []
        for (function, op, _), found in sorted(
            self.found.items(), key=lambda item: (item[0][0] or "", *item[0][1:])
        ):
            paths = [_text(origin) for origin in sorted(found.origins) if origin != Origin(LITERAL)]
            entries.append(
                Effect(
                    op,
                    found.effect.kind,
                    found.effect.does,
                    found.node,
                    function,
                    len(found.names),
                    tuple(paths),
                    tuple(found.labels[LOAD]) if self.complete else None,
                    tuple(found.labels[CALL]) if self.complete else None,
                )
            )
        return tuple(entries)


def _path(body: Body, node: schema.NodeDef, effect: OpEffect) -> frozenset[Origin]:
    """Return the origins of all paths that an op uses."""
    if isinstance(effect.place, str):
        return of_attribute(node, effect.place)
    if effect.place is None:
        return frozenset()
    inputs = data_inputs(node)
    places = (effect.place,) if isinstance(effect.place, int) else effect.place
    known = [
        body.origins(inputs[place]) if place < len(inputs) else COMPUTED_PATH for place in places
    ]
    return frozenset().union(*known)


def _harmless(effect: OpEffect, origins: frozenset[Origin], start: Optional[Start]) -> bool:
    """Return whether an effect is common to all models: reading assets, and the checkpoint that the
    caller names.
    """
    if effect.checkpoint and start is not None and start.checkpoint:
        return (
            is_given(origins)
            if start.when == CALL
            else effect.kind == READS and origins == GIVEN_PATH
        )
    return effect.kind == READS and is_model_file(origins)


def _text(origin: Origin) -> str:
    """Return the text of a path for display."""
    if origin.kind in (LITERAL, PART):
        return origin.text
    told = {
        GIVEN: "(what the caller gives)",
        COMPUTED: "(computed)",
        UNSEEN: "(more than is looked at)",
    }
    return told.get(origin.kind, f"assets/{origin.text}")
