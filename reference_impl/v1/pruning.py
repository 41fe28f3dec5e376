"""The feeds and fetches of `prune`: tensors, operations and composites of the graph, or their
names.

RFC: V1-01, GOAL-14
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Optional

import tensorflow as tf

from reference_impl.errors import BindingError
from reference_impl.format import schema
from reference_impl.functions import specs
from reference_impl.graph.unique_names import repeated
from reference_impl.v1.reading.signatures import Output, read_output


class Fetches:
    """Nested fetches, divided into tensors to compute and nodes to run.

    `structure` is the nested structure, with a TensorSpec or composite spec for each tensor and
    None for each operation.
    """

    def __init__(self, fetches: object):
        self.tensors: list[str] = []
        self.targets: list[str] = []
        self.structure = tf.nest.map_structure(self._leaf, fetches)

    def _leaf(self, fetch: Any) -> Any:
        """Convert a single fetch.

        As in a graph, a name without an output number is the name of an operation.
        """
        name = tensor_name(fetch)
        if isinstance(fetch, tf.Operation) or (name and ":" not in name):
            self.targets.append(name or fetch.name)
            return None
        if name:
            self.tensors.append(name)
            return tf.TensorSpec(None)
        if hasattr(fetch, "coo_sparse"):  # a TensorInfo
            output = read_output(
                "prune", schema.parse(schema.TensorInfo, fetch.SerializeToString())
            )
            self.tensors += [tensor.text for tensor in output.tensors]
            return composite_spec(output)
        try:
            spec = tf.type_spec_from_value(fetch)
            names = [part.name for part in tf.nest.flatten(fetch, expand_composites=True)]
        except (TypeError, AttributeError):
            raise BindingError(
                f"{fetch!r} is not a tensor or operation of the graph, or its name", node="prune"
            ) from None
        self.tensors += names
        return spec

    def outputs(self, found_specs: list[tf.TensorSpec]) -> Any:
        """Return the structure, with the specs of the tensors."""
        found = iter(found_specs)

        def typed(leaf: object) -> Any:
            if leaf is None:
                return None
            if isinstance(leaf, tf.TensorSpec):
                return next(found)
            for _ in tf.nest.flatten(leaf, expand_composites=True):
                next(found)
            return leaf

        return tf.nest.map_structure(typed, self.structure)


def composite_spec(output: Output, file: str = "") -> Any:
    """Return the TypeSpec of a result that is sparse or composite."""
    if output.kind == "sparse":
        shape = specs.shape_of(output.info.tensor_shape)
        return tf.SparseTensorSpec(shape, specs.tf_dtype(output.info.dtype, file, output.key))
    value = schema.StructuredValue(type_spec_value=output.info.composite_tensor.type_spec)
    return specs.decode(value, file, output.key)


def tensor_name(item: object) -> str:
    """Return the name of a tensor or operation, or of the tensor of a dense TensorInfo; empty for
    composites.
    """
    name = item if isinstance(item, str) else getattr(item, "name", "")
    return name if isinstance(name, str) else ""


class Feeds:
    """The arguments of a pruned function.

    Attributes:
      named: (argument, tensor name), in the order of the FunctionDef's arguments, which follows
        the sorted argument names.
      keywords: the names of the arguments for callers, in the same order; None if only the
        structure counts.
      positional: how many of them need no name.
      structure: ``(args, kwargs)`` of the Python function, or None for flat arguments.
    """

    def __init__(self, feeds: object, input_signature: Any = None, also_positional: bool = False):
        keys = list(feeds) if isinstance(feeds, Mapping) else []
        found = [tensor_name(feed) for feed in _flat(feeds)]
        if not all(found):
            raise BindingError(
                "feeds are tensors of the graph or their names, or a mapping from argument to such",
                node="prune",
            )
        self.structure: Any = None
        self.keywords: Optional[list[str]] = keys
        if input_signature is not None:
            self._follow(found, input_signature, also_positional)
            return
        if len(keys) == len(found):
            self.named = sorted(zip(keys, found))
            self.keywords = sorted(keys)
        else:
            self.named = list(zip(_numbered("feed", len(found)), found))
            operations = [name.partition(":")[0] for name in found]
            arguments = [name for name, _ in self.named]
            self.keywords = next(
                names for names in (operations, found, arguments) if not repeated(names)
            )
        self.positional = len(found)

    def _follow(
        self, found: list[str], input_signature: tuple[Any, Any], also_positional: bool
    ) -> None:
        args, kwargs = tuple(input_signature[0] or ()), dict(input_signature[1] or {})
        count = len(_flat(args))
        if count + len(kwargs) != len(found):
            reason = (
                f"input_signature describes {count + len(kwargs)} tensors, {len(found)} are fed"
            )
            raise BindingError(reason, node="prune")
        by_key = dict(zip(kwargs, found[count:]))
        self.named = list(zip(_numbered("arg", count), found)) + sorted(by_key.items())
        self.structure = args, kwargs
        self.keywords = None if args else sorted(kwargs)
        self.positional = len(kwargs) if also_positional else 0


def _flat(feeds: object) -> list[Any]:
    """Return the parts of a nested structure.

    A mapping at the top keeps its order, since its keys are arguments.
    """
    if isinstance(feeds, Mapping):
        return list(itertools.chain.from_iterable(map(_flat, feeds.values())))
    return list(tf.nest.flatten(feeds, expand_composites=True))


def _numbered(prefix: str, count: int) -> list[str]:
    """Return numbered names that sort in the order of the numbers."""
    return [f"{prefix}_{index:0{len(str(count))}}" for index in range(count)]
