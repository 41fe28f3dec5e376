"""What a plan knows of a check: its name, and what it needs of a consumer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from compat_matrix.cells.consumers import answerable


@dataclass(frozen=True)
class Check:
    """``place``: where it stands among the checks of an artifact. ``asks``: it needs a request to answer.

    ``needs``: the consumer must have one of these capabilities, if there are any. ``like``: a case that is limited to that check
    may be asked this one too. ``served``: a model server is asked, not a worker.
    """

    name: str
    summary: str
    place: int
    needs: tuple[str, ...] = ()
    asks: bool = False
    like: str = ""
    served: bool = False

    def among(self, names: Collection[str] | None) -> bool:
        """Whether a case limited to the checks ``names`` (None: not limited) is asked this one."""
        return names is None or self.name in names or self.like in names

    def not_applicable(self, capabilities: Collection[str], kinds: Collection[str]) -> str | None:
        """Why this check has nothing to ask, or None.

        ``kinds`` are the kinds of the artifact's requests (``signature``, ``function``), in any number.
        """
        if self.needs and not any(need in capabilities for need in self.needs):
            return f"the consumer cannot {' or '.join(self.needs)}"
        if self.asks and not any(answerable(kind, capabilities) for kind in kinds):
            return "no request this consumer can answer: " + (", ".join(sorted(set(kinds))) or "none recorded")
        return None
