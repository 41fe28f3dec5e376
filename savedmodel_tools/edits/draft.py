"""A SavedModel that is being edited: read once, changed in memory, written to a new directory in
one step.
"""

from __future__ import annotations

import functools
import itertools
import os
from pathlib import Path
from typing import Any, Optional

from reference_impl.format import extension, schema
from reference_impl.format.bundle.reader import OBJECT_GRAPH_KEY, BundleReader
from reference_impl.format.container import files, layout
from reference_impl.graph.closure import reachable, reversed_edges
from reference_impl.graph.node_defs import strings_of_constant
from reference_impl.graph.references import FunctionIndex, check_functions
from savedmodel_tools.changed_copy import write_copy
from savedmodel_tools.edits.bundle_copy import copied_size, copy_bundle
from savedmodel_tools.edits.objects import Objects, check
from savedmodel_tools.edits.proof import (
    Computed,
    Facts,
    RefusedError,
    facts_of,
    faults,
    prove_files,
    prove_message,
)


class Draft:
    """A model and the edits made to it so far.

    Args:
      path: the source, which is only read.
      canonical: compare functions by their canonical form, not by their text (`proof.facts_of`).

    Raises SavedModelError: it cannot be read, or contradicts itself.
    """

    def __init__(
        self, path: files.AnyPath, *, follow_links: bool = False, canonical: bool = False
    ) -> None:
        self._read = functools.partial(layout.read, path, follow_links=follow_links)
        self.model = self._read()
        self.message = self.model.saved_model  # edits change it
        for graph in self.message.meta_graphs:
            check_functions(graph.graph_def.library, str(self.model.file))
        self.changes: list[str] = []  # what was done, one sentence each
        self.kept: list[str] = []  # requested changes that were not made, with the reasons
        self.dropped_keys: set[str] = set()  # of the checkpoint
        self.edited_functions: set[str] = (
            set()
        )  # new ones, and those that were changed (to restore less, for example)
        # Names of what is gone.
        self.removed: dict[str, list[str]] = {
            "objects": [],
            "keys": [],
            "nodes": [],
            "functions": [],
        }
        self._tracked: Optional[schema.TrackableObjectGraph] = None
        self._tracked_bytes = b""
        self._objects: dict[int, Objects] = {}
        self._keras: Optional[schema.KerasMetadata] = None
        self._known: Optional[dict[bytes, bytes]] = {} if canonical else None
        self.facts: list[Facts] = [
            facts_of(graph, self._known) for graph in self.message.meta_graphs
        ]
        # For each MetaGraph the computations and their names after all edits.
        self.signatures: list[dict[str, Computed]] = [
            dict(facts.signatures) for facts in self.facts
        ]
        self.size_before = sizes_of(self.message, self.model.root)

    @property
    def file(self) -> str:
        return str(self.model.file)

    def graph(self, tags: Optional[str]) -> tuple[int, schema.MetaGraphDef]:
        """The MetaGraph with these tags (separated by commas; None for the only one there is) and
        its position.
        """
        graph = self.model.meta_graph(
            None if tags is None else [tag.strip() for tag in tags.split(",") if tag.strip()]
        )
        return (
            next(index for index, item in enumerate(self.message.meta_graphs) if item is graph),
            graph,
        )

    @functools.cached_property
    def keys(self) -> list[str]:
        """The keys of the checkpoint."""
        if not self.model.has_checkpoint:
            return []
        with BundleReader(self.model.checkpoint_prefix) as reader:
            return reader.keys()

    def objects(self, index: int) -> Optional[Objects]:
        """The object graph of a MetaGraph; None in models of TF 1.x. Raises MalformedError."""
        graph = self.message.meta_graphs[index]
        if not graph.HasField("object_graph_def"):
            return None
        if index not in self._objects:
            tracked = self._read_tracked()
            check(graph.object_graph_def, tracked, self.file)
            if len(self.message.meta_graphs) > 1:
                # several MetaGraphs share one checkpoint: whose objects it has nobody says
                tracked = None
            self._objects[index] = Objects(
                graph.object_graph_def, tracked, extension.read(graph, self.file)
            )
        return self._objects[index]

    def _read_tracked(self) -> Optional[schema.TrackableObjectGraph]:
        if self._tracked is None and OBJECT_GRAPH_KEY in self.keys:
            with BundleReader(self.model.checkpoint_prefix) as reader:
                self._tracked_bytes = bytes(reader.read(OBJECT_GRAPH_KEY).item())
                self._tracked = reader.object_graph()
        return self._tracked

    def collect(self, index: int, everything: bool = False) -> tuple[dict[int, int], set[str]]:
        """Drop unreachable objects, and renumber the others wherever they are referred to.

        Returns as `Objects.collect`.
        """
        objects = self.objects(index)
        if objects is None:
            return {}, set()
        new, keys = objects.collect(everything)
        metadata = self._keras_metadata()
        if metadata is not None and any(old != number for old, number in new.items()) | (
            len(new) < len(self.facts[index].paths)
        ):
            nodes = [node for node in metadata.nodes if node.node_id in new]
            copy = schema.KerasMetadata()
            for node in nodes:
                kept = copy.nodes.add()
                kept.CopyFrom(node)
                kept.node_id = new[node.node_id]
            metadata.CopyFrom(copy)
        if objects.extension is not None:
            graph = self.message.meta_graphs[index]
            del graph.collection_def[extension.KEY]
            extension.write(graph, objects.extension)
        return new, keys & set(self.keys)

    def _keras_metadata(self) -> Optional[schema.KerasMetadata]:
        if self._keras is None and self.model.root.exists(layout.KERAS_METADATA):
            self._keras = schema.KerasMetadata(nodes=list(self.model.keras_metadata.values()))
        return self._keras

    def finish(self) -> None:
        """Update the checkpoint's object graph, and the constant from which the graph saves it.

        Raises as `prove_message`.
        """
        new = None if self._tracked is None else schema.serialize(self._tracked)
        if new is not None and new != schema.serialize(
            schema.parse(schema.TrackableObjectGraph, self._tracked_bytes)
        ):
            for graph in self.message.meta_graphs:
                _replace_constant(graph.graph_def.node, self._tracked_bytes, new)
                found = [
                    f
                    for f in graph.graph_def.library.function
                    if _replace_constant(f.node_def, self._tracked_bytes, new)
                ]
                self.edited_functions |= callers(
                    graph.graph_def.library, {function.signature.name for function in found}
                )
            self._new_tracked: Optional[bytes] = new
        else:
            self._new_tracked = None
        for index, before in enumerate(self.facts):
            faulty = functools.partial(lambda position: faults(self._read(), position), index)
            prove_message(
                self.model,
                index,
                before,
                self.signatures[index],
                self.edited_functions,
                faulty,
                self._known,
            )

    def write(self, out: files.AnyPath) -> None:
        """Write the model to a new directory and prove it there, before it gets its name.

        Raises RefusedError: the directory is the source or within it, or holds something;
        SavedModelError: what was written is not what it should be, and nothing is left behind.
        """
        target, source = Path(os.path.realpath(out)), Path(os.path.realpath(self.model.directory))
        if target == source or source in target.parents:
            raise RefusedError(
                "the output must not be the model itself or lie within it", file=target
            )
        if os.path.lexists(target) and not (target.is_dir() and not os.listdir(target)):  # noqa: PTH208
            raise RefusedError(
                "the output exists already; edits are written to a new directory", file=target
            )
        rewritten = bool(self._replaced or self.dropped_keys)
        write_copy(
            self.model,
            self.message,
            target,
            lambda stage: prove_files(self.model, stage, self.message, self.dropped_keys),
            checkpoint=self._write_checkpoint if rewritten else None,
            parts=(
                {}
                if self._keras is None
                else {layout.KERAS_METADATA: schema.serialize(self._keras)}
            ),
        )

    @property
    def _replaced(self) -> dict[str, bytes]:
        return {} if self._new_tracked is None else {OBJECT_GRAPH_KEY: self._new_tracked}

    def _write_checkpoint(self, prefix: Path) -> None:
        copy_bundle(self.model.checkpoint_prefix, prefix, self.dropped_keys, self._replaced)

    def sizes_after(self) -> dict[str, int]:
        """Return the result of :func:`sizes_of` for the model as it would be written."""
        found = sizes_of(self.message, None)
        found["checkpoint_bytes"] = self.size_before["checkpoint_bytes"]
        if self._replaced or self.dropped_keys:
            found["checkpoint_bytes"] = copied_size(
                self.model.checkpoint_prefix, self.dropped_keys, self._replaced
            )
        return found


