"""Inputs made up for a signature: small numbers that every dtype holds exactly, consistent parts of
sparse tensors, tf.Examples with the features that a graph parses."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from compat_matrix.requests.policies import RANKS, SIZES
from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.format.values.tensor_proto import decode
from reference_impl.graph.edges import data_inputs
from reference_impl.graph.references import bodies
from savedmodel_common import tensors
from savedmodel_common.limits import MAX_ELEMENTS
from savedmodel_common.tensors import CARRIERS, Tensor

_PARSERS = ("ParseExample", "ParseExampleV2")


def made_up(
    inputs: Mapping[str, Mapping[str, Any]], examples: Sequence[bytes] = (), variant: int = 0
) -> Iterator[dict[str, Tensor]]:
    """Yield inputs for a signature, to be tried in turn.

    Args:
      inputs: name -> ``{"dtype", "shape"}``, as
        `reference_impl.views.signatures.signature_spec` gives them.
      examples: serialised `tf.Example`s, tried first for string inputs.
      variant: the seed of other numbers in the same shapes; 0 counts upwards.
    """
    seen = set()
    strings = any(info["dtype"] == "string" for info in inputs.values())
    if not all(info["dtype"] == "string" or info["dtype"] in CARRIERS for info in inputs.values()):
        return
    for text in (*(examples if strings else ()), None):
        for rank, (first, other) in itertools.product(RANKS, SIZES):
            shapes = {}
            for name, info in inputs.items():
                dims = [None] * rank if info["shape"] is None else info["shape"]
                sizes = [
                    size if size is not None and size >= 0 else (other if at else first)
                    for at, size in enumerate(dims)
                ]
                shapes[name] = tuple(sizes)
            fits = all(
                np.prod(shape, dtype=np.float64) <= MAX_ELEMENTS for shape in shapes.values()
            )
            if fits and (text, *shapes.items()) not in seen:
                seen.add((text, *shapes.items()))
                made = {
                    name: _tensor(info["dtype"], shapes[name], text, variant)
                    for name, info in inputs.items()
                }
                yield {**made, **_sparse(made)}


def _sparse(made: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Make indices and shapes consistent if the names of three inputs say that they are the parts
    of a sparse tensor.
    """
    found = {}
    for name, values in made.items():
        prefix = name[: -len("values")]
        parts = [made.get(prefix + part) for part in ("indices", "dense_shape")]
        if (
            not name.endswith("values")
            or None in parts
            or any(part.dtype != "int64" for part in parts if part)
        ):
            continue
        count, rank = values.array.size, max(parts[1].array.size, 1)  # type: ignore[union-attr]
        if values.array.ndim == 1 and count * rank <= MAX_ELEMENTS:
            indices = np.zeros([count, rank], np.int64)
            indices[:, 0] = np.arange(count)  # one value a row
            found[prefix + "indices"] = Tensor("int64", indices)
            found[prefix + "dense_shape"] = Tensor(
                "int64", np.array([count] + [1] * (rank - 1), np.int64)
            )
    return found


def _tensor(dtype: str, shape: tuple[int, ...], text: bytes | None, variant: int) -> Tensor:
    count = int(np.prod(shape, dtype=np.int64))
    steps = (
        np.random.default_rng(variant).integers(0, 3, count) if variant else np.arange(count) % 3
    )
    if dtype == "string":
        array = np.empty(count, dtype=object)
        array[:] = [b"%d" % step if text is None else text for step in steps.tolist()]
        return Tensor(dtype, array.reshape(shape))
    if dtype in ("float16", "float32", "float64", "complex64", "complex128"):
        return tensors.from_numpy((steps / 4).astype(dtype).reshape(shape))
    if dtype == "bool":
        return Tensor(dtype, (steps == 1).reshape(shape))
    if dtype == "bfloat16":  # the upper half of a float32
        bits = (steps / 4).astype(np.float32).view(np.uint32) >> 16
        return Tensor(dtype, bits.astype(np.uint16).reshape(shape))
    return Tensor(dtype, steps.astype(CARRIERS[dtype]).reshape(shape))


def examples_of(meta_graph: schema.MetaGraphDef) -> list[bytes]:
    """Return serialised `tf.Example`s with all features that the graph or its functions parse, and
    with the dense ones only.

    Features that cannot be read from a node (if keys are not constants, for example) are left out,
    since the example is only tried. The result is empty if the graph parses nothing.
    """
    from savedmodel_common.serving.messages import Example

    whole, dense, found = Example(), Example(), False
    for _, nodes in bodies(meta_graph.graph_def):
        by_name = {node.name: node for node in nodes}
        for node in nodes:
            if node.op in _PARSERS:
                found = True
                try:
                    for key, dtype, size in _features(node, by_name):
                        _fill(whole.features.feature[key], dtype, size or 1)
                        if size:
                            _fill(dense.features.feature[key], dtype, size)
                except (SavedModelError, ValueError, IndexError, UnicodeDecodeError):
                    continue
    made = [example.SerializeToString(deterministic=True) for example in (whole, dense)]
    return list(dict.fromkeys(made)) if found else []


def _features(
    node: schema.NodeDef, nodes: Mapping[str, schema.NodeDef]
) -> Iterator[tuple[str, int, int]]:
    """Yield the key, dtype and number of values of each feature; 0 for a sparse feature, which
    accepts any number.
    """
    inputs = data_inputs(node)
    shapes = node.attr["dense_shapes"].list.shape
    dense, sparse = list(node.attr["Tdense"].list.type), list(node.attr["sparse_types"].list.type)
    if node.op == "ParseExampleV2":
        sparse_keys, dense_keys = _strings(inputs[2], nodes), _strings(inputs[3], nodes)
    else:
        keys = [_strings(name, nodes) for name in inputs[2 : 2 + len(sparse) + len(dense)]]
        sparse_keys = list(itertools.chain.from_iterable(keys[: len(sparse)]))
        dense_keys = list(itertools.chain.from_iterable(keys[len(sparse) :]))
    for key, dtype, shape in zip(dense_keys, dense, shapes):
        sizes = [max(dim.size, 1) for dim in shape.dim]
        yield key, dtype, int(np.prod(sizes, dtype=np.int64))
    for key, dtype in zip(sparse_keys, sparse):
        yield key, dtype, 0


def _strings(name: str, nodes: Mapping[str, schema.NodeDef]) -> list[str]:
    """Return the strings of a constant. Raises ValueError if it does not hold strings."""
    node = nodes.get(name.split(":")[0])
    if node is None or node.op != "Const":
        raise ValueError(f"{name} is not a constant")
    return [
        item.decode("utf-8")
        for item in np.asarray(decode(node.attr["value"].tensor)).ravel().tolist()
    ]


def _fill(feature: Any, dtype: int, size: int) -> None:
    size = min(size, MAX_ELEMENTS)
    if dtype == schema.DT_FLOAT:
        feature.float_list.value.extend([0.25] * size)
    elif dtype == schema.DT_INT64:
        feature.int64_list.value.extend([1] * size)
    else:
        feature.bytes_list.value.extend([b"1"] * size)
