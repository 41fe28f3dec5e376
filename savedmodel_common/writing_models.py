"""Tell the models that may write files, which a loader or a server may not open where their author
left them.
"""

from __future__ import annotations

from pathlib import Path

from reference_impl.errors import SavedModelError
from reference_impl.format.container import layout
from reference_impl.graph.graph_view import GraphView
from reference_impl.graph.object_graph import Paths
from reference_impl.safety.effects import effects
from reference_impl.safety.op_effects import WRITES


def may_write(directory: Path) -> bool:
    """Return whether something in a model writes files; False if the model cannot be read."""
    return bool(writes(directory))


def writes(directory: Path) -> bool | None:
    """Return whether something in a model writes files, or None if the model cannot be read.

    An answer depends only on the graphs.
    """
    try:
        found = layout.read(directory)
        for graph in found.saved_model.meta_graphs:
            objects = graph.object_graph_def
            acting = effects(
                GraphView(graph), objects, found.asset_definitions(graph), Paths(objects.nodes)
            )
            if any(effect.kind == WRITES for effect in acting):
                return True
    except SavedModelError:
        return None
    return False
