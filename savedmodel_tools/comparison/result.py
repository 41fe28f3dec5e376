"""The result of a comparison of two SavedModels."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from savedmodel_common.printable import counted
from savedmodel_tools.comparison.model import (
    CONTENT,
    SCHEMA,
    SECTIONS,
    Change,
    Options,
    Side,
    Weights,
    plain,
)


class ModelDiff(NamedTuple):
    """Two SavedModels compared.

    Attributes:
      first, second: the models.
      options: what was asked.
      changes: by section, those of sections that were not asked for left out.
      weights: the parts of the checkpoints that were compared.
    """

    first: Side
    second: Side
    options: Options
    changes: tuple[Change, ...]
    weights: Weights

    @property
    def equal(self) -> bool:
        """Return whether the content hashes are known and equal."""
        return (
            self.first.content_hash is not None
            and self.first.content_hash == self.second.content_hash
        )

    @property
    def verdict(self) -> str:
        """Return ``different``, ``close`` (all differences are within the tolerance) or ``equal``
        (nothing that was compared differs)."""
        if any(change.counts for change in self.changes):
            return "different"
        return "close" if any(change.section == "variables" for change in self.changes) else "equal"

    @property
    def counts(self) -> str:
        """Return the numbers of changes that count, by section: ``signatures 1, functions 3``."""
        numbers = Counter(change.section for change in self.changes if change.counts)
        return ", ".join(f"{name} {numbers[name]}" for name in SECTIONS if numbers[name])

    @property
    def sentence(self) -> str:
        """Return the verdict and its reason."""
        if self.counts:
            return f"{self.verdict}: {self.counts}"
        if self.equal:
            beside = (
                f"; {counted(len(self.changes), 'difference')} beside the content"
                if self.changes
                else ""
            )
            return f"{self.verdict}, one content hash{beside}"
        if self.verdict == "close":
            varying = sum(change.section == "variables" for change in self.changes)
            return f"{self.verdict}: {varying} variables differ within the tolerance"
        left_out = [name for name in CONTENT if name not in self.options.sections]
        return (
            f"{self.verdict} in the compared sections; not compared: {', '.join(left_out)}"
            if left_out
            else self.verdict
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "first": plain(self.first._asdict()),
            "second": plain(self.second._asdict()),
            "sections": list(self.options.sections),
            "tolerance": {
                "rtol": self.options.rtol,
                "atol": self.options.atol,
                "ulps": self.options.ulps,
            },
            "weights": plain(self.weights._asdict()),
            "changes": [change.to_json() for change in self.changes],
        }

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        from savedmodel_tools.comparison.notebook import show

        return show((self.first, self.second), self.sentence, self.changes)
