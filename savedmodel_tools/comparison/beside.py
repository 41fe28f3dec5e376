"""Compare the files beside the MetaGraphs: assets, which are content, and versions, fingerprint and
others, which are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Optional

from reference_impl.format import schema
from reference_impl.format.container import files, layout
from savedmodel_tools.canonical.files import content_hash
from savedmodel_tools.canonical.objects import Fields
from savedmodel_tools.comparison.model import Change
from savedmodel_tools.comparison.signatures import renames

_FINGERPRINT = (
    "saved_model_checksum",
    "graph_def_program_hash",
    "signature_def_hash",
    "saved_object_graph_hash",
    "checkpoint_hash",
)


def asset_changes(
    one: Mapping[str, Fields],
    other: Mapping[str, Fields],
    models: tuple[layout.Layout, layout.Layout],
) -> Iterator[Change]:
    """Files of assets/ and assets.extra/ by their hashes."""
    renamed = renames(one, other)
    arrived = set(renamed.values())
    for name in sorted(one.keys() | other.keys()):
        before, after = [
            _asset(side.get(name), model, name) for side, model in zip((one, other), models)
        ]
        if name in renamed:
            yield Change(
                "assets", "renamed", (name,), f"is now {renamed[name]}", name, renamed[name]
            )
        elif name in arrived or one.get(name) == other.get(name):
            continue
        else:
            yield Change.between("assets", (name,), before, after)


def _asset(fields: Optional[Fields], model: layout.Layout, name: str) -> Optional[str]:
    if fields is None:
        return None
    if fields["content"] == "missing":
        return "missing"
    return f"{_size(model, name)} B, sha256 {fields['content'][:12]}"


def _size(model: layout.Layout, name: str) -> int:
    path = model.root.path(name)
    try:
        return int(path.stat().st_size)
    except OSError as error:
        raise files.access_error(error, path) from error


def metadata_changes(one: layout.Layout, other: layout.Layout) -> Iterator[Change]:
    """Facts about the two exports that do not make them different models.

    Never counts by itself.
    """
    mine, yours = _facts(one), _facts(other)
    for name in dict.fromkeys([*mine, *yours]):
        before, after = mine.get(name), yours.get(name)
        if before != after:
            yield Change.between("metadata", (name,), before, after, counts=False)


def _facts(model: layout.Layout) -> dict[str, str]:
    facts: dict[str, str] = {"file": model.file.name}
    graphs = model.saved_model.meta_graphs
    for graph in graphs:
        info = graph.meta_info_def
        prefix = f"{layout.tags_text(layout.tags_of(graph))}: " if len(graphs) > 1 else ""
        values: dict[str, Any] = {
            "TensorFlow": info.tensorflow_version,
            "TensorFlow git version": info.tensorflow_git_version,
            "GraphDef producer": graph.graph_def.versions.producer,
            "defaults stripped": info.stripped_default_attrs,
            "functions in the library": len(graph.graph_def.library.function),
        }
        facts.update({prefix + name: str(value) for name, value in values.items() if value != ""})
    fingerprint: Optional[schema.FingerprintDef] = model.fingerprint
    if fingerprint is not None:
        facts.update(
            {f"fingerprint {name}": str(getattr(fingerprint, name)) for name in _FINGERPRINT}
        )
        facts["fingerprint uuid"] = fingerprint.uuid
    known = (layout.ASSETS, layout.ASSETS_EXTRA, layout.VARIABLES)
    for name in model.names:
        folder = name.partition("/")[0]
        if folder == layout.VARIABLES:
            if ".data-" in name:
                facts["shards"] = str(int(facts.get("shards", "0")) + 1)
        elif folder not in known and name not in (model.file.name, layout.FINGERPRINT):
            facts[f"file {name}"] = (
                f"{_size(model, name)} B, sha256 {content_hash(model, name)[:12]}"
            )
    return facts
