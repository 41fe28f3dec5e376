"""Observations (what a check returns) and results (one line of ``results.jsonl``)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from compat_matrix.outcomes import Outcome

SCHEMA = 1
MAX_MESSAGE = 20_000  # characters; what a hostile model makes its reader say must not fill the disk


@dataclass
class Observation:
    """What one executed cell showed.

    ``details`` is check specific (expected vs got) and JSON-able; ``evidence`` maps a name to a path relative to the output
    folder; ``timings`` maps a step to seconds; ``versions`` and ``libraries`` are what the worker reported of itself.
    Raises ValueError for an outcome no execution can have (NOT_APPLICABLE, NOT_RUN).
    """

    outcome: Outcome
    error_class: str | None = None
    message: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    evidence: dict[str, str] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    libraries: list[str] = field(default_factory=list)
    rss_kib: int | None = None

    def __post_init__(self) -> None:
        self.outcome = Outcome(self.outcome)
        if not self.outcome.observable:
            raise ValueError(f"{self.outcome} is decided before a cell runs, a check cannot observe it")
