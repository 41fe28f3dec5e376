"""The extension message, kept in a collection that shipped readers ignore (INIT-*, OPT-*, REV-04).

The message `Extension` (schema/proto/extension.proto), in base64, is the only item of the
collection ``savedmodel_compat.extension``. Other places were tried with the readers of TensorFlow
2.4, 2.12 and 2.21: ``meta_info_def.any_info`` makes json_format fail on the MetaGraph, as does an
Any in a collection; raw bytes make the v1 loader fail under an ``import_scope``; text in a
collection does neither.

The functions that the message names are in the ordinary function library, and its variables are
nodes of the ordinary object graph. A reader that ignores the message loses nothing that the shipped
format has. A v1 program that saves its graph again copies the collection without the object graph;
such a message is not read.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import warnings
from collections.abc import Iterator
from typing import Any, Optional

from reference_impl.format import schema
from reference_impl.format.errors import MalformedError

KEY = "savedmodel_compat.extension"
VERSION = 1  # of the message; raise MIN_CONSUMER too if older readers would misunderstand it
MIN_CONSUMER = 1


def read(meta_graph: schema.MetaGraphDef, file: str = "") -> Optional[schema.Extension]:
    """Return the extension of a MetaGraph with an object graph, or None if it has none.

    An extension that needs a newer version of this package is ignored with a warning. Raises
    MalformedError: the collection does not hold such a message, or names nodes or functions that do
    not exist.
    """
    if KEY not in meta_graph.collection_def or not meta_graph.HasField("object_graph_def"):
        return None
    values = meta_graph.collection_def[KEY].bytes_list.value
    try:
        (text,) = values
        data = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise MalformedError(
            "not one string in base64", file=file, node=f"collection {KEY}"
        ) from None
    extension = schema.parse(schema.Extension, data, file=file, node=f"collection {KEY}")
    if extension.min_consumer > VERSION:
        what = (
            f"{file}: what it says beyond TensorFlow's format is for readers of version"
            f" {extension.min_consumer}"
        )
        warnings.warn(f"{what}; this one knows version {VERSION} and leaves it out", stacklevel=2)
        return None
    for fault in _faults(extension, meta_graph):
        raise MalformedError(fault, file=file, node=f"collection {KEY}")
    return extension


def write(meta_graph: schema.MetaGraphDef, extension: schema.Extension) -> None:
    """Put the extension into a MetaGraph, unless the extension is empty."""
    if extension.registered or extension.initial_values or extension.optimizers:
        extension.producer, extension.min_consumer = VERSION, MIN_CONSUMER
        meta_graph.collection_def[KEY].bytes_list.value.append(
            base64.b64encode(schema.serialize(extension))
        )


def object_graph(
    meta_graph: schema.MetaGraphDef, extension: Optional[schema.Extension]
) -> schema.SavedObjectGraph:
    """Return the object graph with the slots of the extension added to those of shipped writers.

    The extension holds the slots of Keras 3, which are children of their optimizer. If they were
    stored like the slots of other optimizers, `tf.saved_model.load` and `tf.train.Checkpoint` would
    call methods that a Keras optimizer lacks.

    RFC: OPT-01
    """
    graph = meta_graph.object_graph_def
    if extension is None or not any(item.slots for item in extension.optimizers):
        return graph
    copy = schema.copy_of(graph)
    for item in extension.optimizers:
        node = copy.nodes[item.node_id]
        for slot in item.slots:
            proto = node.slot_variables.add(slot_name=slot.name)
            proto.original_variable_node_id, proto.slot_variable_node_id = slot.variable, slot.value
    return copy


def functions(extension: schema.Extension) -> list[Any]:
    """Return the messages that name a function with its inputs (initial values and updates), except
    functions of traces.
    """
    updates = (optimizer.updates for optimizer in extension.optimizers)
    return [*extension.initial_values, *itertools.chain.from_iterable(updates)]


def _faults(extension: schema.Extension, meta_graph: schema.MetaGraphDef) -> Iterator[str]:
    """Yield false statements of an extension about nodes and functions.

    Each check assumes that the earlier ones passed.
    """
    nodes = meta_graph.object_graph_def.nodes
    variables: list[int] = []
    for optimizer in extension.optimizers:
        variables += optimizer.shared
        for slot in optimizer.slots:
            variables += (slot.variable, slot.value)
    items: list[Any] = [*extension.registered, *extension.initial_values, *extension.optimizers]
    for item in functions(extension):
        items += item.inputs
    for number in [*(item.node_id for item in items), *variables]:
        if not 0 <= number < len(nodes):
            yield f"refers to node {number} of {len(nodes)}"
    known = {
        function.signature.name: function.signature
        for function in meta_graph.graph_def.library.function
    }
    for item in functions(extension):
        if item.function not in known:
            yield f"the library has no function {item.function!r}"
        elif len(known[item.function].input_arg) != len(item.inputs):
            count = len(known[item.function].input_arg)
            yield f"{item.function} takes {count} tensors, {len(item.inputs)} are described"
    for item in extension.initial_values:
        results = len(known[item.function].output_arg)
        if nodes[item.node_id].WhichOneof("kind") != "variable" or results != 1:
            yield (
                f"node {item.node_id} is not a variable, or {item.function} gives {results} tensors"
                " instead of one"
            )
    for number in variables:
        if nodes[number].WhichOneof("kind") != "variable":
            yield f"node {number} of an optimizer is not a variable"
