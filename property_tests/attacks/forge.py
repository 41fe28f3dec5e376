"""Messages that attacks are made of."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, Optional

from reference_impl.format import schema
from reference_impl.format.bundle.checksum import masked_crc32c
from reference_impl.format.bundle.writer import BundleWriter

SEEDS = Path(__file__).parents[1] / "fuzz" / "seeds"


def model(*tags: str) -> Any:
    """A SavedModel with one empty MetaGraph."""
    message = schema.SavedModel(saved_model_schema_version=1)
    add_meta_graph(message, *(tags or ("serve",)))
    return message


def add_meta_graph(message: Any, *tags: str) -> Any:
    """One more MetaGraph."""
    graph = message.meta_graphs.add()
    graph.meta_info_def.tags.extend(tags)
    graph.meta_info_def.tensorflow_version = "2.21.0"
    graph.graph_def.versions.producer = 2000
    return graph


def seed(name: str) -> Any:
    """An export of a case."""
    return schema.parse(schema.SavedModel, (SEEDS / f"{name}.pb").read_bytes())


def write(folder: Path, message: Any) -> Path:
    """Put a model where a reader looks for it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "saved_model.pb").write_bytes(
        message if isinstance(message, bytes) else schema.serialize(message)
    )
    return folder


def checkpoint(folder: Path, **values: Any) -> None:
    """A sound checkpoint."""
    (folder / "variables").mkdir(parents=True, exist_ok=True)
    with BundleWriter(folder / "variables" / "variables") as writer:
        for key, value in values.items():
            writer.add(key, value)


def constant(graph: Any, name: str, text: bytes) -> str:
    """A string constant in a graph or a function; returns its name."""
    node = node_of(graph, name, "Const")
    node.attr["dtype"].type = schema.DT_STRING
    tensor = node.attr["value"].tensor
    tensor.dtype = schema.DT_STRING
    tensor.tensor_shape.SetInParent()
    tensor.string_val.append(text)
    return name


def node_of(graph: Any, name: str, op: str, *inputs: str) -> Any:
    """A node of a graph (`node`) or a function (`node_def`)."""
    return (graph.node if hasattr(graph, "node") else graph.node_def).add(
        name=name, op=op, input=inputs
    )


def numbers(body: Any, name: str, *values: int, scalar: bool = False) -> str:
    """A constant of int32; returns its name as an input."""
    node = node_of(body, name, "Const")
    value = node.attr["value"].tensor
    node.attr["dtype"].type = value.dtype = schema.DT_INT32
    value.tensor_shape.SetInParent()
    if not scalar:
        value.tensor_shape.dim.add(size=len(values))
    value.int_val.extend(values)
    return tensor(body, name)


def tensor(body: Any, name: str, port: str = "output") -> str:
    """The text of a tensor as an input, in a graph or in a function."""
    return name if hasattr(body, "node") else f"{name}:{port}:0"


def pack(graph: Any, claimed: int) -> str:
    """Add a Pack of two placeholders that says how many tensors it packs; return its name."""
    for name in ("claim/a", "claim/b"):
        node_of(graph, name, "Placeholder").attr["dtype"].type = schema.DT_FLOAT
    node = node_of(graph, "claim", "Pack", "claim/a", "claim/b")
    node.attr["T"].type, node.attr["N"].i = schema.DT_FLOAT, claimed
    return "claim"


def function(graph: Any, name: str, *calls: str) -> Any:
    """A function without arguments that calls others."""
    made = graph.graph_def.library.function.add()
    made.signature.name = name
    for number, called in enumerate(calls):
        call(node_of(made, f"call_{number}", "StatefulPartitionedCall"), called)
    return made


def call(node: Any, name: str) -> None:
    """Make a node a call of a function without arguments and results."""
    node.attr["f"].func.name = name
    node.attr["Tin"].list.SetInParent()
    node.attr["Tout"].list.SetInParent()


def signature(
    graph: Any, name: str = "serving_default", output: str = "x:0", kind: Optional[int] = None
) -> Any:
    """A signature with one output."""
    made = graph.signature_def[name]
    made.method_name = "tensorflow/serving/predict"
    made.outputs["y"].name = output
    made.outputs["y"].dtype = schema.DT_FLOAT if kind is None else kind
    made.outputs["y"].tensor_shape.SetInParent()
    return made


def variable(graph: Any, name: str, *shape: int) -> Any:
    """A variable below the root of the object graph."""
    nodes = graph.object_graph_def.nodes
    if not nodes:
        nodes.add().user_object.identifier = "_generic_user_object"
        nodes[0].user_object.version.producer = nodes[0].user_object.version.min_consumer = 1
    nodes[0].children.add(node_id=len(nodes), local_name=name)
    made = nodes.add().variable
    made.dtype, made.trainable, made.name = schema.DT_FLOAT, True, name
    for size in shape:
        made.shape.dim.add(size=size)
    return made


def object_checkpoint(folder: Path, message: Any) -> None:
    """A checkpoint without values for the objects of a model."""
    import numpy as np

    graph = schema.TrackableObjectGraph()
    for node in message.meta_graphs[0].object_graph_def.nodes:
        made = graph.nodes.add()
        for child in node.children:
            made.children.add(node_id=child.node_id, local_name=child.local_name)
    value = np.empty((), object)
    value[()] = schema.serialize(graph)
    checkpoint(folder, _CHECKPOINTABLE_OBJECT_GRAPH=value)


def warmup(folder: Path, *records: bytes) -> None:
    """Write requests that a model server answers while it loads a model: a TFRecord file."""
    (folder / "assets.extra").mkdir(exist_ok=True)
    with (folder / "assets.extra" / "tf_serving_warmup_requests").open("wb") as file:
        framed = {record: _framed(record) for record in set(records)}
        file.write(b"".join([framed[record] for record in records]))


def _framed(record: bytes) -> bytes:
    length = struct.pack("<Q", len(record))
    return (
        length
        + struct.pack("<I", masked_crc32c(length))
        + record
        + struct.pack("<I", masked_crc32c(record))
    )
