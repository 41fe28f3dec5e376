"""The meaning of a model as plain data, level by level, read without TensorFlow.

    container    L0: the form of the message; tags, assets and names of each MetaGraph
    checkpoint   L1: each tensor with dtype, shape, bytes and SHA-256; None without a checkpoint
    objects      L2: for each MetaGraph its signatures and its object graph

A level that cannot be read is ``{"refused": reason}``. docs/format/kit.md describes every member.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.format.bundle.entry import Entry
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container import layout
from reference_impl.format.names import OBJECT_GRAPH_KEY, RESERVED_SIGNATURES
from reference_impl.graph import node_index, references
from reference_impl.views.signatures import signature_spec
from savedmodel_kit.objects import Part, objects_of

Json = dict[str, Any]
_LENGTH_BYTES = 8  # of the length before an element of a string or variant tensor


def meaning_of(folder: Path) -> Json:
    """Return the meaning of the model in a folder.

    Raises:
      SavedModelError: the container cannot be read.
    """
    model = layout.read(folder)
    container = _container(model)
    return {
        "container": container,
        "checkpoint": _or_refused(model, _checkpoint),
        "objects": _or_refused(model, _objects),
    }


def refusals(meaning: Json) -> Iterator[str]:
    """Yield the reasons of the levels that were refused."""
    for level in meaning.values():
        if isinstance(level, dict) and "refused" in level:
            yield level["refused"]


def _or_refused(model: layout.Layout, read: Callable[[layout.Layout], Any]) -> Any:
    """Return what `read` gives, or a refusal, which does not tell where the model is."""
    try:
        return read(model)
    except SavedModelError as error:
        return {"refused": str(error).replace(f"{model.directory}{os.sep}", "")}


def _container(model: layout.Layout) -> Json:
    graphs = [_meta_graph(model, graph) for graph in model.saved_model.meta_graphs]
    return {"form": model.file.name, "meta_graphs": graphs}


def _meta_graph(model: layout.Layout, graph: schema.MetaGraphDef) -> Json:
    file = str(model.file)
    node_index.Graph(graph.graph_def, file)
    references.check_functions(graph.graph_def.library, file)
    return {
        "tags": list(layout.tags_of(graph)),
        "assets": sorted({asset.filename for asset in model.assets(graph)}),
        "graph_nodes": len(graph.graph_def.node),
        "functions": sorted({one.signature.name for one in graph.graph_def.library.function}),
        "signatures": sorted(key for key in graph.signature_def if key not in RESERVED_SIGNATURES),
    }


# L1


def _checkpoint(model: layout.Layout) -> Any:
    if not model.has_checkpoint and not model.root.exists(layout.CHECKPOINT):
        return None
    with BundleReader(model.checkpoint_prefix) as reader:
        reader.verify_all()
        return {"tensors": [_tensor(reader, key) for key in sorted(reader.entries())]}


def _tensor(reader: BundleReader, key: str) -> Json:
    entry = reader.entry(key)
    content = _content(reader, key)
    return {
        "key": key,
        "dtype": entry.dtype.name,
        "shape": list(entry.shape),
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _content(reader: BundleReader, key: str) -> bytes:
    """Return the elements of a tensor as bytes: numbers little-endian, in row-major order; strings
    and variants each with its length before it, a 64-bit little-endian integer.
    """
    array = reader.read(key)
    if array.dtype != object:
        return bytes(array.tobytes())
    items = array.ravel().tolist()
    return b"".join(len(item).to_bytes(_LENGTH_BYTES, "little") + item for item in items)


# L2


def _objects(model: layout.Layout) -> list[Json]:
    graphs = model.saved_model.meta_graphs
    if not model.has_checkpoint:
        return [_described(model, graph, {}, None) for graph in graphs]
    with BundleReader(model.checkpoint_prefix) as reader:
        entries = reader.entries()
        tracked = reader.object_graph() if OBJECT_GRAPH_KEY in entries else None
        return [_described(model, graph, entries, tracked) for graph in graphs]


def _described(
    model: layout.Layout,
    graph: schema.MetaGraphDef,
    entries: Mapping[str, Entry],
    tracked: Optional[schema.TrackableObjectGraph],
) -> Json:
    assets = [asset.filename for asset in model.assets(graph)]
    part = Part(str(model.file), graph, assets, entries, tracked)
    return {
        "tags": list(layout.tags_of(graph)),
        "signatures": signature_spec(graph),
        "objects": objects_of(part),
    }


def main(arguments: Sequence[str]) -> int:
    """Print the meaning of the model in a folder, as the protocol of the kit wants it.

    This is `reference_impl` as a reader of the kit::

        python -m savedmodel_kit.meaning fixtures_v1/half_plus_two/model
    """
    try:
        json.dump(meaning_of(Path(arguments[0])), sys.stdout)
    except SavedModelError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
