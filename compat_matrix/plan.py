"""Cells and the plan: everything that will be asked, listed before anything runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat_matrix.outcomes import Outcome

PRODUCE = "produce"  # the check of the cell that makes an artifact; its consumer is "-"
NO_CONSUMER = "-"

_SEGMENT = r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"
_CELL_ID = re.compile(
    rf"(?P<case>{_SEGMENT})/(?P<producer>{_SEGMENT})@(?P<producer_version>{_SEGMENT})"
    rf"/(?:-|(?P<consumer>{_SEGMENT})@(?P<consumer_version>{_SEGMENT}))/(?P<check>{_SEGMENT})"
)


@dataclass(frozen=True)
class Decision:
    """An outcome fixed by the plan (NOT_APPLICABLE, NOT_RUN) and why."""

    outcome: Outcome
    reason: str


@dataclass(frozen=True)
class Cell:
    """One question of the matrix. ``consumer`` is ``"-"`` and ``consumer_version`` ``""`` for the production of an artifact.

    ``artifact`` is a path: absolute (a fixture), or relative to the output folder (made by the run). ``timeout`` is the
    limit of one step in seconds, None for the worker host's default.
    """

    case: str
    producer: str
    producer_version: str
    consumer: str
    consumer_version: str
    check: str
    runtime: str
    artifact: str
    timeout: float | None = None
    decided: Decision | None = None

    @property
    def id(self) -> str:
        consumer = NO_CONSUMER if self.is_production else f"{self.consumer}@{self.consumer_version}"
        return f"{self.case}/{self.producer}@{self.producer_version}/{consumer}/{self.check}"

    @property
    def is_production(self) -> bool:
        return self.check == PRODUCE

    def artifact_dir(self, out: Path) -> Path:
        """The artifact's directory for a run that writes to ``out``."""
        return out / self.artifact  # an absolute path stands for itself


def parse_cell_id(text: str) -> dict[str, str]:
    """Split a cell id into case, producer, producer_version, consumer, consumer_version, check. Raises ValueError."""
    match = _CELL_ID.fullmatch(text)
    if not match or (match["consumer"] is None) != (match["check"] == PRODUCE):
        raise ValueError(f"not a cell id (case/producer@version/consumer@version/check): {text!r}")
    parts: dict[str, Any] = match.groupdict()
    return {**parts, "consumer": parts["consumer"] or NO_CONSUMER, "consumer_version": parts["consumer_version"] or ""}
