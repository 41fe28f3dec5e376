"""The parts of a SavedModel outside its MetaGraphs, by content: the checkpoint and the assets."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reference_impl import errors
from reference_impl.format.bundle.entry import Entry
from reference_impl.format.container import files, layout
from reference_impl.format.container.files import open_regular
from reference_impl.format.names import OBJECT_GRAPH_KEY
from reference_impl.graph.references import all_nodes
from reference_impl.graph.restore_plan import restore_plan
from savedmodel_tools.canonical.objects import Fields, entries_hash, tracked_objects

if TYPE_CHECKING:
    from reference_impl.format.bundle.reader import BundleReader

_FILLS_TABLE = "LookupTableImport"  # how the names of such ops begin
_CHUNK = 1 << 24


def variables_of(model: layout.Layout) -> dict[str, Fields]:
    """Return dtype, shape and content of every tensor of the checkpoint.

    The rows of a table have no order.
    """
    from reference_impl.format.bundle.reader import BundleReader

    if not model.has_checkpoint:
        return {}
    tables = tables_of(model)
    with BundleReader(model.checkpoint_prefix) as reader:
        return {key: variable_fields(reader, key, tables) for key in reader.entries()}


def variable_fields(reader: BundleReader, key: str, tables: Mapping[str, str]) -> Fields:
    """Return the entry of :func:`variables_of` for one tensor.

    ``tables`` is :func:`tables_of` the model.
    """
    entry = reader.entry(key)
    if is_object_graph(key, entry):
        content = entries_hash(tracked_objects(reader.object_graph()))
    elif is_of_table(reader, key, tables):
        content = array_hash(reader.read(key)[row_order(reader.read(tables[key]))])
    elif entry.dtype.itemsize is None:
        content = array_hash(reader.read(key))
    else:
        from savedmodel_tools.canonical.tensor_pieces import pieces

        state = hashlib.sha256()
        for piece in pieces(reader, key):
            state.update(piece)
        content = state.hexdigest()
    return stored_fields(entry, content)


def stored_fields(entry: Entry, content: str) -> Fields:
    return {"dtype": entry.dtype.name, "shape": str(list(entry.shape)), "content": content}


def is_object_graph(key: str, entry: Entry) -> bool:
    """Return whether a tensor is the object graph of a checkpoint."""
    return key == OBJECT_GRAPH_KEY and not entry.shape and entry.dtype.name == "string"


def is_of_table(reader: BundleReader, key: str, tables: Mapping[str, str]) -> bool:
    """Return whether a tensor holds the rows of a table, whose order has no meaning."""
    if key not in tables or tables[key] not in reader:
        return False
    return bool(reader.entry(tables[key]).shape[:1] == reader.entry(key).shape[:1] != ())


def tables_of(model: layout.Layout) -> dict[str, str]:
    """Map each checkpoint key that fills a table to the checkpoint key that holds the table's
    keys.
    """
    found: dict[str, str] = {}
    for graph in model.saved_model.meta_graphs:
        ops = {node.op for node in all_nodes(graph.graph_def)}
        if not any(op.startswith(_FILLS_TABLE) for op in ops):
            continue  # following restored tensors takes longer
        fed: dict[str, list[str]] = {}
        for item in restore_plan(graph, str(model.file)):
            if item.by.startswith(_FILLS_TABLE):
                fed.setdefault(item.node, []).append(item.key)
        for keys in fed.values():
            found.update(dict.fromkeys(keys, keys[0]))
    return found


def row_order(keys: Any) -> list[int]:
    """Return the order that sorts the rows of an array by their bytes."""
    flat = keys.reshape(len(keys), math.prod(keys.shape[1:]))
    rows = [b"\0".join(row) if keys.dtype == object else row.tobytes() for row in flat]
    return sorted(range(len(rows)), key=rows.__getitem__)


def array_hash(array: Any) -> str:
    """Return the SHA-256 of an array's elements in row-major order; strings with their lengths."""
    state = hashlib.sha256()
    if array.dtype == object:
        for item in array.ravel():
            state.update(len(item).to_bytes(8, "little"))
            state.update(item)
        return state.hexdigest()
    import numpy as np

    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for start in range(0, raw.size, _CHUNK):
        state.update(raw[start : start + _CHUNK].data)
    return state.hexdigest()


def content_hash(model: layout.Layout, name: str) -> str:
    """Return the SHA-256 of a file of the model, in hexadecimal.

    Raises SavedModelError when it cannot be read or leads outside.
    """
    state, path = hashlib.sha256(), model.root.path(name)
    try:
        with open_regular(path) as file:
            while chunk := file.read(_CHUNK):
                state.update(chunk)
    except errors.SavedModelError:
        raise
    except OSError as error:
        raise files.access_error(error, path) from error
    return state.hexdigest()


def assets_of(model: layout.Layout) -> dict[str, Fields]:
    """Return the content of every file in assets/ and assets.extra/; a missing asset is marked as
    missing.
    """
    found: dict[str, Fields] = {}
    for folder in (layout.ASSETS, layout.ASSETS_EXTRA):
        for name in model.root.names(folder):
            found[f"{folder}/{name}"] = {"content": content_hash(model, f"{folder}/{name}")}
    for graph in model.saved_model.meta_graphs:
        for item in model.asset_definitions(graph):
            model.asset_path(item.filename)  # raises for a name that leads outside
            found.setdefault(f"{layout.ASSETS}/{item.filename}", {"content": "missing"})
    return found
