"""Old variable name -> key in the new checkpoint, from the object graph that the new checkpoint holds."""

from __future__ import annotations

from pathlib import Path

from compat_matrix.checks import oracle
from reference_impl.format import schema
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.names import OBJECT_GRAPH_KEY


def names_of(new: Path) -> dict[str, str]:
    """The map of one export; empty where nothing is stored."""
    prefix = oracle.layout_of(new).checkpoint_prefix
    if not prefix.with_name(prefix.name + ".index").exists():
        return {}
    with BundleReader(prefix) as bundle:
        if OBJECT_GRAPH_KEY not in bundle:
            return {}
        graph = schema.parse(schema.TrackableObjectGraph, bytes(bundle.read(OBJECT_GRAPH_KEY).item()))
    return {item.full_name: item.checkpoint_key for node in graph.nodes for item in node.attributes if item.full_name}
