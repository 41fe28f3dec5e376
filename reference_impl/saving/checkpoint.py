"""Write the checkpoint of an export: all values, in one data file or in several by a size limit or
a user callback.

RFC: FN-01, FN-15, OPT-02
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
import tensorflow as tf

from reference_impl.errors import SaveError
from reference_impl.format.bundle.writer import BundleWriter
from reference_impl.format.names import OBJECT_GRAPH_KEY
from reference_impl.format.values import dtypes
from reference_impl.saving import saveable_state
from reference_impl.saving.contents import Contents
from reference_impl.saving.node import Node
from reference_impl.saving.options import SaveOptions
from reference_impl.saving.values import byte_size, has_value, in_graph, of_variable, run


@dataclass
class Value:
    """A tensor of the checkpoint: its key, its current value, the object it belongs to, and its
    device.
    """

    key: str
    array: Any
    dtype: tf.DType
    owner: Any
    device: str = ""


def write(prefix: Union[str, os.PathLike[str]], contents: Contents, options: SaveOptions) -> None:
    """Write the checkpoint of an export.

    Raises:
      SaveError: a variable has no value, or no available session has its value; or the user's
        callback does not return each value exactly once in shards.
    """
    values = _values(contents)
    with BundleWriter(prefix) as out:
        if options.sharding is not None:
            _write_shards(out, options.sharding, list(values))
            return
        shard = 0
        for value in values:
            limit = options.max_shard_bytes
            if (
                limit is not None
                and out.shard_bytes(shard) > 0
                and out.shard_bytes(shard) + byte_size(value.array) > limit
            ):
                shard = out.add_shard()
            out.add(value.key, value.array, _dtype(value.dtype), shard)


def _values(contents: Contents) -> Iterator[Value]:
    """Yield all values and the object graph, in the order in which they are written."""
    tree, layout = contents.tree, contents.checkpoint
    mine = [node for node in tree.nodes if node.is_variable]
    held = run({node.path: [_fetched(node)] for node in mine if in_graph(node.parts)})
    for node in tree.nodes:
        if node.is_variable and node.path not in held and not has_value(node.parts):
            reason = (
                "the variable has no value, so the model could not be loaded. Assign one, or save"
                " with strict=False and load with allow_partial_checkpoint"
            )
            tree.report_loss(SaveError(reason, node=node.path, clause="RP-03"))
        elif node.is_variable:
            array = (
                held.pop(node.path)[0]
                if node.path in held
                else of_variable(node.object, node.parts, node.path)
            )
            part = node.parts[0]
            key = layout.variables[node.number].key
            yield Value(key, array, part.dtype, node.object, part.device)
        for state in contents.states.get(node.number, ()):
            for name, array, dtype in saveable_state.read(state, node.path):
                yield Value(layout.keys.key(node.number, name), array, dtype, node.object)
    yield Value(OBJECT_GRAPH_KEY, np.array(layout.object_graph, object), tf.string, tree.root)


def _fetched(node: Node) -> Any:
    """Return the tensor for a session to fetch: the existing read of the variable, since its graph
    may be finalised.
    """
    return node.object.read_value() if len(node.parts) > 1 else node.parts[0]


def _write_shards(
    out: BundleWriter, callback: Callable[..., Iterable[Mapping[str, Any]]], values: list[Value]
) -> None:
    """Pass the tensors of each task to the callback and write the shards that it returns: for each
    shard, key -> {slice: tensor}.

    One task holds all tensors, unless parameter servers hold some. Two tasks never share a shard.
    """
    by_key = {value.key: value for value in values}
    tasks: dict[str, list[Any]] = {}
    for value in values:
        shardable = _shardable(value)
        tasks.setdefault(shardable.device.to_string(), []).append(shardable)
    try:
        shards = [*map(dict, itertools.chain.from_iterable(map(callback, tasks.values())))]
    except Exception as error:  # code of users
        raise SaveError(
            f"the sharding callback failed: {error}", node="options.sharding"
        ) from error
    used = [shard for shard in shards if any(shard.values())]
    written: dict[str, int] = {}
    for number, shard in enumerate(used):
        number = number if number < out.num_shards else out.add_shard()
        for key, slices in shard.items():
            if key not in by_key:
                raise SaveError(
                    f"the sharding callback gives a key that nothing has: {key}",
                    node="options.sharding",
                )
            for spec, tensor in slices.items():
                written[key] = written.get(key, 0) + _add(
                    out, by_key[key], spec, tensor.numpy(), number
                )
    for value in values:
        if (
            value.array.size == 0 and value.key not in written
        ):  # the policies of TensorFlow leave these out
            written[value.key] = _add(out, value, "", value.array, 0)
    wrong = sorted(value.key for value in values if written.get(value.key, -1) != value.array.size)
    if wrong:
        raise SaveError(
            f"the sharding callback does not give every element once: {', '.join(wrong)}",
            node="options.sharding",
        )


def _add(out: BundleWriter, value: Value, spec: object, array: Any, shard: int) -> int:
    """Write a tensor or a slice, and return its size.

    `spec` is like "4 2 0,2:0,2": the whole shape, the extents.
    """
    text = spec if isinstance(spec, str) else getattr(spec, "spec", "") or ""
    if text.strip():
        info = tf.Variable.SaveSliceInfo.from_spec(text.strip())
        if list(info.var_shape) != list(info.full_shape):
            part = tuple(zip(info.var_offset, info.var_shape))
            out.add_slice(value.key, info.full_shape, part, array, _dtype(value.dtype), shard)
            return int(np.size(array))
    out.add(value.key, array, _dtype(value.dtype), shard)
    return int(np.size(array))


def _shardable(value: Value) -> Any:
    tensor = tf.constant(value.array, value.dtype)
    device = tf.DeviceSpec.from_string(value.device or tensor.device).replace(
        device_type="CPU", device_index=0
    )
    return tf.train.experimental.ShardableTensor(
        _tensor_save_spec=None,
        tensor=tensor,
        dtype=value.dtype,
        device=device,
        name=value.key,
        shape=tensor.shape,
        slice_spec="",
        checkpoint_key=value.key,
        trackable=value.owner,
    )


def _dtype(dtype: tf.DType) -> Any:
    return dtypes.by_number(dtype.as_datatype_enum)
