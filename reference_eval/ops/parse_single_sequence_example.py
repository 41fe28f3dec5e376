"""ParseSingleSequenceExample: the context and the dense feature lists of a tf.SequenceExample.

Dtypes: string to float32, int64, string.
Accuracy: exact; sparse features are not evaluated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_eval.arrays import Array
from reference_eval.errors import NotEvaluatedError
from reference_eval.examples import feature, feature_lists_of, features_of
from reference_eval.ops.parse_example import dense_feature, listed
from reference_eval.registry import op


@op("ParseSingleSequenceExample")
def parse_single_sequence_example(
    serialized: Array,
    missing_assumed_empty: Array,
    context_sparse_keys: list[Array],
    context_dense_keys: list[Array],
    list_sparse_keys: list[Array],
    list_dense_keys: list[Array],
    context_dense_defaults: list[Array],
    debug_name: Array,
    *,
    Tcontext_dense: list[np.dtype[Any]],
    context_dense_shapes: list[tuple[int, ...]],
    feature_list_dense_types: list[np.dtype[Any]],
    feature_list_dense_shapes: list[tuple[int, ...]],
) -> list[list[Array]]:
    if context_sparse_keys or list_sparse_keys:
        raise NotEvaluatedError("ParseSingleSequenceExample is evaluated without sparse features")
    context = features_of(serialized.item())
    dense = [
        dense_feature([context], key.item(), default, dtype, shape)[0]
        for key, default, dtype, shape in zip(
            context_dense_keys, context_dense_defaults, Tcontext_dense, context_dense_shapes
        )
    ]
    steps = feature_lists_of(serialized.item())
    may_miss = set(missing_assumed_empty.ravel().tolist())
    lists = []
    for key, dtype, shape in zip(
        list_dense_keys, feature_list_dense_types, feature_list_dense_shapes
    ):
        name = key.item()
        if name not in steps and name not in may_miss:
            raise ValueError(
                f"Name: {debug_name.item().decode()}, Feature list '{name.decode()}' is required"
                " but could not be found."
            )
        rows = [step_values(step, name, dtype, shape) for step in steps.get(name, [])]
        lists.append(np.stack(rows) if rows else np.empty([0, *shape], dtype))
    return [[], [], [], dense, [], [], [], lists]


def step_values(
    step: tuple[int, list[Any]], name: bytes, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> Array:
    """Return the values of one step. Raises ValueError: it has none, or another number of them."""
    values = feature({name: step}, name, dtype)
    if values is None:
        raise ValueError(f"Feature list: {name.decode()}: a step has no values")
    return listed(values, dtype).reshape(shape)
