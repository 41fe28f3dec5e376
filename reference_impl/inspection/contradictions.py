"""What a SavedModel says twice, or of things that are not there: readers differ in what they make of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reference_impl.errors import listed
from reference_impl.format import schema
from reference_impl.graph.object_references import dangling
from reference_impl.graph.unique_names import repeated
from reference_impl.inspection.graph_view import GraphView


def contradictions(view: GraphView) -> Iterator[str]:
    """Yield one sentence for each kind of contradiction in a MetaGraph."""
    objects = view.proto.object_graph_def
    yield from _twice("nodes", view.main.names)
    yield from _twice("functions", (function.signature.name for function in view.proto.graph_def.library.function))
    count = len(objects.nodes)
    lost = [f"object {number} refers to object {other} of {count}" for number, _, other in dangling(objects)]
    if lost:
        yield listed(lost, 1)


def same_tags(saved_model: schema.SavedModel) -> Iterator[str]:
    """Yield one sentence when several MetaGraphs have the same tags: no tags choose one of them.

    RFC: V1-05
    """
    tags = (", ".join(sorted(set(graph.meta_info_def.tags))) for graph in saved_model.meta_graphs)
    yield from _twice("MetaGraphs", tags, "have the tags")


def _twice(what: str, names: Iterable[str], verb: str = "are called") -> Iterator[str]:
    found = repeated(names)
    if found:
        yield f"several {what} {verb} {listed(map(repr, found), 3)}"
