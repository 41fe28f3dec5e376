"""The axis "written by": how much of what each TensorFlow release wrote every consumer reads.

Only committed artifacts count: a run makes the others with the TensorFlow that is here. Pure
functions of the plan and the results.

    >>> line(writers(plan, by_cell))
    'written by 28 TensorFlow releases, 1.4.1 to 2.21.0: 421 of 437 artifacts pass everything'
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compat_matrix.cells.outcomes import Outcome

COMMITTED = "fixture"  # the producer of artifacts that genuine releases wrote
FEW = 3  # releases: their artifacts are all on the first screen anyway

Record = Mapping[str, Any]


@dataclass
class Read:
    """The answers of one consumer about the artifacts of one release, counted by case."""

    asked: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)
    unexpected: set[str] = field(default_factory=set)

    def add(self, case: str, outcome: str, expected: bool) -> None:
        """Count one cell, given the outcome and whether it was expected."""
        if outcome in (Outcome.NOT_APPLICABLE.value, Outcome.NOT_RUN.value):
            return
        self.asked.add(case)
        if not expected:
            self.unexpected.add(case)
        elif outcome != Outcome.PASS.value:
            self.known.add(case)

    @property
    def passed(self) -> int:
        """Return the number of artifacts whose cells all pass."""
        return len(self.asked - self.known - self.unexpected)

    @property
    def state(self) -> str:
        """Return the worst of its cells, the name of a colour of the report."""
        if self.unexpected:
            return "unexpected"
        if self.known:
            return "known"
        return "pass"


@dataclass
class Writer:
    """One release and what it wrote: ``reads`` by consumer, ``whole`` over all consumers."""

    release: str
    reads: dict[str, Read] = field(default_factory=dict)
    whole: Read = field(default_factory=Read)


def writers(cells: Sequence[Record]) -> list[Writer]:
    """Return the releases that wrote committed artifacts, oldest first; none for a few releases.

    Args:
      cells: of the run, each with ``case``, ``producer``, ``producer_version``,
        ``consumer_label``, ``outcome`` and ``expected``.
    """
    found: dict[str, Writer] = {}
    for cell in cells:
        if cell["producer"] == COMMITTED:
            release = cell["producer_version"]
            writer = found.setdefault(release, Writer(release))
            read = writer.reads.setdefault(cell["consumer_label"], Read())
            for count in (read, writer.whole):
                count.add(cell["case"], cell["outcome"], cell["expected"])
    told = [writer for writer in found.values() if writer.whole.asked]
    if len(told) <= FEW:
        return []
    return sorted(told, key=lambda writer: release_order(writer.release))


def release_order(version: str) -> tuple[list[int], str]:
    """Return a key that sorts versions of TensorFlow, however they are written."""
    return [int(part) for part in re.findall(r"\d+", version.partition("+")[0])], version


def line(found: Sequence[Writer]) -> str:
    """Return one line about all releases; empty without any."""
    if not found:
        return ""
    passed = sum(writer.whole.passed for writer in found)
    asked = sum(len(writer.whole.asked) for writer in found)
    unexpected = sum(len(writer.whole.unexpected) for writer in found)
    return (
        f"written by {len(found)} TensorFlow releases, {found[0].release} to {found[-1].release}:"
        f" {passed} of {asked} artifacts pass everything"
        + (f", {unexpected} fail unexpectedly" if unexpected else "")
    )
