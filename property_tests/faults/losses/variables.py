"""What variables are: flags, names, shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from property_tests.faults.losses.registry import each, loss, set_field
from reference_impl.format import schema


def variables(graph: Any) -> list[Any]:
    return [
        node.variable
        for node in graph.object_graph_def.nodes
        if node.WhichOneof("kind") == "variable"
    ]


@loss
def trainable(graph: Any, model: Path) -> bool:
    """Every variable is trained."""
    return each(variables(graph), lambda variable: set_field(variable, "trainable", True))


@loss
def aggregation(graph: Any, model: Path) -> bool:
    """How replicas are aggregated is forgotten."""
    return each(variables(graph), lambda variable: set_field(variable, "aggregation", 0))


@loss
def synchronization(graph: Any, model: Path) -> bool:
    """When replicas are synchronised is forgotten."""
    return each(variables(graph), lambda variable: set_field(variable, "synchronization", 0))


@loss
def variable_names(graph: Any, model: Path) -> bool:
    """Variables get a name of the loader's."""
    return each(variables(graph), lambda variable: set_field(variable, "name", "lost"))


@loss
def open_shapes(graph: Any, model: Path) -> bool:
    """Unknown dimensions become 1, an unknown rank that of a vector."""

    def change(variable: Any) -> bool:
        unknown = variable.shape.unknown_rank or any(dim.size < 0 for dim in variable.shape.dim)
        if variable.shape.unknown_rank:
            variable.shape.unknown_rank = False
            variable.shape.dim.add(size=1)
        for dim in variable.shape.dim:
            dim.size = abs(dim.size)
        return bool(unknown)

    return each(variables(graph), change)


@loss
def variable_dtypes(graph: Any, model: Path) -> bool:
    """Variables are of dtype double, and their values in the checkpoint are not."""
    return each(variables(graph), lambda variable: set_field(variable, "dtype", schema.DT_DOUBLE))
