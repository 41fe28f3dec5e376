"""Steps that a watched load tells of any model, with or without an object graph: functions and
the checkpoint.

RFC: FN-05, RP-08
"""

from __future__ import annotations

import tensorflow as tf

from reference_impl.format.bundle.entry import Entry, index_file
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.values.shapes import shape_text
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.unknown_ops import is_unknown
from reference_impl.tracing import Watch


def tell_library(watch: Watch, library: FunctionLibrary) -> None:
    """Tell of each function that it is known, or which of its ops this TensorFlow lacks."""
    for name in library:
        nodes = library.get(name).node_def
        lacking = sorted({node.op for node in nodes if is_unknown(library, node)})
        if lacking:
            said = f"known; cannot be called: TensorFlow lacks {', '.join(lacking)}"
        else:
            said = f"known, nodes: {len(nodes)}; not registered yet"
        watch.tell("function", library.file, name, said, "DR-05" if lacking else "FN-05")


def tell_opened(watch: Watch, reader: BundleReader) -> None:
    """Tell that a checkpoint was opened, and how many values it has."""
    said = f"opened; values: {len(reader.keys())}, data files: {reader.num_shards}"
    watch.tell("checkpoint", index_file(reader.prefix), "", said, "RP-08")


def stored_text(key: str, entry: Entry) -> str:
    """Return a checkpoint key with the dtype and shape of its value."""
    return f"{key}  {entry.dtype.name}{shape_text(entry.shape)}"


def type_text(dtype: tf.DType, shape: tf.TensorShape) -> str:
    """Return ``float32[?,3]``."""
    return f"{dtype.name}{shape_text(None if shape.rank is None else tuple(shape.as_list()))}"
