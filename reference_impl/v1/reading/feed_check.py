"""Tensors that cannot be fed: a session refuses those of a loop or a branch.

RFC: V1-11
"""

from __future__ import annotations

from reference_impl import errors
from reference_impl.graph.edges import Edge
from reference_impl.graph.node_index import Graph
from reference_impl.graph.op_table import OpTable, has_v1_flow
from reference_impl.v1.reading.control_flow.editable_function import EditableFunction
from reference_impl.v1.reading.control_flow.frames import inside_of_loops
from reference_impl.v1.reading.control_flow.functionalise import results_in_branches
from reference_impl.v1.reading.extract import extract


def check_feed(graph: Graph, ops: OpTable, hoisted: frozenset[str], ref: Edge) -> None:
    """Raise MalformedError if a tensor of a loop or a branch is fed."""
    if (
        ref.source not in graph
        or graph.nodes[ref.source].op.startswith("Placeholder")
        or ref.source in hoisted
    ):
        return
    try:
        reason = _why_not(graph, ops, hoisted, ref)
    except errors.SavedModelError:  # the inputs of a fed tensor are not needed
        return
    if reason:
        raise errors.MalformedError(reason, file=graph.file, node=ref.source, clause="V1-11")


def _why_not(graph: Graph, ops: OpTable, hoisted: frozenset[str], ref: Edge) -> str:
    """Return why a tensor cannot be fed, or ""."""
    cut = extract(graph, ops, "fed", [], {"fed": ref}, hoisted=hoisted, unfed=True).function
    if not has_v1_flow(cut):
        return ""
    if inside_of_loops(EditableFunction(cut, ops)):
        return (
            "cannot be fed, since it is inside of a while loop; feed what enters the loop or leaves"
            " it through an Exit"
        )
    if results_in_branches(cut, ops):
        return (
            "cannot be fed, since it is in one branch of a condition; feed what enters it or the"
            " Merge that ends it"
        )
    return ""
