"""The answers of all sides to one question, and how far the original itself moves there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from savedmodel_common.tensors import Tensor

ORIGINAL = "original"
CONVERTED = "converted"
EVALUATOR = "evaluator"  # the referee, where TensorFlow answers for the original
EXACT = "evaluator in float64"
SIDES = (ORIGINAL, CONVERTED, EVALUATOR, EXACT)

Outputs = Mapping[str, Tensor]
Spread = Mapping[str, Mapping[str, float]]  # output -> source of noise -> largest difference


@dataclass(frozen=True)
class Answer:
    """The outputs of a side by the original's names, or the reason why it gave none."""

    outputs: Outputs = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True)
class Record:
    """One question with its answers.

    Attributes:
      name: e.g. ``random 0`` or ``zeros``.
      inputs: by the original's names.
      answers: by side, each of `SIDES` that was asked.
      spread: the noise of the original, measured by asking it more than once.
    """

    name: str
    inputs: Mapping[str, Tensor]
    answers: Mapping[str, Answer]
    spread: Spread = field(default_factory=dict)
