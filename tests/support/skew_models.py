"""Models made by hand, each with one op, attr, value or version that not every release knows; no
TensorFlow needed.

All take ``x: float32[2,2]`` and give ``y``. ``inner`` puts the node into a function called by a
function.
"""

import json
import shutil
from pathlib import Path

from model_edits import fixture, new_model, write

from reference_impl.format import schema
from reference_impl.format.bundle.table import TableReader
from reference_impl.format.container import layout
from reference_impl.format.values.dtypes import by_name
from savedmodel_kit.forge.tables import bundle

COMMITTED = (
    Path(__file__).parents[1] / "data" / "skew"
)  # saved_model.pb of models that TensorFlow 2.21 wrote

SQUARE = schema.TensorShapeProto(dim=[schema.TensorShapeProto.Dim(size=2)] * 2)


def attrs(node, **values):
    """Set attrs: types as ``"type:float32"``, functions as ``"func:f"``, lists of types as lists,
    plain values.
    """
    for key, value in values.items():
        slot = node.attr[key]
        if isinstance(value, list):
            slot.list.type.extend(by_name(item).number for item in value)
            slot.list.SetInParent()
        elif isinstance(value, bool):
            slot.b = value
        elif isinstance(value, int):
            slot.i = value
        elif isinstance(value, float):
            slot.f = value
        elif value.startswith("type:"):
            name = value[5:]
            slot.type = int(name) if name.isdecimal() else by_name(name).number
        elif value.startswith("func:"):
            slot.func.name = value[5:]
        elif value == "one shape":
            slot.list.shape.add().CopyFrom(SQUARE)
        elif value.startswith("strings:"):
            slot.list.s.extend(item.encode() for item in value[8:].split())
            slot.list.SetInParent()
        else:
            slot.s = value.encode()


def node(nodes, name, op, *inputs, **values):
    made = nodes.add(name=name, op=op, input=inputs)
    attrs(made, **values)
    return made


def model(
    folder,
    op,
    inputs=("x",),
    inner=False,
    producer=24,
    min_consumer=0,
    bad=(),
    dtype="float32",
    result="y",
    **values,
):
    """Write a model whose node ``victim`` is of type ``op``, with an output called ``result``.

    When ``inner``, it is inside the function ``inner_body``, which ``outer`` calls."""
    message, graph = new_model()
    versions = graph.graph_def.versions
    versions.producer, versions.min_consumer = producer, min_consumer
    versions.bad_consumers.extend(bad)
    graph.meta_info_def.tensorflow_version = "1.4.1"
    nodes = graph.graph_def.node
    node(nodes, "x", "Placeholder", dtype=f"type:{dtype}").attr["shape"].shape.dim.extend(
        SQUARE.dim
    )
    if inner:
        call = {"Tin": [dtype], "Tout": [dtype]}
        node(nodes, "y", "PartitionedCall", "x", f="func:outer", **call)
        body = _function(graph, "inner_body", dtype, f"victim:{result}:0")
        node(body, "victim", op, *inputs, **values)
        node(
            _function(graph, "outer", dtype, "call:output:0"),
            "call",
            "PartitionedCall",
            "x",
            f="func:inner_body",
            **call,
        )
        output = "y:0"
    else:
        node(nodes, "victim", op, *inputs, **values)
        output = "victim:0"
    signature = graph.signature_def["serving_default"]
    signature.method_name = "tensorflow/serving/predict"
    _tensor(signature.inputs["x"], "x:0", dtype)
    _tensor(signature.outputs["y"], output, dtype)
    return write(message, folder)


def _function(graph, name, dtype, result):
    function = graph.graph_def.library.function.add()
    function.signature.name = name
    for arguments, argument in (
        (function.signature.input_arg, "x"),
        (function.signature.output_arg, "y"),
    ):
        arguments.add(name=argument, type=by_name(dtype).number)
    function.ret["y"] = result
    return function.node_def


def add_function(folder, name, op, **values):
    """Put a function that nothing calls, with one node ``body``, into a model."""
    message = layout.read(folder).saved_model
    node(_function(message.meta_graphs[0], name, "float32", "body:y:0"), "body", op, "x", **values)
    write(message, folder)


def _tensor(info, name, dtype):
    info.name, info.dtype = name, by_name(dtype).number
    info.tensor_shape.CopyFrom(SQUARE)


