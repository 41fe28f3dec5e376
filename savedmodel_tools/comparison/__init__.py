"""Compare two SavedModels, without TensorFlow: structure by the canonical form, weights by their
numbers (GOAL-13).

>>> result = diff("export/1", "export/2")
>>> result.verdict, [change.what for change in result.changes]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from savedmodel_tools.comparison.model import (
    SECTIONS,
    Change,
    Options,
    Side,
    Weights,
)
from savedmodel_tools.comparison.result import ModelDiff

if TYPE_CHECKING:
    from pathlib import Path

    from reference_impl.format.container import files, layout
    from savedmodel_tools.canonical.form import Canonical
    from savedmodel_tools.canonical.meta_graph import CanonicalMetaGraph
    from savedmodel_tools.canonical.objects import Fields

__all__ = ["SECTIONS", "Change", "ModelDiff", "Options", "diff", "form_changes"]

_EVERYTHING = Options()
_DERIVED = ("ops", "metadata")  # count where nothing else is asked for


def diff(first: files.AnyPath, second: files.AnyPath, options: Options = _EVERYTHING) -> ModelDiff:
    """Compare two models; memory for one piece of a tensor, whatever the tensors' sizes.

    Without options the answer is ``equal`` exactly when their content hashes are.

    Args:
      first, second: directories, or saved_model.* files.
      options: what to compare, and how exactly.

    Raises:
      SavedModelError: one of them cannot be read, is damaged, or contradicts itself.
    """
    from reference_impl.format.container import layout
    from savedmodel_tools.canonical.files import assets_of
    from savedmodel_tools.canonical.form import assemble, meta_graphs_of
    from savedmodel_tools.comparison.beside import asset_changes, metadata_changes

    models = [layout.read(path, follow_links=options.follow_links) for path in (first, second)]
    wanted = set(options.sections)
    found: list[Change] = []
    graphs: list[list[CanonicalMetaGraph]] = [[], []]
    if wanted & {"meta", "signatures", "functions", "graph", "ops", "objects", "collections"}:
        known: dict[bytes, bytes] = {}
        graphs[0] = meta_graphs_of(models[0], known=known)
        same = _same_bytes(models[0].file, models[1].file)
        graphs[1] = graphs[0] if same else meta_graphs_of(models[1], known=known)
        if not same:
            found += _meta_graphs(graphs[0], graphs[1])
    assets = [assets_of(model) if "assets" in wanted else {} for model in models]
    found += asset_changes(assets[0], assets[1], (models[0], models[1]))
    if "metadata" in wanted:
        found += metadata_changes(models[0], models[1])
    # Where a difference is already known, the hash would only confirm it, and takes longer than all
    # the rest.
    needed = options.whole and (options.hashes or not any(change.counts for change in found))
    variables: tuple[dict[str, Fields], dict[str, Fields]] = ({}, {})
    weights = Weights()
    if "variables" in wanted:
        from savedmodel_tools.comparison.weights import compare as compare_weights

        checkpoints = compare_weights(models[0], models[1], options, needed)
        variables, weights = (checkpoints.first, checkpoints.second), checkpoints.weights
        found += checkpoints.changes
        needed = checkpoints.hashed and (
            options.hashes or not any(change.counts for change in checkpoints.changes)
        )
    hashes = [assemble(*parts).hash if needed else None for parts in zip(graphs, variables, assets)]
    sides = [
        Side(str(model.directory), value, _produced_by(model))
        for model, value in zip(models, hashes)
    ]
    return ModelDiff(sides[0], sides[1], options, tuple(_asked(found, wanted)), weights)


def _same_bytes(one: Path, other: Path) -> bool:
    """Return whether two files have the same format and content."""
    return (
        one.suffix == other.suffix
        and one.stat().st_size == other.stat().st_size
        and one.read_bytes() == other.read_bytes()
    )


def _asked(found: list[Change], wanted: set[str]) -> Iterator[Change]:
    """Return the changes of the requested sections, in the order of SECTIONS."""
    alone = wanted <= set(_DERIVED)
    for change in sorted(found, key=lambda change: SECTIONS.index(change.section)):
        if change.section in wanted:
            if alone and not change.counts:
                change = change._replace(counts=True)
            yield change


def form_changes(first: Canonical, second: Canonical) -> Iterator[Change]:
    """Yield the changes of two canonical forms.

    Variables and assets are compared by their hashes.
    """
    from savedmodel_tools.canonical.form import MODEL_SECTIONS
    from savedmodel_tools.comparison.entries import field_changes

    yield from _meta_graphs(first.meta_graphs, second.meta_graphs)
    for section in MODEL_SECTIONS:
        yield from field_changes(section, (), getattr(first, section), getattr(second, section))


def _meta_graphs(
    one: Sequence[CanonicalMetaGraph], other: Sequence[CanonicalMetaGraph]
) -> Iterator[Change]:
    """MetaGraphs by tags. One on either side is compared whatever its tags."""
    from reference_impl.format.container.layout import tags_text
    from savedmodel_tools.comparison.graphs import compare

    if len(one) == len(other) == 1:
        yield from compare((), one[0], other[0])
        return
    mine, yours = _by_tags(one), _by_tags(other)
    for tags in sorted(mine.keys() | yours.keys()):
        where = (f"MetaGraph {tags_text(tags[0])}",)
        if tags not in yours:
            yield Change("meta", "removed", where, "is gone")
        elif tags not in mine:
            yield Change("meta", "added", where, "is new")
        else:
            yield from compare(where, mine[tags], yours[tags])


def _by_tags(
    graphs: Sequence[CanonicalMetaGraph],
) -> dict[tuple[tuple[str, ...], int], CanonicalMetaGraph]:
    """Return the MetaGraphs by tags; MetaGraphs with equal tags are told apart by their
    position.
    """
    found: dict[tuple[tuple[str, ...], int], CanonicalMetaGraph] = {}
    for graph in graphs:
        found[graph.tags, sum(tags == graph.tags for tags, _ in found)] = graph
    return found


def _produced_by(model: layout.Layout) -> tuple[str, ...]:
    versions = [graph.meta_info_def.tensorflow_version for graph in model.saved_model.meta_graphs]
    return tuple(dict.fromkeys(version for version in versions if version))
