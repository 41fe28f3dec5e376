"""CTCLoss: minus the logarithm of the probability of a label sequence, and its gradient.

The probability is a sum over all paths, with blanks between the labels, by the forward-backward
algorithm (Graves et al. 2006; core/util/ctc/ctc_loss_calculator.h). The last class is the blank.

Dtypes: float32, float64.
Accuracy: 1e-5 relative, since the sums of logarithms have another order.
"""

from __future__ import annotations

import itertools

import numpy as np

from reference_eval.arrays import Array, check_indices
from reference_eval.registry import op


@op("CTCLoss")
def ctc_loss(
    inputs: Array,
    indices: Array,
    values: Array,
    lengths: Array,
    *,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
) -> tuple[Array, Array]:
    steps, batch, classes = inputs.shape
    check_indices(lengths, steps + 1)
    check_indices(indices[:, 0], batch)
    check_indices(values, classes - 1)
    loss, gradient = np.zeros(batch, inputs.dtype), np.zeros_like(inputs)
    for row, length in enumerate(lengths.tolist()):
        labels = values[indices[:, 0] == row].tolist()
        if preprocess_collapse_repeated:
            labels = [label for label, _ in itertools.groupby(labels)]
        if not labels:
            raise ValueError(f"the sequence {row} has no labels")
        if shortest_path(labels, ctc_merge_repeated) > length:
            if ignore_longer_outputs_than_inputs:
                continue
            raise ValueError("Not enough time for target transition sequence")
        logits = inputs[:length, row].astype(np.float64)
        loss[row], gradient[:length, row] = of_sequence(logits, labels, ctc_merge_repeated)
    return loss, gradient


def shortest_path(labels: list[int], merges: bool) -> int:
    """Return the steps that the labels need: a blank stands between two equal ones."""
    pairs = zip(labels, labels[1:])
    return len(labels) + (sum(first == second for first, second in pairs) if merges else 0)


def of_sequence(logits: Array, labels: list[int], merges: bool) -> tuple[float, Array]:
    """Return the loss and the gradient of one sequence, from its logits by step and class."""
    scores = logits - logits.max(axis=1, keepdims=True)
    scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
    blank = logits.shape[1] - 1
    path = np.full(2 * len(labels) + 1, blank)
    path[1::2] = labels
    emitted = scores[:, path]
    before = forward(emitted, path, blank, merges)
    after = forward(emitted[::-1, ::-1], path[::-1], blank, merges)[::-1, ::-1]
    both = before + after - emitted  # a step is in each of them
    total = np.logaddexp.reduce(both[0])
    gradient = np.exp(scores)
    if np.isfinite(total):
        for place, label in enumerate(path.tolist()):
            gradient[:, label] -= np.exp(both[:, place] - total)
    return -total, gradient


def forward(emitted: Array, path: Array, blank: int, merges: bool) -> Array:
    """Return the logarithm of the probability to be at a place of the path after each step."""
    found = np.full(emitted.shape, -np.inf)
    found[0, :2] = emitted[0, :2]
    stays = merges | (path == blank)
    skips = np.zeros(len(path), bool)
    skips[2:] = (path[2:] != blank) & ~(merges & (path[2:] == path[:-2]))
    for step in range(1, len(emitted)):
        last = found[step - 1]
        reached = np.where(stays, last, -np.inf)
        reached[1:] = np.logaddexp(reached[1:], last[:-1])
        reached[2:] = np.where(skips[2:], np.logaddexp(reached[2:], last[:-2]), reached[2:])
        found[step] = reached + emitted[step]
    return found
