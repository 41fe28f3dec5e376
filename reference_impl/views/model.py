"""Look into a SavedModel without TensorFlow and without running anything:
``inspect(path).to_json()``.

Damage outside the MetaGraphs (to the checkpoint, an asset, the fingerprint) is listed in
``problems``; the rest is still shown.

RFC: GOAL-07
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional, Union

from reference_impl import errors
from reference_impl.format import extension, schema
from reference_impl.format.container import files, layout
from reference_impl.format.names import OBJECT_GRAPH_KEY
from reference_impl.format.values import tensor_proto
from reference_impl.graph.graph_view import GraphView
from reference_impl.graph.object_graph import Paths, checkpoint_keys
from reference_impl.graph.object_references import dangling
from reference_impl.graph.restore_plan import Restored, restore_plan
from reference_impl.graph.signature_tensors import init_ops
from reference_impl.graph.unique_names import repeated
from reference_impl.safety.effects import effects
from reference_impl.views.functions import functions, library_functions, op_counts, sizes
from reference_impl.views.objects import objects
from reference_impl.views.programs import programs
from reference_impl.views.saved_model import SavedModelInfo
from reference_impl.views.signatures import signature_spec, signatures
from reference_impl.views.types import Asset, Checkpoint, File, MetaGraph, Saver, Variable
from reference_impl.views.types import Collection as CollectionInfo
from reference_impl.views.variables import graph_variables, object_variables, stored_size

__all__ = ["SavedModelInfo", "inspect", "restore_plan", "signature_spec"]


def inspect(
    path: files.AnyPath,
    tags: Union[str, Collection[str], None] = None,
    *,
    follow_links: bool = False,
) -> SavedModelInfo:
    """Describe the SavedModel at ``path``.

    Args:
      path: its directory, or a saved_model.* file.
      tags: show only the MetaGraph with exactly these tags; None shows all.
      follow_links: accept symbolic links that lead out of the directory.

    Raises:
      SavedModelError: the MetaGraphs cannot be read, see
        `reference_impl.format.container.layout.read`.
      NoMetaGraphError: no MetaGraph has these tags.
      FileAccessError: other exports replaced this one each time that it was read.
    """

    def once() -> SavedModelInfo:
        model = layout.read(path, follow_links=follow_links)
        graphs = list(model.saved_model.meta_graphs) if tags is None else [model.meta_graph(tags)]
        return _Inspection(model).run(graphs)

    return layout.of_one_export(path, once)


class _Inspection:
    """The inspection of one SavedModel: the data that its MetaGraphs share, and the problems found
    so far.
    """

    def __init__(self, model: layout.Layout):
        self.model = model
        self.problems: list[str] = []
        self.entries: Mapping[str, Any] = {}
        self.tracked: Optional[schema.TrackableObjectGraph] = None

    def run(self, graphs: list[schema.MetaGraphDef]) -> SavedModelInfo:
        self.problems.extend(_same_tags(self.model.saved_model))
        found = self._attempt(self.model.special_files, {})
        self.problems.extend(
            f"{name} is {what}, not a regular file" for name, what in found.items()
        )
        checkpoint = self._checkpoint()
        meta_graphs = tuple([self._meta_graph(graph) for graph in graphs])
        names = self._attempt(lambda: self.model.names, ())
        listed = [File(name, size) for name in names if (size := self._file_size(name)) is not None]
        return SavedModelInfo(
            path=str(self.model.directory),
            format=self.model.file.name,
            schema_version=self.model.saved_model.saved_model_schema_version,
            size=sum(file.size for file in listed),
            meta_graphs=meta_graphs,
            checkpoint=checkpoint,
            fingerprint=self._fingerprint(),
            debug_info=next((file for file in listed if file.path == layout.DEBUG_INFO), None),
            extra=tuple(
                [file for file in listed if file.path.startswith(f"{layout.ASSETS_EXTRA}/")]
            ),
            problems=tuple(dict.fromkeys(self.problems)),
        )

    def _attempt(self, action: Callable[[], Any], otherwise: object) -> Any:
        """Return the result of ``action``; if it fails, record a problem and return
        ``otherwise``.
        """
        try:
            return action()
        except errors.SavedModelError as error:
            self.problems.append(f"{type(error).__name__}: {files.shown(str(error))}")
            return otherwise

    def _file_size(self, name: str) -> Optional[int]:
        path = self._attempt(lambda: self.model.root.path(name), None)
        if path is None or files.special_kind(path):
            return None  # the list of special files has it
        try:
            return int(path.stat().st_size)
        except OSError as error:
            self.problems.append(f"{type(error).__name__}: {files.shown(path)}: {error.strerror}")
            return None

    def _fingerprint(self) -> Optional[dict[str, Any]]:
        found = self._attempt(lambda: self.model.fingerprint, None)
        if found is None:
            return None
        fields = (
            "saved_model_checksum",
            "graph_def_program_hash",
            "signature_def_hash",
            "saved_object_graph_hash",
            "checkpoint_hash",
        )
        # 64-bit numbers as text: many JSON readers keep only 53 bits.
        return {
            **{name: str(getattr(found, name)) for name in fields},
            "uuid": found.uuid,
            "version": found.version.producer,
        }

    def _checkpoint(self) -> Optional[Checkpoint]:
        old_format = self._attempt(
            lambda: self.model.root.exists(layout.CHECKPOINT), False
        )  # the reader reports it
        if not self._attempt(lambda: self.model.has_checkpoint, False) and not old_format:
            return None
        found: Optional[Checkpoint] = self._attempt(self._read_checkpoint, None)
        return found

    def _read_checkpoint(self) -> Checkpoint:
        from reference_impl.format.bundle.reader import BundleReader

        with BundleReader(self.model.checkpoint_prefix) as reader:
            self.entries = reader.entries()
            if OBJECT_GRAPH_KEY in self.entries:
                self.tracked = self._attempt(reader.object_graph, None)
            self._attempt(reader.check_places, None)
            return Checkpoint(
                len(self.entries),
                reader.num_shards,
                sum(stored_size(entry) or 0 for entry in self.entries.values()),
            )

    def _meta_graph(self, graph: schema.MetaGraphDef) -> MetaGraph:
        info = graph.meta_info_def
        view = GraphView(graph)
        self.problems.extend(_contradictions(view))
        plan: Optional[list[Restored]] = self._attempt(
            lambda: restore_plan(graph, str(self.model.file), view), None
        )
        additional = self._attempt(lambda: extension.read(graph, str(self.model.file)), None)
        saved = extension.object_graph(graph, additional)
        paths = Paths(saved.nodes)
        keys = checkpoint_keys(saved, self.tracked) if self.tracked is not None else {}
        if graph.HasField("object_graph_def"):
            variables = object_variables(saved, paths, keys, plan or (), self.entries)
        else:
            variables = graph_variables(view, plan or (), self.entries)
        self._check_stored(variables, plan or ())
        definitions = library_functions(view)
        assets = self._attempt(lambda: self.model.asset_definitions(graph), ())
        return MetaGraph(
            tags=layout.tags_of(graph),
            tensorflow_version=info.tensorflow_version,
            tensorflow_git_version=info.tensorflow_git_version,
            meta_graph_version=info.meta_graph_version,
            producer=graph.graph_def.versions.producer,
            min_consumer=graph.graph_def.versions.min_consumer,
            bad_consumers=tuple(graph.graph_def.versions.bad_consumers),
            stripped_default_attrs=info.stripped_default_attrs,
            has_object_graph=graph.HasField("object_graph_def"),
            nodes=len(view.main.names),
            sizes=sizes(view, definitions),
            signatures=signatures(graph),
            objects=objects(saved, paths, keys, additional),
            functions=functions(saved, view.library, paths),
            function_aliases=dict(sorted(info.function_aliases.items())),
            library=definitions,
            variables=variables,
            assets=self._assets(assets),
            init_ops=init_ops(graph),
            saver=_saver(graph, plan),
            effects=effects(view, saved, assets, paths),
            ops=op_counts(view),
            programs=programs(view),
            collections=tuple(
                [
                    _collection(key, graph.collection_def[key])
                    for key in sorted(graph.collection_def)
                ]
            ),
        )

    def _check_stored(self, variables: Iterable[Variable], plan: Iterable[Restored]) -> None:
        """Record the values that a loader needs and the checkpoint lacks."""
        wanted = dict.fromkeys(
            [item.key for item in plan] + [item.key for item in variables if item.key is not None]
        )
        missing = [key for key in wanted if key not in self.entries]
        if missing:
            shown = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
            where = "the checkpoint has" if self.entries else "there is no readable checkpoint, so"
            self.problems.append(
                f"{where} no value for {len(missing)} of {len(wanted)} keys: {shown}"
            )

    def _assets(self, definitions: Sequence[schema.AssetFileDef]) -> tuple[Asset, ...]:
        found = []
        for definition in definitions:
            name, size, status = definition.filename, None, "missing"
            try:
                self.model.asset_path(name)
                size = (
                    self._file_size(f"{layout.ASSETS}/{name}")
                    if self.model.root.exists(f"{layout.ASSETS}/{name}")
                    else None
                )
                status = "missing" if size is None else "present"
            except (errors.FileAccessError, errors.PathEscapeError) as error:
                self.problems.append(f"{type(error).__name__}: {files.shown(str(error))}")
                status = "escapes" if isinstance(error, errors.PathEscapeError) else "unreadable"
            if status == "missing":
                self.problems.append(f"the asset {name} is missing")
            found.append(Asset(name, definition.tensor_info.name, size, status))
        return tuple(found)


def _saver(graph: schema.MetaGraphDef, plan: Optional[list[Restored]]) -> Optional[Saver]:
    if not graph.HasField("saver_def"):
        return None
    saver = graph.saver_def
    versions = schema.SaverDef.CheckpointFormatVersion
    version = (
        versions.Name(saver.version) if saver.version in versions.values() else str(saver.version)
    )
    return Saver(
        saver.filename_tensor_name,
        saver.save_tensor_name,
        saver.restore_op_name,
        version,
        saver.sharded,
        None if plan is None else len(plan),
    )


def _collection(key: str, collection: schema.CollectionDef) -> CollectionInfo:
    kind = collection.WhichOneof("kind")
    return CollectionInfo(key, kind or "none", len(getattr(collection, kind).value) if kind else 0)


def _contradictions(view: GraphView) -> Iterator[str]:
    """Yield one sentence for each kind of contradiction in a MetaGraph."""
    objects = view.proto.object_graph_def
    yield from _twice("nodes", view.main.names)
    yield from _twice(
        "functions", (function.signature.name for function in view.proto.graph_def.library.function)
    )
    count = len(objects.nodes)
    lost = [
        f"object {number} refers to object {other} of {count}"
        for number, _, other in dangling(objects)
    ]
    if lost:
        yield errors.listed(lost, 1)
    damaged = list(_damaged_constants(view))
    if damaged:
        yield errors.listed(damaged, 1)


def _damaged_constants(view: GraphView) -> Iterator[str]:
    for number, item in enumerate(view.proto.object_graph_def.nodes):
        node = view.main.by_name.get(item.constant.operation) if item.HasField("constant") else None
        if node is not None and "value" in node.attr:
            try:
                tensor_proto.check(node.attr["value"].tensor)
            except errors.SavedModelError as error:
                yield f"the constant of object {number} ({node.name}): {error.reason}"


def _same_tags(saved_model: schema.SavedModel) -> Iterator[str]:
    """Yield one sentence if several MetaGraphs have the same tags, so that tags cannot choose one
    of them.

    RFC: V1-05
    """
    tags = (", ".join(layout.tags_of(graph)) for graph in saved_model.meta_graphs)
    yield from _twice("MetaGraphs", tags, "have the tags")


def _twice(what: str, names: Iterable[str], verb: str = "are called") -> Iterator[str]:
    found = repeated(names)
    if found:
        yield f"several {what} {verb} {errors.listed(map(repr, found), 3)}"
