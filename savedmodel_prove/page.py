"""The report page of a proof: outputs by worst difference, how many ulp apart, where they part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from savedmodel_common.compare import FLOATS, ulps
from savedmodel_common.tensors import Tensor
from savedmodel_prove.certificate import Certificate
from savedmodel_prove.records import CONVERTED, ORIGINAL, Answer
from savedmodel_prove.verdicts import Kind, Verdict, worst

# The largest distance in ulp that each bar of a histogram counts.
BARS = (0, 1, 2, 4, 8, 16, 64, 256, 1024, 2**64 - 1)
_ORDER = list(Kind)


@dataclass(frozen=True)
class Bar:
    """A bar of a histogram.

    Attributes:
      label: the distances in ulp, e.g. ``3 to 4``.
      count: the numbers at such a distance.
      percent: their share of all numbers.
    """

    label: str
    count: int
    percent: float


def render(certificate: Certificate) -> str:
    """Return the page as HTML. Raises ModuleNotFoundError: jinja2 is not installed."""
    from compat_matrix.report import html

    verdicts = sorted(certificate.verdicts, key=_badness, reverse=True)
    template = html.environment().get_template("prove.html.j2")
    return template.render(
        certificate=certificate,
        headline=worst(verdicts).value,
        is_bad=worst(verdicts) not in (Kind.EQUAL, Kind.WITHIN),
        verdicts=verdicts,
        histograms={verdict.output: histogram(certificate, verdict.output) for verdict in verdicts},
    )


def _badness(verdict: Verdict) -> tuple[int, float]:
    over = verdict.measured.absolute / verdict.allowed if verdict.allowed else 0.0
    return _ORDER.index(verdict.kind), over


def histogram(certificate: Certificate, output: str) -> list[Bar]:
    """Return how many numbers of an output are how many ulp apart, over all questions.

    The list is empty for an output without floats.
    """
    distances = list(_distances(certificate, output))
    found = np.concatenate(distances) if distances else np.empty(0, np.uint64)
    bars, first, counted = [], 0, 0
    for last in BARS:
        upto = int(np.count_nonzero(found <= np.uint64(last)))
        count = upto - counted
        bars.append(Bar(_label(first, last), count, 100 * count / max(found.size, 1)))
        first, counted = last + 1, upto
    return bars if found.size else []


def _label(first: int, last: int) -> str:
    if last == BARS[-1]:
        return f"more than {first - 1}"
    return str(last) if first == last else f"{first} to {last}"


def _distances(certificate: Certificate, output: str) -> Iterator[npt.NDArray[Any]]:
    for record in certificate.records:
        pair = [
            record.answers.get(side, Answer()).outputs.get(output) for side in (ORIGINAL, CONVERTED)
        ]
        if pair[0] is None or pair[1] is None or pair[0].dtype not in FLOATS:
            continue
        if pair[0].dtype == pair[1].dtype and pair[0].array.shape == pair[1].array.shape:
            flat = [Tensor(tensor.dtype, tensor.array.reshape(-1)) for tensor in pair if tensor]
            yield ulps(flat[0], flat[1])
