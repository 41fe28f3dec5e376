"""How far the original itself moves at a question.

Four sources: batches against single calls, threads, repeated calls, inputs one ulp away. Rounding,
the fifth, is the difference of the evaluator's answers in float32 and float64
(`verdicts.noise_of`). A model whose answer depends on the other rows of its batch by design is not
noisy: where the evaluator in float64 also answers differently in a batch, batches do not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Optional

import numpy as np

from savedmodel_common.tensors import Tensor
from savedmodel_prove.questions import Inputs, Question, one_ulp_away, resized
from savedmodel_prove.records import Answer, Outputs
from savedmodel_prove.sides.side import Side, asked
from savedmodel_prove.verdicts import distance

BATCHES, THREADS, REPEATS, NEIGHBOURS = "batch sizes", "threads", "repeats", "inputs one ulp away"
SOURCES = (BATCHES, THREADS, REPEATS, NEIGHBOURS)
BATCH = 4
_TIMES = {REPEATS: 2, NEIGHBOURS: 3}
_BY_DESIGN = 1e-9  # relative; two double precision answers that differ more do so by design


@dataclass(frozen=True)
class Sources:
    """Who is asked for the noise.

    Attributes:
      original: the original.
      threaded: the original with several threads, or None.
      exact: the evaluator in float64, or None.
    """

    original: Side
    threaded: Optional[Side] = None
    exact: Optional[Side] = None


def measure(
    question: Question, answer: Outputs, sources: Sources, seed: int, batched: bool
) -> dict[str, dict[str, float]]:
    """Return the spread of each output: source of noise -> largest difference.

    Args:
      question: the inputs.
      answer: the original's outputs.
      sources: who is asked.
      seed: of the moved inputs.
      batched: whether all inputs and outputs have rows.
    """
    spread: dict[str, dict[str, float]] = {name: {} for name in answer}
    for source, other in _answers(question, sources, seed):
        _widen(spread, source, answer, other)
    if batched:
        for alone, together in _rows(question, answer, sources):
            _widen(spread, BATCHES, alone, together)
    return spread


def _widen(
    spread: dict[str, dict[str, float]], source: str, expected: Outputs, other: Outputs
) -> None:
    for name in expected.keys() & other.keys() & spread.keys():
        moved = distance(expected[name], other[name])
        spread[name][source] = max(spread[name].get(source, 0.0), moved)


def _answers(question: Question, sources: Sources, seed: int) -> Iterator[tuple[str, Outputs]]:
    """Yield the answers to the same question, asked otherwise."""
    random = np.random.default_rng(seed)
    for _ in range(_TIMES[REPEATS]):
        yield from _given(REPEATS, asked(sources.original, question.inputs))
    for _ in range(_TIMES[NEIGHBOURS]):
        moved = one_ulp_away(question.inputs, random)
        yield from _given(NEIGHBOURS, asked(sources.original, moved))
    if sources.threaded is not None:
        yield from _given(THREADS, asked(sources.threaded, question.inputs))


def _given(source: str, answer: Answer) -> Iterator[tuple[str, Outputs]]:
    if not answer.error:
        yield source, answer.outputs


def _rows(
    question: Question, answer: Outputs, sources: Sources
) -> Iterator[tuple[Outputs, Outputs]]:
    """Yield the outputs of the first row in the question's batch, and alone or in another batch."""
    count = next(iter(question.inputs.values())).array.shape[0]
    if not count:
        return
    sizes = [size for size in (1, BATCH) if size != count]
    for size in sizes:
        inputs = resized(question.inputs, size)
        if sources.exact is None or _by_design(sources.exact, question.inputs, inputs):
            continue
        other = asked(sources.original, inputs)
        if not other.error:
            shared = min(count, size)
            yield _first(answer, shared), _first(other.outputs, shared)


def _first(outputs: Outputs, count: int) -> dict[str, Tensor]:
    """Return the first rows of each output; nothing of one that has no rows."""
    return {
        name: Tensor(tensor.dtype, tensor.array[:count])
        for name, tensor in outputs.items()
        if tensor.array.ndim and tensor.array.shape[0] >= count
    }


def _by_design(exact: Side, inputs: Inputs, others: Inputs) -> bool:
    """Return whether the exact answer of a row depends on the batch around it."""
    one, other = asked(exact, inputs), asked(exact, others)
    if one.error or other.error:
        return True
    left, right = _first(one.outputs, 1), _first(other.outputs, 1)
    return any(_apart(left[name], right.get(name)) for name in left)


def _apart(one: Tensor, other: Optional[Tensor]) -> bool:
    if other is None or one.array.shape != other.array.shape or one.dtype == "string":
        return True
    largest = float(np.abs(one.array[np.isfinite(one.array)]).max(initial=0.0))
    return distance(one, other) > _BY_DESIGN * max(largest, 1e-30)