def sizes_of(message: schema.SavedModel, root: Optional[files.Root]) -> dict[str, int]:
    """Return the counts and bytes of the parts of a model; without ``root`` not of its checkpoint.

    Raises FileAccessError.
    """
    graphs = message.meta_graphs
    functions = list(
        itertools.chain.from_iterable(graph.graph_def.library.function for graph in graphs)
    )
    found = {
        "graph_bytes": message.ByteSize(),
        "nodes": sum(len(graph.graph_def.node) for graph in graphs),
        "functions": len(functions),
        "function_nodes": sum(len(function.node_def) for function in functions),
        "objects": sum(len(graph.object_graph_def.nodes) for graph in graphs),
        "signatures": sum(len(graph.signature_def) for graph in graphs),
    }
    if root is not None:
        names = [
            f"{layout.VARIABLES}/{name}"
            for name in root.names(layout.VARIABLES)
            if name.startswith("variables.")
        ]
        found["checkpoint_bytes"] = sum(root.size(name) for name in names)
    return found


def callers(library: schema.FunctionDefLibrary, names: set[str]) -> set[str]:
    """Some functions, and all that call them."""
    return (
        set(reachable(sorted(names), reversed_edges(FunctionIndex(library).calls().items())))
        if names
        else set()
    )


def _replace_constant(nodes: Any, old: bytes, new: bytes) -> bool:
    """Give the Const nodes that hold only the string ``old`` another one; whether there are any."""
    found = [node.attr["value"].tensor for node in nodes if strings_of_constant(node, 2) == [old]]
    for tensor in found:
        tensor.ClearField("tensor_content")
        tensor.string_val[:] = [new]
    return bool(found)
