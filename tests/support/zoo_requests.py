"""Requests to models of which nothing is known but their signatures, and a digest of the answers.

The same requests, and digests in the same form, were recorded beside the zoo; so an answer can be
compared with one that was given by another TensorFlow on another day.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any, Optional

import numpy as np

from reference_impl.format.values import dtypes, tensor_proto

INTERNAL = "__saved_model_"
STRING = 7
ATTEMPTS = {
    "dims1": (1, 1),
    "dims2x32": (2, 32),
}  # what an unknown first dimension, and another unknown one, are


def public(meta_graph: Any) -> list[str]:
    """The keys of the signatures that users call, sorted: a stateful model is asked in this
    order.
    """
    return sorted(key for key in meta_graph.signature_def if not key.startswith(INTERNAL))


def request(meta_graph: Any, key: str, attempt: str = "dims1") -> dict[str, np.ndarray]:
    """Small deterministic inputs of a signature, by name.

    Args:
      meta_graph: the MetaGraphDef.
      key: of the signature.
      attempt: "dims1" or "dims2x32": sizes of unknown dimensions; "tf.Example": one serialised
        Example for the strings.
    """
    out: dict[str, np.ndarray] = {}
    for name, info in sorted(meta_graph.signature_def[key].inputs.items()):
        for suffix, dtype, shape in _components(info):
            value = tensor(dtype, _sizes(shape, *ATTEMPTS.get(attempt, (1, 1))))
            if attempt == "tf.Example" and dtype == STRING:
                value = np.full(value.shape, example(meta_graph), object)
            out[name + suffix] = value
    return out


def _components(info: Any) -> list[tuple[str, int, Any]]:
    if info.WhichOneof("encoding") == "coo_sparse":
        return [
            ("_indices", 9, [1, 2]),
            ("_values", info.dtype % 100, [1]),
            ("_dense_shape", 9, [2]),
        ]
    return [("", info.dtype % 100, info.tensor_shape)]


def _sizes(shape: Any, first: int, other: int) -> list[int]:
    if isinstance(shape, list):
        return shape
    if shape.unknown_rank:
        return [1]
    return [
        dim.size if dim.size >= 0 else (other if axis else first)
        for axis, dim in enumerate(shape.dim)
    ]


def tensor(dtype: int, shape: list[int]) -> np.ndarray:
    """Values between -0.5 and 0.5, or small whole numbers, or empty strings."""
    count = math.prod(shape)
    if dtype == STRING:
        return np.full(shape, b"", object)
    kind = dtypes.by_number(dtype).numpy()
    steps = np.arange(count)
    if np.dtype(kind).kind in "iub":
        return (steps % 2 if np.dtype(kind).kind == "b" else steps % 5).astype(kind).reshape(shape)
    return ((steps * 37 % 101) / 101 - 0.5).astype(kind).reshape(shape)


def example(meta_graph: Any) -> bytes:
    """A tf.train.Example with every feature that the model's parsing ops want."""
    features: dict[str, Any] = {}
    library = meta_graph.graph_def.library.function
    for nodes in [meta_graph.graph_def.node, *(function.node_def for function in library)]:
        by_name = {node.name: node for node in nodes}
        for node in nodes:
            if node.op in ("ParseExample", "ParseExampleV2", "ParseSingleExample"):
                features.update(_features(node, by_name))
    from tensorflow.core.example import example_pb2  # only here: the rest needs no TensorFlow

    made = example_pb2.Example()
    for key, (kind, count) in sorted(features.items()):
        feature = made.features.feature[key]
        if kind == STRING:
            feature.bytes_list.value.extend([b"a"] * count)
        elif kind == 9:
            feature.int64_list.value.extend([0] * count)
        else:
            feature.float_list.value.extend([0.5] * count)
    return made.SerializeToString(deterministic=True)


def _features(node: Any, by_name: dict[str, Any]) -> dict[str, Any]:
    kinds, shapes = list(node.attr["Tdense"].list.type), list(node.attr["dense_shapes"].list.shape)
    if node.op == "ParseSingleExample":
        keys = list(node.attr["dense_keys"].list.s)
    elif node.op == "ParseExample":
        first = 2 + node.attr["Nsparse"].i
        keys = [_strings(by_name, name)[0] for name in node.input[first : first + len(kinds)]]
    else:
        keys = _strings(by_name, node.input[3])
    out = {}
    for key, kind, shape in zip(keys, kinds, shapes):
        count = math.prod(abs(dim.size) for dim in shape.dim)
        out[key.decode()] = (kind, count)
    return out


def _strings(by_name: dict[str, Any], ref: str) -> list[bytes]:
    return list(
        tensor_proto.decode(by_name[ref.partition(":")[0]].attr["value"].tensor).reshape(-1)
    )


def digest(answers: dict[str, Any]) -> str:
    """SHA-256 over name, dtype, shape and bytes of every output, in the order of the names."""
    state = hashlib.sha256()
    for name in sorted(answers):
        value = np.asarray(answers[name])
        text = value.dtype.kind in "OSU"
        state.update(f"{name}{'string' if text else value.dtype}{value.shape}".encode())
        for part in (
            [b"|" + bytes(item) for item in value.reshape(-1)] if text else [value.tobytes()]
        ):
            state.update(part)
    return state.hexdigest()


def differences(one: dict[str, Any], other: dict[str, Any], allowed: int = 0) -> Optional[str]:
    """None, or what differs between two answers, with the distance in units in the last place if
    that is more than `allowed`.
    """
    if sorted(one) != sorted(other):
        return f"outputs {sorted(one)} and {sorted(other)}"
    for name in sorted(one):
        first, second = np.asarray(one[name]), np.asarray(other[name])
        if (first.shape, first.dtype) != (second.shape, second.dtype):
            return f"{name}: {first.dtype}{first.shape} and {second.dtype}{second.shape}"
        if first.dtype.kind == "O" or first.tobytes() == second.tobytes():
            if first.tolist() != second.tolist() and first.dtype.kind == "O":
                return f"{name}: other strings"
            continue
        if first.dtype.kind != "f" or first.dtype.itemsize not in (4, 8):
            return f"{name}: other values"
        whole = f"i{first.dtype.itemsize}"
        ulps = np.abs(first.view(whole).astype(object) - second.view(whole).astype(object)).max()
        if ulps <= allowed:
            continue
        return f"{name}: {ulps} ulp, absolute {np.nanmax(np.abs(first - second))}"
    return None
