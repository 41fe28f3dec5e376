"""Predict which releases can load each part of a model, through each loader, and why the others
cannot (COMPAT-02).

Ops, attrs, values, dtypes and kernels are those of the op history;
:mod:`~savedmodel_tools.features` adds what a loader needs besides. The loaders differ in what
they look at:

    session    ``tf.compat.v1.saved_model.load``: imports the main graph, and drops default attrs
               that the model declares to have
    c++        Serving, Go, Java, C: the same as it stands
    servers    LoadSavedModel of C++ alone: looks at functions only when they run
    objects    ``tf.saved_model.load``: every function; the main graph and its versions only of
               models without an object graph
    reference  ``reference_impl.load``: functions only when they are called. Loading fills
               resources; one that needs an unknown op stays unfilled until a call that uses it,
               which fails. The restore op of TF 1.x must run, and the init op except where it fills
               resources. It makes every variable a resource variable, and looks at the versions of
               the GraphDef where `objects` does

The findings of `verify` come first: a part that they prove broken loads nowhere. There is no
prediction for a part that may be broken, or that needs other packages
(:mod:`~savedmodel_tools.obstacles`).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Optional

from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.format.container import layout
from reference_impl.format.names import RESERVED_SIGNATURES, SIGNATURES
from reference_impl.graph.object_graph import Paths
from reference_impl.graph.object_references import traces
from reference_impl.graph.variable_defs import VARIABLE_OPS
from reference_impl.v1.reading import selection
from reference_impl.v1.reading.program import Program
from reference_impl.views import programs
from savedmodel_tools import features
from savedmodel_tools.downgrade import attrs
from savedmodel_tools.obstacles import Obstacles, obstacles
from savedmodel_tools.skew.forms import SILENT
from savedmodel_tools.skew.history import History, history
from savedmodel_tools.skew.lacks import Lack
from savedmodel_tools.skew.needs import (
    Excuse,
    Part,
    UseKey,
    Walk,
    run_at_load,
)
from savedmodel_tools.skew.protos import plain_value

SCHEMA = 1
SESSION, CPP, OBJECTS = "session", "c++", "objects"
LOADERS = (SESSION, CPP, OBJECTS)
SERVERS, REFERENCE = "servers", "reference"
EVERY_LOADER = (*LOADERS, SERVERS, REFERENCE)
LOAD = "load"
SAVE, SAVE_BY_TENSORFLOW = (
    "save",
    "save by tf.saved_model.save",
)  # of what the loader `reference` loaded
FIRST_OBJECTS = "1.15"  # as tf.compat.v2
MAX_FUNCTIONS = 500  # of the object tree, told one by one; the others are told together


@dataclass(frozen=True)
class Verdict:
    """The verdict on one part of a model in one release, through one loader."""

    loads: bool  # it loads, or can be called
    reasons: tuple[str, ...]  # why not
    risks: tuple[
        str,
        ...,
        # meaningful attrs that the release silently ignores: the part loads, but an answer may
        # differ
    ]
    lacks: tuple[
        Lack,
        ...,
        # all features that the release lacks, including further ones of the nodes in ``reasons``
    ] = ()
    lost: tuple[Lack, ...] = ()  # the ``risks`` that have a name: what the release silently loses


@dataclass(frozen=True)
class Use:
    """A part of a MetaGraph: ``load``, ``signature KEY``, ``function PATH``, ``save``, through one
    loader.
    """

    part: str
    loader: str
    verdicts: dict[
        int, Verdict
    ]  # release -> Verdict, for the requested releases that have the loader
    unknown: tuple[str, ...] = ()  # why it cannot be predicted that the part loads, in any release
    refused: tuple[
        str,
        ...,
        # findings of `verify` for which no such release uses the part; the verdicts have them too
    ] = ()

    @property
    def members(self) -> tuple[int, ...]:
        """Return the releases in which it loads."""
        return tuple(index for index, verdict in self.verdicts.items() if verdict.loads)


@dataclass(frozen=True)
class GraphCompat:
    """The uses of one MetaGraph."""

    tags: tuple[str, ...]
    written_by: str
    producer: int
    uses: tuple[Use, ...]

    def loads(self, index: int, loaders: Collection[str] = LOADERS) -> bool:
        """Return whether a release supports every use through those of these loaders that it
        has.
        """
        return all(
            use.verdicts[index].loads
            for use in self.uses
            if use.loader in loaders and index in use.verdicts
        )


def compat(
    model: Path, releases: Iterable[int], *, follow_links: bool = False
) -> list[GraphCompat]:
    """Return the needs of each MetaGraph of a SavedModel.

    ``releases`` are numbers of the op history.

    Raises SavedModelError, TableError.
    """
    return of_model(layout.read(model, follow_links=follow_links), tuple(releases), history())


def of_model(
    found: layout.Layout,
    releases: Sequence[int],
    table: History,
    loaders: Collection[str] = LOADERS,
) -> list[GraphCompat]:
    """Return the same for a model that was read, starting from what `verify` finds.

    Raises SavedModelError, TableError.
    """
    graphs = [of_graph(graph, releases, table, loaders) for graph in found.saved_model.meta_graphs]
    return [_with_obstacles(graph, found) for graph, found in zip(graphs, obstacles(found))]


def _with_obstacles(graph: GraphCompat, found: Obstacles) -> GraphCompat:
    return replace(graph, uses=tuple(_hindered(use, found) for use in graph.uses))


def _hindered(use: Use, found: Obstacles) -> Use:
    """Return a use with what keeps it from working besides ops.

    Nothing is proved of servers and reference_impl.
    """
    if use.loader not in LOADERS:
        loader = OBJECTS if use.loader == REFERENCE else use.loader
        return replace(use, unknown=found.unknown(loader, use.part))
    if not found.concern(use.loader, use.part):
        return use
    refused: dict[str, None] = {}
    verdicts: dict[int, Verdict] = {}
    for index, verdict in use.verdicts.items():
        lines = found.refused(use.loader, use.part, index)
        refused.update(dict.fromkeys(lines))
        hindered = (
            replace(verdict, loads=False, reasons=(*lines, *verdict.reasons)) if lines else verdict
        )
        verdicts[index] = hindered
    unknown = found.unknown(use.loader, use.part, use.verdicts)
    return replace(use, verdicts=verdicts, unknown=unknown, refused=tuple(refused))


def of_graph(
    graph: schema.MetaGraphDef,
    releases: Sequence[int],
    table: History,
    loaders: Collection[str] = LOADERS,
) -> GraphCompat:
    """Return the same for one MetaGraph."""
    uses = _Asker(graph, releases, table).uses(loaders)
    info = graph.meta_info_def
    return GraphCompat(
        layout.tags_of(graph),
        info.tensorflow_version,
        graph.graph_def.versions.producer,
        tuple(uses),
    )


class _Asker:
    def __init__(self, graph: schema.MetaGraphDef, releases: Sequence[int], table: History) -> None:
        self.graph, self.releases, self.table = graph, releases, table
        self.walk = Walk(graph, table)
        self.has_objects = graph.HasField("object_graph_def")
        self.declared = _declared_defaults(graph)
        # One object each, since results are cached by object.
        self.excuses: dict[str, Excuse] = {
            SESSION: self._strips,
            CPP: self._ignores,
            SERVERS: self._ignores,
            OBJECTS: self._ignores,
            REFERENCE: self._ignores,
        }
        if not self.has_objects:
            self.excuses[OBJECTS] = self.excuses[REFERENCE] = self._strips
        self.selected = features.auto_selected(graph)
        self._answers: dict[
            tuple[object, ...], dict[int, Verdict]
        ] = {}  # by what a part imports and runs
        sessions = features.of_sessions(graph, table)
        self.format = {
            SESSION: sessions,
            CPP: sessions,
            SERVERS: sessions,
            OBJECTS: features.of_objects(graph, table),
            REFERENCE: [],
        }

    def _ignores(self, node: schema.NodeDef, in_function: bool, index: int, attr: str) -> bool:
        if index >= (self.table.index(attrs.IGNORED_SINCE) or 0):
            return True
        return in_function and features.goes_before_it_is_read(node, index, self.table)

    def _strips(self, node: schema.NodeDef, in_function: bool, index: int, attr: str) -> bool:
        if self._ignores(node, in_function, index, attr):
            return True
        at = (node.op, attr)
        return (
            not in_function
            and at in self.declared
            and plain_value(node.attr[attr]) == self.declared[at]
        )

    def uses(self, loaders: Collection[str]) -> list[Use]:
        walk = self.walk
        found = []
        keys = sorted(set(self.graph.signature_def) - set(RESERVED_SIGNATURES))
        for loader in (one for one in (SESSION, CPP, SERVERS) if one in loaders):
            imported, at_load = (
                ([], walk.running) if loader == SERVERS else (walk.start, walk.at_load)
            )
            found.append(self._use(LOAD, loader, imported, at_load))
            for key in keys:
                reached = walk.reached(key)
                nodes = [walk.uses[use].node for use in reached]
                inner = [walk.uses[use].node for use in reached if walk.holder[use]]
                more = [
                    *features.of_session_call(self.graph, nodes, self.table),
                    *features.of_functions_run(inner, self.table),
                    *features.of_run(self.selected, nodes, self.table),
                ]
                found.append(
                    self._use(f"signature {key}", loader, imported, [*at_load, *reached], more)
                )
        for loader in (one for one in (OBJECTS, REFERENCE) if one in loaders):
            found += self._of_objects(loader, keys)
        return found

    def _of_objects(self, loader: str, keys: Sequence[str]) -> Iterator[Use]:
        """Return the uses of the MetaGraph by a loader of Python objects; ``keys`` are those of its
        signatures.
        """
        walk = self.walk
        imported, run, tried = self._at_load(loader)
        yield self._use(LOAD, loader, imported, run, tried=tried)
        for key in keys:
            reached = [use for use in walk.reached(key) if walk.holder[use] or not self.has_objects]
            nodes = [walk.uses[use].node for use in reached]
            more = [
                *features.of_signature(self.graph, key, self.table),
                *features.of_run(self.selected, nodes, self.table),
            ]
            if not self.has_objects:
                more += features.of_cut_run(nodes, self.table)
            filled = self._filling(self._signatures.get(key, ()))
            if loader == REFERENCE and not self.has_objects:
                filled += self._filling_of_signature(key)
            yield self._use(
                f"signature {key}", loader, imported, [*run, *filled, *reached], more, tried
            )
        for name, functions in self._functions():
            traced = list(itertools.chain.from_iterable(map(traces, functions)))
            called = [*run, *self._filling(traced), *walk.bodies_of(traced)]
            nodes = [walk.uses[use].node for use in called]
            own = (features.of_function(self.graph, node, self.table) for node in functions)
            more = [
                *itertools.chain.from_iterable(own),
                *features.of_run(self.selected, nodes, self.table),
            ]
            yield self._use(name, loader, imported, called, more, tried)
        if loader == REFERENCE:
            yield from self._saved(keys, run, tried)

    def _at_load(self, loader: str) -> tuple[list[UseKey], list[UseKey], list[UseKey]]:
        """Return what a loader of Python objects imports, what it runs, and what it runs if the
        release knows the op.
        """
        imported, run = self.walk.python_load()
        if loader != REFERENCE:
            return imported, run, []
        if self.has_objects:
            return [], [], run
        nodes = [self.walk.uses[key].node for key in run]
        others = [key for key in run if key not in self._fillers]
        assigned = self.walk.assignments(
            node.attr["dtype"].type for node in nodes if node.op in VARIABLE_OPS
        )
        return [], [*others, *assigned], list(self._fillers)

    @functools.cached_property
    def _program(self) -> Optional[Program]:
        """The model of TF 1.x, if a release lacks an op that its init op runs: then only the users
        of a table may need the op.
        """
        ops = [self.walk.uses[key].history for key in self.walk.running]
        if all(op and all(map(op.definition, self.releases)) for op in ops):
            return None
        try:
            return Program(self.graph, "", lambda _: None)
        except SavedModelError:
            return None

    @functools.cached_property
    def _fillers(self) -> dict[UseKey, None]:
        """The uses by which the init op of a TF 1.x model makes and fills tables, and does nothing
        else.
        """
        if self._program is None:
            return {}
        try:
            names = selection.fillers(self._program)
            init = self._program.init_function
            rest = (
                self.walk.uses_of(
                    node.name for node in init.function.node_def if node.name not in names
                )
                if init
                else []
            )
        except SavedModelError:
            return {}
        return {
            key: None for key in dict.fromkeys(self.walk.uses_of(sorted(names))) if key not in rest
        }

    def _filling_of_signature(self, key: str) -> list[UseKey]:
        """Return those of `_fillers` without which a signature of a TF 1.x model cannot be called;
        all if that cannot be told.
        """
        if self._program is None:
            return []
        try:
            needed = dict.fromkeys(
                self.walk.uses_of(sorted(selection.needed_by(self._program, key)))
            )
        except SavedModelError:
            return list(self._fillers)
        return [use for use in self._fillers if use in needed]

    def _saved(
        self, keys: Sequence[str], run: Sequence[UseKey], tried: Sequence[UseKey]
    ) -> Iterator[Use]:
        """Return the uses of saving what `reference_impl.load` returned.

        Signatures that were cut out of a main graph are saved as functions. reference_impl.save
        writes the functions of an object graph as they were read, and runs those that return the
        content of resources. tf.saved_model.save builds all of them anew.
        """
        walk, nodes = self.walk, self.graph.object_graph_def.nodes
        if self.has_objects:
            holders = [number for number, node in enumerate(nodes) if node.saveable_objects]
            pairs = itertools.chain.from_iterable(
                nodes[number].saveable_objects.values() for number in holders
            )
            saving = [pair.save_function for pair in pairs]
            saved = (traces(nodes[number]) for number in saving if 0 <= number < len(nodes))
            names = list(itertools.chain.from_iterable(saved))
            content = [*walk.bodies_of(run_at_load(nodes, holders)), *walk.bodies_of(names)]
            kept, built = [], walk.bodies_of(self.graph.object_graph_def.concrete_functions)
        else:
            content = []
            kept = list(itertools.chain.from_iterable(map(walk.reached, keys)))
            built = [*kept, *self._fillers]
        yield self._use(SAVE, REFERENCE, kept, [*run, *content], tried=tried)
        yield self._use(SAVE_BY_TENSORFLOW, REFERENCE, built, [*run, *content], tried=tried)

    def _filling(self, functions: Iterable[str]) -> list[UseKey]:
        """Return the uses that create and fill the resources that functions capture."""
        objects = self.graph.object_graph_def
        found = [
            objects.concrete_functions[name]
            for name in functions
            if name in objects.concrete_functions
        ]
        captured = set(itertools.chain.from_iterable(item.bound_inputs for item in found))
        return self.walk.bodies_of(run_at_load(objects.nodes, captured))

    @functools.cached_property
    def _signatures(self) -> dict[str, list[str]]:
        """Return the functions of each signature in the object graph."""
        nodes = self.graph.object_graph_def.nodes
        return {
            child.local_name: traces(nodes[child.node_id])
            for child in self._children_of_signatures()
            if 0 <= child.node_id < len(nodes)
        }

    def _children_of_signatures(self) -> Iterator[Any]:
        """Yield the references to signatures in the object graph."""
        for node in self.graph.object_graph_def.nodes:
            if node.user_object.identifier == SIGNATURES:
                yield from node.children

    def _functions(self) -> list[tuple[str, list[schema.SavedObject]]]:
        """Return the functions of the object tree, by name; of very many all but the first
        together.
        """
        objects: Any = self.graph.object_graph_def.nodes
        paths, found = Paths(objects), []
        signatures = {child.node_id for child in self._children_of_signatures()}
        for number, node in enumerate(objects):
            called = (
                node.function.concrete_functions
            )  # without one it was never called: there is nothing to load
            if called and number not in signatures and not _internal(paths.label(number)):
                found.append((f"function {paths.label(number)}", [node]))
        rest = (nodes for _, nodes in found[MAX_FUNCTIONS:])
        others = list(itertools.chain.from_iterable(rest))
        return [
            *found[:MAX_FUNCTIONS],
            *([(f"{len(others)} more functions", others)] if others else []),
        ]

    def _use(
        self,
        name: str,
        loader: str,
        imported: Sequence[UseKey],
        run: Sequence[UseKey],
        more: Sequence[Lack] = (),
        tried: Sequence[UseKey] = (),
    ) -> Use:
        # The walk keeps the list of what is imported, which is the same for all parts of a loader:
        # its id stands for it.
        question = (loader, name == LOAD, id(imported), *map(tuple, (run, more, tried)))
        if question not in self._answers:  # signatures by the thousand mostly run the same
            self._answers[question] = self._verdicts(name, loader, imported, run, more, tried)
        return Use(name, loader, self._answers[question])

    def _verdicts(
        self,
        name: str,
        loader: str,
        imported: Sequence[UseKey],
        run: Sequence[UseKey],
        more: Sequence[Lack],
        tried: Sequence[UseKey],
    ) -> dict[int, Verdict]:
        first = FIRST_OBJECTS if loader in (OBJECTS, REFERENCE) else ""
        imports_calls = loader in (SESSION, CPP)
        looked_up = self.walk.start if loader == SERVERS else ()
        part = self.walk.part(
            *(
                name,
                imported,
                run,
                first,
                imports_calls,
                self.excuses[loader],
                self.releases,
                looked_up,
                tried,
            ),
            checks_versions=not (self.has_objects and loader in (OBJECTS, REFERENCE)),
        )
        uses = list(dict.fromkeys(run))
        formats = [*self.format[loader], *(more if loader != REFERENCE else ())]
        if loader in (CPP, SERVERS):
            ops = [self.walk.uses[key].node.op for key in uses]
            formats += features.of_programs_without_python(ops, name != LOAD, self.table)
        return {index: self._verdict(part, formats, uses, index) for index in part.lacks}

    def _verdict(
        self, part: Part, formats: Sequence[Lack], uses: Sequence[UseKey], index: int
    ) -> Verdict:
        missing = [lack for lack in formats if index not in lack.members]
        lacks = [lack for lack in missing if lack.kind != SILENT]
        lost = tuple(lack for lack in missing if lack.kind == SILENT)
        told = [_reason(lack, part) for lack in (*part.lacks[index], *lacks)]
        risks = dict.fromkeys([*(_reason(lack, part) for lack in lost), *self._risks(uses, index)])
        return Verdict(not told, tuple(told), tuple(risks), (*part.every[index], *lacks), lost)

    def _risks(self, uses: Sequence[UseKey], index: int) -> tuple[str, ...]:
        if index < (self.table.index(attrs.IGNORED_SINCE) or 0):
            return ()
        found: dict[str, None] = {}
        for key in uses:
            use = self.walk.uses[key]
            here = use.history.definition(index) if use.history else None
            if use.history is None or here is None:
                continue
            if use.node.op == programs.OP:
                found.update(
                    dict.fromkeys(
                        features.of_program(programs.program(use.node), index, self.table)
                    )
                )
            for name, value in use.attrs.items():
                if here.attr(name) is None and not attrs.idle(use.history, name, value, index):
                    found[
                        f"passes over attr '{name}' of op '{use.node.op}', which is not at its"
                        " default"
                    ] = None
        return tuple(found)


def _internal(path: str) -> bool:
    return any(part.startswith(("_", "trace_")) for part in path.split("."))


def _reason(lack: Lack, part: Part) -> str:
    where = part.where(lack)
    return f"lacks {lack.what}" + (f", {where}" if where else "")


def _declared_defaults(graph: schema.MetaGraphDef) -> dict[tuple[str, str], Any]:
    """Return the default values of attributes that the model declares, by op and attribute."""
    found = {}
    for op in graph.meta_info_def.stripped_op_list.op:
        for attr in op.attr:
            if attr.HasField("default_value"):
                found[op.name, attr.name] = plain_value(attr.default_value)
    return found
