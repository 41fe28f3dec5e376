"""What `prune` is asked for: tensors, operations and composites of the graph, by themselves or by name (V1-01, GOAL-14)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from reference_impl.errors import BindingError
from reference_impl.v1.program import SPARSE_PARTS


class Fetches:
    """A nest of fetches in parts.

    Attributes:
      tensors: names of the tensors to compute.
      targets: names of the nodes to run.
      structure: the nest, with a TensorSpec or composite spec for each tensor and None for each operation.
    """

    def __init__(self, fetches: Any):
        self.tensors: list[str] = []
        self.targets: list[str] = []
        self.structure = tf.nest.map_structure(self._leaf, fetches)

    def _leaf(self, fetch: Any) -> Any:
        """As in a graph, a name without an output number is that of an operation."""
        name = tensor_name(fetch)
        if isinstance(fetch, tf.Operation) or (name and ":" not in name):
            self.targets.append(name or fetch.name)
            return None
        if name:
            self.tensors.append(name)
            return tf.TensorSpec(None)
        if hasattr(fetch, "coo_sparse"):  # a TensorInfo
            self.tensors += [getattr(fetch.coo_sparse, f"{part}_tensor_name") for part in SPARSE_PARTS]
            return tf.SparseTensorSpec(None, tf.dtypes.as_dtype(fetch.dtype))
        try:
            spec = tf.type_spec_from_value(fetch)
            names = [part.name for part in tf.nest.flatten(fetch, expand_composites=True)]
        except (TypeError, AttributeError):
            raise BindingError(f"{fetch!r} is no tensor of the graph, no operation and no name of one", node="prune") from None
        self.tensors += names
        return spec

    def outputs(self, specs: list[tf.TensorSpec]) -> Any:
        """The structure, with the specs of the tensors."""
        found = iter(specs)

        def typed(leaf: Any) -> Any:
            if leaf is None:
                return None
            if isinstance(leaf, tf.TensorSpec):
                return next(found)
            for _ in tf.nest.flatten(leaf, expand_composites=True):
                next(found)
            return leaf

        return tf.nest.map_structure(typed, self.structure)


def tensor_name(item: Any) -> str:
    """The name of a tensor or operation, or of what a dense TensorInfo is about; empty for composites."""
    name = item if isinstance(item, str) else getattr(item, "name", "")
    return name if isinstance(name, str) else ""


def named_feeds(feeds: Any) -> list[tuple[str, str]]:
    """(argument, tensor name). Arguments without names get ones whose order is that of the sequence."""
    if isinstance(feeds, Mapping):
        found = [(key, tensor_name(feed)) for key, feed in sorted(feeds.items())]
    else:
        sequence = list(feeds) if isinstance(feeds, (list, tuple)) else [feeds]
        width = len(str(len(sequence)))
        found = [(f"feed_{index:0{width}}", tensor_name(feed)) for index, feed in enumerate(sequence)]
    if not all(name for _, name in found):
        raise BindingError("feeds are tensors of the graph or their names, or a mapping from argument to such", node="prune")
    return found
