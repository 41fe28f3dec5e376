"""SoftmaxCrossEntropyWithLogits, also with sparse labels: losses of rows and their gradients.

Dtypes: floats.
Accuracy: 8 ulp in float32: the sum has another order.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array, check_indices
from reference_eval.registry import op


@op("SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_cross_entropy(features: Array, labels: Array) -> tuple[Array, Array]:
    check_indices(labels, features.shape[1])
    shifted, powers, total = softmax_parts(features)
    rows = np.arange(len(labels))
    gradient = powers / total
    gradient[rows, labels] -= features.dtype.type(1)
    return np.log(total[:, 0]) - shifted[rows, labels], gradient


@op("SoftmaxCrossEntropyWithLogits")
def softmax_cross_entropy(features: Array, labels: Array) -> tuple[Array, Array]:
    features, labels = np.broadcast_arrays(features, labels)
    shifted, powers, total = softmax_parts(features)
    losses = (labels * (np.log(total) - shifted)).sum(axis=1, dtype=features.dtype)
    return losses, powers / total - labels


def softmax_parts(features: Array) -> tuple[Array, Array, Array]:
    """Return the features less the largest of their row, their powers of e, and the row sums."""
    shifted = features - features.max(axis=1, keepdims=True)
    powers = np.exp(shifted)
    return shifted, powers, powers.sum(axis=1, keepdims=True, dtype=features.dtype)
