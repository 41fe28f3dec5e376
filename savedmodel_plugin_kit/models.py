"""Models and tensors for questions to a plug-in, made without TensorFlow and with known answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from compat_matrix.cells.generators import fixtures_root
from compat_matrix.workers.signature_wire import DTYPES
from reference_impl.format import schema
from savedmodel_common import tensors
from savedmodel_common.tensors import CARRIERS, Tensor

NUMBERS = {name: number for number, name in DTYPES.items()}
PRODUCER = 27  # GraphDef version: Identity and Neg are older than any reader
FLOATS = {"float16": "uint16", "float32": "uint32", "float64": "uint64", "bfloat16": "uint16"}
# A quiet NaN with a payload, minus zero, infinity, the smallest number above zero, and one: bits of
# each width.
EDGES = {
    "float16": (0x7E2A, 0x8000, 0x7C00, 0x0001, 0x3C00, 0xFE01),
    "bfloat16": (0x7FEA, 0x8000, 0x7F80, 0x0001, 0x3F80, 0xFFC1),
    "float32": (0x7FC0BEEF, 0x80000000, 0x7F800000, 0x00000001, 0x3F800000, 0xFFC00001),
    "float64": (0x7FF800000000BEEF, 1 << 63, 0x7FF0 << 48, 1, 0x3FF0 << 48, 0xFFF8000000000001),
}
TEXTS = (
    b"plain",
    b"",
    b"nul\0inside",
    b"ends with nul\0",
    b"\xff\xfe no UTF-8 \xc3",
    "κόσμος".encode(),
    b"line\nfeed",
)
ASKED_DTYPES = (*(name for name in CARRIERS if name in NUMBERS), "string")


def half_plus_two() -> Path:
    """Return the committed artifact of ``y = x / 2 + 2`` with both numbers in variables, written by
    TensorFlow 1.15.
    """
    return fixtures_root() / "half_plus_two"


def functions() -> Path:
    """Return a committed artifact with requests for functions of the object graph."""
    return fixtures_root() / "module_functions"


def echo(directory: Path, dtype: str) -> Path:
    """Write a model with one signature, ``serving_default``: input ``x`` of any shape, output
    ``y``, the same tensor.
    """
    graph, model = _started()
    _signature(
        graph,
        "serving_default",
        {"x": _placeholder(graph, "x", dtype)},
        {"y": _op(graph, "y", "Identity", "x", dtype)},
    )
    return _saved(directory, model)


def plain(directory: Path) -> Path:
    """Write a model with one signature, ``serving_default``, and known shapes: input ``x`` of three
    numbers, output ``y``, their negatives.
    """
    graph, model = _started()
    x = _placeholder(graph, "x", "float32", (3,))
    _signature(
        graph, "serving_default", {"x": x}, {"y": _op(graph, "y", "Neg", "x", "float32", (3,))}
    )
    return _saved(directory, model)


def signs(directory: Path) -> Path:
    """Write a model with four signatures.

    ``same`` and ``negative`` differ only in their answer, ``crossed`` has two inputs whose outputs
    have swapped names, ``fixed`` has an input of shape [2, 3].
    """
    graph, model = _started()
    x = _placeholder(graph, "x", "float32")
    _signature(graph, "same", {"x": x}, {"y": _op(graph, "same", "Identity", "x", "float32")})
    _signature(graph, "negative", {"x": x}, {"y": _op(graph, "negative", "Neg", "x", "float32")})
    a, b = _placeholder(graph, "a", "float32"), _placeholder(graph, "b", "int32")
    outputs = {
        "a": _op(graph, "of_b", "Identity", "b", "int32"),
        "b": _op(graph, "of_a", "Identity", "a", "float32"),
    }
    _signature(graph, "crossed", {"a": a, "b": b}, outputs)
    shaped = _placeholder(graph, "shaped", "float32", (2, 3))
    _signature(
        graph,
        "fixed",
        {"x": shaped},
        {"y": _op(graph, "fixed", "Identity", "shaped", "float32", (2, 3))},
    )
    return _saved(directory, model)


def tensors_of(dtype: str) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors that an echo of ``dtype`` must keep, as (description, tensor)."""
    if dtype == "string":
        items = np.empty(len(TEXTS), dtype=object)
        items[:] = TEXTS
        yield "strings with NUL, invalid UTF-8, none at all", Tensor(dtype, items)
        yield "a string of shape []", Tensor(dtype, items[2:3].reshape(()))
        yield "strings of shape [2, 3]", Tensor(dtype, items[:6].reshape(2, 3))
        yield "strings of shape [0]", Tensor(dtype, items[:0])
        return
    values = _values(dtype)
    yield "values of shape [2, 3]", Tensor(dtype, np.resize(values, 6).reshape(2, 3))
    yield "a value of shape []", Tensor(dtype, np.asarray(values[:1].reshape(())))
    yield "values of shape [2, 0, 3]", Tensor(dtype, np.resize(values, 0).reshape(2, 0, 3))
    if dtype in EDGES:
        bits = np.array(EDGES[dtype], FLOATS[dtype]).view(CARRIERS[dtype])
        yield "NaN with a payload, -0.0, infinity, the smallest number", Tensor(dtype, bits)
    elif np.dtype(CARRIERS[dtype]).kind in "iu" and not dtype.startswith(
        ("int4", "int2", "uint4", "uint2", "float")
    ):
        info = np.iinfo(CARRIERS[dtype])
        yield (
            "the least and the greatest number",
            Tensor(dtype, np.array([info.min, info.max], CARRIERS[dtype])),
        )


