"""The outputs of a signature: their names and their order.

RFC: SIG-12
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from reference_impl.errors import SignatureError
from reference_impl.saving import traces


def outputs_of(key: str, outputs: object) -> tuple[dict[str, Any], list[int]]:
    """Return the outputs by name, sorted, and for each flat output its position among the results
    of the function.
    """
    if isinstance(outputs, tf.TypeSpec):
        named: Sequence[tuple[Any, Any]] = [("output_0", outputs)]
    elif isinstance(outputs, Mapping):
        named = list(outputs.items())
    elif isinstance(outputs, tuple) and hasattr(outputs, "_fields"):
        named = list(zip(outputs._fields, outputs))
    elif isinstance(outputs, (list, tuple)):
        named = [(f"output_{i}", item) for i, item in enumerate(outputs)]
    else:
        raise SignatureError(
            f"Got a non-Tensor value {outputs!r} as the result", node=key, clause="SIG-12"
        )
    for name, item in named:
        if not isinstance(name, str) or not isinstance(item, tf.TypeSpec):
            what = (
                f"the output {name!r}" if isinstance(name, str) else f"the non-string key {name!r}"
            )
            reason = (
                f"Got a non-Tensor value {item!r} for {what}; results must be a tensor, a flat list"
                " or a flat dict"
            )
            reason += " with string keys"
            raise SignatureError(reason, node=key, clause="SIG-12")
    # TensorFlow flattens a nested structure with the keys of a dict sorted, and a sequence in
    # order.
    places: dict[str, list[int]] = {}
    start = 0
    for name, item in sorted(named) if isinstance(outputs, Mapping) else named:
        count = len(traces.flat_outputs(item))
        places[name] = list(range(start, start + count))
        start += count
    names = sorted(places)
    items = dict(named)
    ordered = list(itertools.chain.from_iterable(places[name] for name in names))
    return {name: items[name] for name in names}, ordered