MODELS = {
    "nobody_knows": {"op": "NoSuchOpAtAll", "T": "type:float32"},
    "newer_op": {"op": "BesselJ0", "T": "type:float32"},
    "newer_op_inner": {"op": "BesselJ0", "T": "type:float32", "inner": True},
    "newer_attr": {"op": "MatMul", "inputs": ("x", "x"), "T": "type:float32", "grad_a": False},
    "newer_attr_inner": {
        "op": "Cast",
        "inputs": ("x",),
        "SrcT": "type:float32",
        "DstT": "type:float32",
        "Truncate": True,
        "inner": True,
    },
    "newer_value": {
        "op": "BroadcastTo",
        "inputs": ("x", "x"),
        "T": "type:float32",
        "Tidx": "type:float32",
    },
    "no_kernel": {"op": "Neg", "T": "type:uint8", "dtype": "uint8"},
    "newer_type": {"op": "MatMul", "inputs": ("x", "x"), "T": "type:uint8", "dtype": "uint8"},
    "newer_dtype": {"op": "Identity", "T": "type:int4", "dtype": "int4"},
    "unknown_dtype": {"op": "Identity", "T": "type:77"},
    "min_consumer": {"op": "Relu", "T": "type:float32", "producer": 99999, "min_consumer": 99999},
    "bad_consumer": {
        "op": "Relu",
        "T": "type:float32",
        "bad": (24, 26, 27, 38, 134, 561, 1395, 1645, 1994, 2288, 2474),
    },
    "far_producer": {"op": "BesselJ0", "T": "type:float32", "producer": 99999},
    "deprecated": {
        "op": "BatchNormWithGlobalNormalization",
        "inputs": ("x",) * 5,
        "T": "type:float32",
        "variance_epsilon": 0.1,
        "scale_after_normalization": True,
    },
    "missing_attr": {"op": "Relu6"},
    "missing_attr_inner": {
        "op": "MatMul",
        "inputs": ("x", "x"),
        "inner": True,
        "result": "product",
    },
    "newer_attr_called": {
        "op": "MatMul",
        "inputs": ("x", "x"),
        "T": "type:float32",
        "grad_a": True,
        "inner": True,
        "result": "product",
    },
    "newer_type_called": {
        "op": "MatMul",
        "inputs": ("x", "x"),
        "T": "type:uint8",
        "dtype": "uint8",
        "inner": True,
        "result": "product",
    },
    "inputs": {"op": "Relu", "inputs": ("x", "x"), "T": "type:float32"},
    "far_inputs": {"op": "Relu", "inputs": ("x", "x"), "T": "type:float32", "producer": 99999},
    "changed_inputs": {"op": "CrossReplicaSum", "T": "type:float32"},
    "contrib": {"op": "Resampler", "inputs": ("x", "x"), "T": "type:float32"},
    "removed": {"op": "CompareAndBitpack", "inputs": ("x", "x"), "T": "type:float32"},
    "op_version": {
        "op": "XlaCallModule",
        "inputs": ("x",),
        "version": 99,
        "module": "",
        "Sout": "one shape",
        "Tin": ["float32"],
        "Tout": ["float32"],
        "dim_args_spec": "strings:",
        "platforms": "strings:CPU",
    },
    "addons": {"op": "Addons>GatherTree", "inputs": ("x",), "T": "type:float32"},
}


def newer_checkpoint(folder):
    """A fixture whose checkpoint asks for readers of version 99."""
    shutil.copytree(fixture("half_plus_two"), folder, dirs_exist_ok=True)
    index = folder / "variables" / "variables.index"
    entries = dict(TableReader(index.read_bytes(), index))
    head = schema.BundleHeaderProto.FromString(entries[b""])
    head.version.producer = head.version.min_consumer = 99
    data = index.with_name("variables.data-00000-of-00001").read_bytes()
    bundle(index.with_suffix(""), {key: value for key, value in entries.items() if key}, data, head)
    return folder


def made(name, folder):
    """The model of this name, below ``folder``: made by hand, or committed."""
    if name.startswith("fixture_"):
        return fixture(name[len("fixture_") :])
    if name.startswith("real_"):
        return (COMMITTED / name).with_suffix(".pb")
    return (
        newer_checkpoint(folder / name)
        if name == "newer_checkpoint"
        else model(folder / name, **MODELS[name])
    )


def recorded():
    """(consumer, model, step, error class, message, versions) of what genuine runtimes did; no
    message: they succeeded.
    """
    for line in (COMMITTED / "messages.jsonl").read_text(encoding="utf-8").splitlines():
        *words, versions = json.loads(line)
        yield (*words, tuple(versions))
