"""fingerprint.pb: whether the files that lie together were saved together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from compat_matrix.models.verify.findings import Fault, Severity, model_rule
from reference_impl import errors
from reference_impl.format import schema
from reference_impl.format.container import files, layout
from reference_impl.format.container.farmhash import fingerprint64
from reference_impl.format.container.fingerprint import object_graph_hash, program_hash

if TYPE_CHECKING:
    from compat_matrix.models.verify.model import Model

MAX_HASHED = 2**24  # bytes: FarmHash in Python takes seconds for more


@model_rule(
    "SMC107",
    "fingerprint-disagrees",
    Severity.WARNING,
    summary="fingerprint.pb does not belong to the graph or the checkpoint beside it.",
    why="Parts of two exports lie together (a copy or overwrite that broke off), or somebody edited one. New "
    "weights in an old graph answer without an error. Programs that identify models by the fingerprint take it for another.",
    fix="Copy or export the model again as a whole. After an edit on purpose: delete fingerprint.pb, no loader needs it.",
)
def fingerprint_disagrees(model: Model) -> Iterator[Fault]:
    """The three hashes that every TensorFlow since 2.11 computes the same way; the others have changed between releases."""
    stored = model.layout.fingerprint
    if stored is None:
        return
    graph = model.layout.saved_model.meta_graphs[0]
    wrong = []
    if stored.saved_object_graph_hash and stored.saved_object_graph_hash != object_graph_hash(graph.object_graph_def):
        wrong.append("the functions of the object graph")
    if (
        stored.graph_def_program_hash
        and _is_small(graph.graph_def.node)
        and program_hash(graph.graph_def) != stored.graph_def_program_hash
    ):
        wrong.append("the main graph")
    index = f"{layout.CHECKPOINT}.index"
    if stored.checkpoint_hash and model.layout.has_checkpoint:
        path, size = model.layout.root.path(index), model.layout.root.size(index)
        if size > MAX_HASHED:
            raise errors.LimitError(f"{size} bytes, limit {MAX_HASHED}", file=path, limit="MAX_HASHED")
        if fingerprint64(files.read(path, "SAVED_MODEL_BYTES")) != stored.checkpoint_hash:
            wrong.append("the checkpoint's index")
    if wrong:
        yield Fault(f"its hashes are not those of {' and '.join(wrong)}", file=layout.FINGERPRINT)


def _is_small(nodes: Iterable[schema.NodeDef]) -> bool:
    return sum(node.ByteSize() for node in nodes) <= MAX_HASHED