def _values(dtype: str) -> Any:
    carrier = np.dtype(CARRIERS[dtype])
    if dtype == "bfloat16":
        return np.array([0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0, 0x40C0], carrier)
    if dtype in ("int2", "uint2"):
        return np.array([0, 1], carrier)
    if carrier.kind == "c":
        return np.array([1 + 2j, 3 - 4j, -5j, 6, 7j, 8], carrier)
    return np.array([1, 0, 1, 1, 0, 0] if dtype == "bool" else [1, 2, 3, 4, 5, 6], carrier)


def large(mebibytes: int) -> Tensor:
    """Return a float32 tensor of this size whose bytes compress badly: a reader may treat
    well-compressed data as hostile.
    """
    noise = np.random.default_rng(8).random(1 << 18, dtype=np.float32)
    return Tensor("float32", np.tile(noise, mebibytes).reshape(4, -1))


def damaged(directory: Path, how: str) -> Path:
    """Return a directory that no longer holds a model: ``absent``, ``empty``, ``noise``,
    ``torn``.
    """
    if how == "absent":
        return directory
    directory.mkdir(parents=True)
    whole = (half_plus_two() / "model" / "saved_model.pb").read_bytes()
    content = {"empty": None, "noise": bytes(range(256)) * 8, "torn": whole[: len(whole) * 2 // 3]}[
        how
    ]
    if content is not None:
        (directory / "saved_model.pb").write_bytes(content)
    return directory


def _started() -> tuple[Any, Any]:
    model = schema.SavedModel(saved_model_schema_version=1)
    graph = model.meta_graphs.add()
    graph.meta_info_def.tags.append("serve")
    graph.meta_info_def.tensorflow_version = "1.15.5"
    graph.graph_def.versions.producer = PRODUCER
    return graph, model


def _placeholder(graph: Any, name: str, dtype: str, shape: tuple[int, ...] | None = None) -> Any:
    node = graph.graph_def.node.add(name=name, op="Placeholder")
    node.attr["dtype"].type = NUMBERS[dtype]
    _put_shape(node.attr["shape"].shape, shape)
    return _info(name, dtype, shape)


def _op(
    graph: Any, name: str, op: str, source: str, dtype: str, shape: tuple[int, ...] | None = None
) -> Any:
    node = graph.graph_def.node.add(name=name, op=op)
    node.input.append(source)
    node.attr["T"].type = NUMBERS[dtype]
    return _info(name, dtype, shape)


def _info(name: str, dtype: str, shape: tuple[int, ...] | None) -> Any:
    info = schema.TensorInfo(name=f"{name}:0", dtype=NUMBERS[dtype])
    _put_shape(info.tensor_shape, shape)
    return info


def _put_shape(proto: Any, shape: tuple[int, ...] | None) -> None:
    if shape is None:
        proto.unknown_rank = True
    for size in shape or ():
        proto.dim.add().size = size


def _signature(graph: Any, key: str, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
    signature = graph.signature_def[key]
    signature.method_name = "tensorflow/serving/predict"
    for side, infos in ((signature.inputs, inputs), (signature.outputs, outputs)):
        for name, info in infos.items():
            side[name].CopyFrom(info)


def _saved(directory: Path, model: Any) -> Path:
    directory.mkdir(parents=True)
    (directory / "saved_model.pb").write_bytes(schema.serialize(model))
    return directory


def written(folder: Path, inputs: dict[str, Tensor]) -> str:
    """Write tensors to a new file in ``folder`` and return its name."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{len(list(folder.iterdir()))}.in.npz"
    tensors.save(folder / name, inputs)
    return name
