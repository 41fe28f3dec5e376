"""One of four verdicts for each output, and the side that is alone with its answer.

A pure function of the records: `prove` and `prove --check` judge alike, and neither needs
TensorFlow. The comparison is the one of `savedmodel_common.compare`; this module decides the
tolerance. An output may move as far as the original itself was seen to move at the same question.
A few samples show less than the largest movement, so `SAMPLED` times the noise is allowed.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from savedmodel_common.compare import (
    COMPLEX,
    FLOATS,
    Mismatch,
    Tolerance,
    compare_tensor,
    numbers,
)
from savedmodel_common.limits import FRACTION_BITS
from savedmodel_common.tensors import CARRIERS, Tensor
from savedmodel_prove.records import CONVERTED, EVALUATOR, EXACT, ORIGINAL, Answer, Record

SAMPLED = 4  # times the measured noise is allowed
ROUNDINGS = 8  # units of the last place of an output's largest number: kernels round differently

TENSORFLOW = "TensorFlow"


class Kind(str, enum.Enum):
    """The four verdicts, the worst last."""

    EQUAL = "equal bits"
    WITHIN = "within the model's own noise"
    NOT_COMPARABLE = "not comparable"
    DIFFERS = "differs"


_RANKS = {kind: rank for rank, kind in enumerate(Kind)}


@dataclass(frozen=True)
class Measured:
    """How far an answer is from the original's.

    Attributes:
      absolute: the largest absolute difference of two finite numbers, 0 where none differ.
      ulp: the largest distance in units of the last place, None for other dtypes than floats.
    """

    absolute: float = 0.0
    ulp: Optional[float] = None


@dataclass(frozen=True)
class Verdict:
    """The verdict of one output.

    Attributes:
      output: the name of the output in the original.
      kind: the verdict.
      question: the name of the question at which the difference exceeds the noise most.
      measured: the difference there.
      noise: the noise of the original there; None where nothing was compared.
      allowed: the largest difference that counts as noise there.
      compared: the number of questions that were compared.
      reason: why it differs or cannot be compared.
      alone: the side that answers unlike two others, "" where none is known.
      alone_at: the name of the question at which it does.
    """

    output: str
    kind: Kind
    question: str = ""
    measured: Measured = Measured()
    noise: float = 0.0
    allowed: float = 0.0
    compared: int = 0
    reason: str = ""
    alone: str = ""
    alone_at: str = ""


def judge(records: Sequence[Record]) -> list[Verdict]:
    """Return the verdict of each output of the original, in the order of its answers.

    Example: two records whose converted answers have the bits of the original's give one verdict
    ``equal bits`` for each output, with ``compared`` 2.
    """
    listed = (_outputs(record.answers.get(ORIGINAL)) for record in records)
    names = dict.fromkeys(itertools.chain.from_iterable(listed))
    return [_of_output(name, records) for name in names]


def _outputs(answer: Optional[Answer]) -> Iterable[str]:
    return answer.outputs if answer is not None else ()


def _of_output(name: str, records: Sequence[Record]) -> Verdict:
    found = [_at_question(name, record) for record in records if _answered(name, record)]
    compared = [verdict for verdict in found if verdict.kind is not Kind.NOT_COMPARABLE]
    if not compared:
        return found[0]
    worst = max(compared, key=_badness)
    outsider = next((one for one in [worst, *compared] if one.alone), worst)
    skipped = len(found) - len(compared)
    reason = worst.reason
    if skipped:
        first = next(one for one in found if one.kind is Kind.NOT_COMPARABLE)
        more = f"{skipped} of {len(found)} inputs are not comparable ({first.reason})"
        reason = f"{reason}; {more}" if reason else more
    worst = replace(worst, alone=outsider.alone, alone_at=outsider.alone_at)
    return replace(worst, compared=len(compared), reason=reason)


def _answered(name: str, record: Record) -> bool:
    return name in _outputs(record.answers.get(ORIGINAL))


def _badness(verdict: Verdict) -> tuple[int, float, float]:
    over = verdict.measured.absolute / verdict.allowed if verdict.allowed else 0.0
    return _RANKS[verdict.kind], over, verdict.measured.absolute


def _at_question(name: str, record: Record) -> Verdict:
    """Return the verdict of an output at one question."""
    expected = record.answers[ORIGINAL].outputs[name]
    answer = record.answers.get(CONVERTED, Answer(error="it was not asked"))
    verdict = Verdict(name, Kind.NOT_COMPARABLE, record.name, compared=1)
    if answer.error:
        return replace(verdict, reason=answer.error)
    if name not in answer.outputs:
        there = ", ".join(answer.outputs) or "none"
        return replace(
            verdict, reason=f"the converted model has no output {name!r}; it has {there}"
        )
    got = answer.outputs[name]
    noise = noise_of(name, record)
    allowed = allowed_difference(expected, noise)
    alone = _alone(name, record, allowed)
    place = record.name if alone else ""
    verdict = replace(verdict, noise=noise, allowed=allowed, alone=alone, alone_at=place)
    mismatch = compare_tensor(name, expected, got)
    if mismatch is None:
        return replace(verdict, kind=Kind.EQUAL)
    verdict = replace(verdict, measured=measure(expected, got, mismatch))
    if agrees(expected, got, allowed):
        return replace(verdict, kind=Kind.WITHIN)
    beyond = compare_tensor(name, expected, got, Tolerance(atol=allowed)) or mismatch
    return replace(verdict, kind=Kind.DIFFERS, reason=beyond.message)


def noise_of(name: str, record: Record) -> float:
    """Return the largest movement of the original's output at a question.

    It is the largest number of its spread, and the difference between the evaluator's answers in
    float32 and in float64.
    """
    return max([*record.spread.get(name, {}).values(), _rounding(name, record)], default=0.0)


def _rounding(name: str, record: Record) -> float:
    single, double = record.answers.get(EVALUATOR), record.answers.get(EXACT)
    if single is None:  # the evaluator answers for the original
        single = record.answers.get(ORIGINAL)
    if single is None or double is None:
        return 0.0
    if name not in single.outputs or name not in double.outputs:
        return 0.0
    return distance(single.outputs[name], double.outputs[name])


def distance(one: Tensor, other: Tensor) -> float:
    """Return the largest absolute difference of two answers, over numbers that are finite in both.

    Answers of different shapes, and strings, have none: 0.
    """
    if one.array.shape != other.array.shape or "string" in (one.dtype, other.dtype):
        return 0.0
    left, right = _wide(one), _wide(other)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(left - right)
    apart = apart[np.isfinite(apart)]
    return float(apart.max()) if apart.size else 0.0


def _wide(tensor: Tensor) -> npt.NDArray[Any]:
    wide = np.complex128 if tensor.dtype in COMPLEX else np.float64
    return numbers(tensor).astype(wide)


def allowed_difference(expected: Tensor, noise: float) -> float:
    """Return how far an answer may be from the expected one.

    Example: a float32 output whose largest number is 2 and whose noise is 1e-6 may move by 4e-6 and
    eight units of the last place of 2.
    """
    part = COMPLEX.get(expected.dtype, expected.dtype)
    if part not in FRACTION_BITS:
        return noise
    magnitudes = np.abs(_wide(expected))
    finite = magnitudes[np.isfinite(magnitudes)]
    largest = float(finite.max()) if finite.size else 0.0
    unit = largest * 2.0 ** -FRACTION_BITS[part]
    return SAMPLED * noise + max(ROUNDINGS * unit, float(np.finfo(np.float32).tiny))


def agrees(expected: Tensor, got: Tensor, allowed: float) -> bool:
    """Return whether an answer is equal to the expected one or within what is allowed."""
    if compare_tensor("", expected, got, Tolerance(atol=allowed)) is None:
        return True
    if expected.dtype in FLOATS or expected.dtype in COMPLEX or expected.dtype == "string":
        return False
    same_form = expected.dtype == got.dtype and expected.array.shape == got.array.shape
    return same_form and allowed > 0 and distance(expected, got) <= allowed


def measure(expected: Tensor, got: Tensor, mismatch: Mismatch) -> Measured:
    """Return how far an answer is from the expected one."""
    if mismatch.kind != "value":
        return Measured()
    ulp = mismatch.details.get("max_ulp_error")
    return Measured(distance(expected, got), None if ulp is None else float(ulp))


def _alone(name: str, record: Record, allowed: float) -> str:
    """Return which of three sides answers unlike the two others, who agree."""
    given: dict[str, Tensor] = {}
    for side in (ORIGINAL, CONVERTED, EVALUATOR):
        answer = record.answers.get(side)
        if answer is None or name not in answer.outputs:
            return ""
        given[side] = answer.outputs[name]
    given[EVALUATOR] = quantized_alike(given[EVALUATOR], given[ORIGINAL])
    return _odd_one(given, allowed)


def quantized_alike(tensor: Tensor, other: Tensor) -> Tensor:
    """Return the evaluator's tensor with the quantized dtype of another.

    NumPy has no quantized integers: the evaluator gives ``qint8`` as int8.
    """
    if other.dtype.startswith(("qint", "quint")) and CARRIERS[other.dtype] == tensor.dtype:
        return Tensor(other.dtype, tensor.array)
    return tensor


def _odd_one(given: Mapping[str, Tensor], allowed: float) -> str:
    same = {
        TENSORFLOW: agrees(given[EVALUATOR], given[CONVERTED], allowed),
        CONVERTED: agrees(given[ORIGINAL], given[EVALUATOR], allowed),
        EVALUATOR: agrees(given[ORIGINAL], given[CONVERTED], allowed),
    }
    outside = [side for side, others_agree in same.items() if others_agree]
    return outside[0] if len(outside) == 1 else ""


def worst(verdicts: Iterable[Verdict]) -> Kind:
    """Return the worst kind; NOT_COMPARABLE for no verdict at all."""
    return max((one.kind for one in verdicts), key=_RANKS.__getitem__, default=Kind.NOT_COMPARABLE)
