"""The canonical form of a SavedModel and its content hash.

Two exports of one model have the same hash, whatever their generated names, the order of nodes and maps, the numbering of
objects, the shards of the checkpoint. A different weight, op, attribute, edge, signature, asset, collection, tag or
trainable flag gives a different hash (GOAL-13).

Not part of it: the TensorFlow that wrote the file (``produced_by`` tells), fingerprint.pb, debug info, and names that only
count something. Names that people use (signatures, attributes of objects, checkpoint keys, in TF 1.x also nodes) are part.

    >>> canonical("export/1").hash == canonical("export/2").hash
    >>> for difference in canonical("export/1").diff(canonical("export/2")): print(difference)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

from compat_matrix.canonical.files import assets_of, variables_of
from compat_matrix.canonical.graph import digest
from compat_matrix.canonical.meta_graph import GRAPH_SECTIONS, CanonicalMetaGraph
from compat_matrix.canonical.objects import Fields, entries_hash
from reference_impl.format.container import files, layout
from reference_impl.graph.references import check_functions

FORM = b"1"  # counts changes of the form; hashes of different forms must not be compared

MODEL_SECTIONS = ("variables", "assets")


class Difference(NamedTuple):
    """One difference between two SavedModels: the section, where in it, and what."""

    section: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.section}: {self.where}: {self.what}"


@dataclass(frozen=True)
class Canonical:
    """What :func:`canonical` found.

    Attributes:
      hash: SHA-256 over everything, in hexadecimal.
      sections: the same over each of MODEL_SECTIONS and, all MetaGraphs together, GRAPH_SECTIONS.
      meta_graphs: the parts of each MetaGraph, sorted by tags.
      variables, assets: entries of the model's own sections.
      produced_by: TensorFlow version, git version and GraphDef producer of each MetaGraph; not part of the hash.
    """

    hash: str
    sections: dict[str, str]
    meta_graphs: tuple[CanonicalMetaGraph, ...]
    variables: dict[str, Fields]
    assets: dict[str, Fields]
    produced_by: tuple[tuple[str, str, int], ...]

    def diff(self, other: Canonical, limit: int = 10) -> list[Difference]:
        """The first differences, at most ``limit`` per section; empty exactly when the hashes are equal."""
        from compat_matrix.canonical.diff import diff

        return diff(self, other, limit)

    def to_json(self) -> dict[str, Any]:
        """Hashes by section, and by MetaGraph and section."""
        return {
            "form": int(FORM),
            "hash": self.hash,
            "sections": self.sections,
            "meta_graphs": [{"tags": list(item.tags), "sections": item.sections} for item in self.meta_graphs],
            "produced_by": [
                {"tensorflow_version": version, "tensorflow_git_version": git, "producer": producer}
                for version, git, producer in self.produced_by
            ],
        }


def canonical(path: files.AnyPath, *, ignore_defaults: bool = True, follow_links: bool = False) -> Canonical:
    """Bring a SavedModel into its canonical form. Weights are read memory-mapped, one at a time.

    Args:
      path: its directory, or a saved_model.* file.
      ignore_defaults: an attribute that holds its default counts as absent, for ops whose OpDef the file carries
        (``stripped_op_list``). An export that strips defaults and one that does not are then equal, as far as all their ops
        are listed.
      follow_links: accept symbolic links that lead out of the directory.

    Raises:
      SavedModelError: a part cannot be read, is damaged, or contradicts itself (DuplicateKeyError: two nodes or two functions of
        one name).
    """
    model = layout.read(path, follow_links=follow_links)
    return assemble(meta_graphs_of(model, ignore_defaults), variables_of(model), assets_of(model))


def meta_graphs_of(
    model: layout.Layout, ignore_defaults: bool = True, known: Optional[dict[bytes, bytes]] = None
) -> list[CanonicalMetaGraph]:
    """The canonical form of each MetaGraph, sorted. Raises SavedModelError, as `canonical`.

    ``known``, if given, is filled with what is found out about functions, and saves time with another model that has them.
    """
    known = {} if known is None else known
    for graph in model.saved_model.meta_graphs:
        check_functions(graph.graph_def.library, str(model.file))
    graphs = [CanonicalMetaGraph(model, graph, ignore_defaults, known) for graph in model.saved_model.meta_graphs]
    if len({graph.tags for graph in graphs}) == len(graphs):
        return sorted(graphs, key=lambda item: item.tags)
    return sorted(graphs, key=lambda item: (item.tags, sorted(item.sections.items())))


def assemble(graphs: Sequence[CanonicalMetaGraph], variables: dict[str, Fields], assets: dict[str, Fields]) -> Canonical:
    """The whole of its parts: `meta_graphs_of`, and what `variables_of` and `assets_of` found."""
    sections = {name: digest(*[bytes.fromhex(graph.sections[name]) for graph in graphs]).hex() for name in GRAPH_SECTIONS}
    sections["variables"], sections["assets"] = entries_hash(variables), entries_hash(assets)
    whole = digest(FORM, *[f"{name} {value}".encode() for name, value in sorted(sections.items())]).hex()
    return Canonical(whole, sections, tuple(graphs), variables, assets, tuple([graph.produced_by for graph in graphs]))
