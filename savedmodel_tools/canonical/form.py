"""The canonical form of a SavedModel and its content hash.

Two exports of one model have the same hash, regardless of generated names, the order of nodes and
maps, the numbering of objects and the shards of the checkpoint. A different weight, op, attribute,
edge, signature, asset, collection, tag or trainable flag gives a different hash (GOAL-13).

The hash ignores the TensorFlow that wrote the file (see ``produced_by``), fingerprint.pb, debug
info, and generated names. It includes names that people use: signatures, attributes of objects,
checkpoint keys, in TF 1.x also nodes.

    >>> canonical("export/1").hash == canonical("export/2").hash
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

from reference_impl.format.container import files, layout
from reference_impl.graph.references import check_functions
from savedmodel_tools.canonical.files import assets_of, variables_of
from savedmodel_tools.canonical.graph import digest
from savedmodel_tools.canonical.meta_graph import GRAPH_SECTIONS, CanonicalMetaGraph
from savedmodel_tools.canonical.objects import Fields, entries_hash

FORM = b"1"  # counts changes of the form; hashes of different forms must not be compared

MODEL_SECTIONS = ("variables", "assets")


@dataclass(frozen=True)
class Canonical:
    """The result of :func:`canonical`.

    Attributes:
      hash: SHA-256 over everything, in hexadecimal.
      sections: a hash of each of MODEL_SECTIONS and, over all MetaGraphs together, of each of
        GRAPH_SECTIONS.
      meta_graphs: the parts of each MetaGraph, sorted by tags.
      variables, assets: entries of the model's own sections.
      produced_by: TensorFlow version, git version and GraphDef producer of each MetaGraph; not part
        of the hash.
    """

    hash: str
    sections: dict[str, str]
    meta_graphs: tuple[CanonicalMetaGraph, ...]
    variables: dict[str, Fields]
    assets: dict[str, Fields]
    produced_by: tuple[tuple[str, str, int], ...]

    def to_json(self) -> dict[str, Any]:
        """Return the hashes by section, and by MetaGraph and section."""
        return {
            "form": int(FORM),
            "hash": self.hash,
            "sections": self.sections,
            "meta_graphs": [
                {"tags": list(item.tags), "sections": item.sections} for item in self.meta_graphs
            ],
            "produced_by": [
                {"tensorflow_version": version, "tensorflow_git_version": git, "producer": producer}
                for version, git, producer in self.produced_by
            ],
        }


def canonical(
    path: files.AnyPath,
    *,
    ignore_defaults: bool = True,
    follow_links: bool = False,
    known: Optional[dict[bytes, bytes]] = None,
) -> Canonical:
    """Bring a SavedModel into its canonical form.

    Weights are read memory-mapped, one at a time.

    Args:
      path: the directory of the model, or a saved_model.* file.
      ignore_defaults: treat an attribute that holds its default as absent, for ops whose OpDef is
          in the file (``stripped_op_list``). Then an export with defaults equals one without them,
          if all their ops are listed.
      follow_links: accept symbolic links that lead outside the directory.
      known: collects hashes of functions, if given, and saves time for other models with the same
        functions.

    Raises:
      SavedModelError: a part cannot be read, is damaged, or contradicts itself (DuplicateKeyError:
          two nodes or two functions share a name).
    """
    model = layout.read(path, follow_links=follow_links)
    graphs = meta_graphs_of(model, ignore_defaults, known)
    return assemble(graphs, variables_of(model), assets_of(model))


def meta_graphs_of(
    model: layout.Layout, ignore_defaults: bool = True, known: Optional[dict[bytes, bytes]] = None
) -> list[CanonicalMetaGraph]:
    """Return the canonical form of each MetaGraph, sorted.

    Raises SavedModelError, as `canonical` does.

    ``known``, if given, collects hashes of functions and saves time for another model with the same
    functions.
    """
    known = {} if known is None else known
    for graph in model.saved_model.meta_graphs:
        check_functions(graph.graph_def.library, str(model.file))
    graphs = [
        CanonicalMetaGraph(model, graph, ignore_defaults, known)
        for graph in model.saved_model.meta_graphs
    ]
    if len({graph.tags for graph in graphs}) == len(graphs):
        return sorted(graphs, key=lambda item: item.tags)
    return sorted(graphs, key=lambda item: (item.tags, sorted(item.sections.items())))


def assemble(
    graphs: Sequence[CanonicalMetaGraph], variables: dict[str, Fields], assets: dict[str, Fields]
) -> Canonical:
    """Assemble the canonical form from the results of `meta_graphs_of`, `variables_of` and
    `assets_of`.
    """
    sections = {}
    for name in GRAPH_SECTIONS:
        of_graphs = [bytes.fromhex(graph.sections[name]) for graph in graphs]
        sections[name] = digest(*of_graphs).hex()
    sections["variables"], sections["assets"] = entries_hash(variables), entries_hash(assets)
    whole = digest(
        FORM, *[f"{name} {value}".encode() for name, value in sorted(sections.items())]
    ).hex()
    return Canonical(
        whole,
        sections,
        tuple(graphs),
        variables,
        assets,
        tuple([graph.produced_by for graph in graphs]),
    )
