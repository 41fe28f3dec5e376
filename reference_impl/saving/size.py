"""Exports that protobuf cannot hold are refused before anything is written. The error names the largest constants.

RFC: DR-09
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping

import numpy as np
import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError
from reference_impl.format import limits
from reference_impl.kinds.export_library import Library
from reference_impl.saving.tree import Node, Tree

_NAMED = 5


def check(tree: Tree, library: Library, names: Mapping[int, str]) -> None:
    """Do functions and constants fit into one message?

    Args:
      tree, library: complete.
      names: number of a function's node -> its name in the library.

    Raises:
      SaveError: they do not.
    """
    total = sum(definition.ByteSize() for definition in library.definitions.values())
    total += sum(_size(node.object) for node in _captured(tree))
    if total > limits.SAVED_MODEL_BYTES:
        raise too_large(total, tree, library, names)


def too_large(total: int, tree: Tree, library: Library, names: Mapping[int, str]) -> SaveError:
    """The error of a SavedModel of `total` bytes or more."""
    largest = heapq.nlargest(_NAMED, (item for item in _constants(tree, library, names) if item[0] * 100 >= total))
    listed = "; ".join(f"{place} ({size:,} bytes)" for size, place in largest)
    reason = (
        f"the export would have {total:,} bytes, protobuf allows {limits.SAVED_MODEL_BYTES:,}. Its largest constants: {listed}. "
    )
    reason += "Make them variables, whose values are in the checkpoint: `root.name = tf.Variable(value, trainable=False)`. "
    reason += "A split file (experimental_image_format) would be read by no released TensorFlow"
    return SaveError(reason, node="root", clause="DR-09")


def _constants(tree: Tree, library: Library, names: Mapping[int, str]) -> Iterator[tuple[int, str]]:
    """(bytes, where it is) of each constant."""
    paths = tree.paths(names)
    for node in _captured(tree):
        yield _size(node.object), node.path
    for name, definition in library.definitions.items():
        function = f"{paths[name]} ({name})" if name in paths else name
        for node in definition.node_def:
            if node.op == "Const":
                yield node.attr["value"].tensor.ByteSize(), f"node {node.name!r} of {function}"


def _captured(tree: Tree) -> list[Node]:
    return [node for node in tree.nodes if tf.is_tensor(node.object) and not api.is_variable(node.object)]


def _size(tensor: tf.Tensor) -> int:
    return sum(map(len, np.ravel(tensor.numpy()))) if tensor.dtype == tf.string else tensor.dtype.size * int(tf.size(tensor))
