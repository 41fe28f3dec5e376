"""The declaration of a check: its name, and the capabilities that it needs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from compat_matrix.cells.consumers import answerable


@dataclass(frozen=True)
class Check:
    """The declaration of a check.

    ``place``: its position among the checks of an artifact. ``asks``: it needs a request.

    ``saves``: it saves the model and asks the saved one.
    ``copies``: it asks a copy of the directory. ``differentiates``: it asks for the recorded
    gradients of requests.
    ``needs``: the consumer must have one of these capabilities, if any are listed. ``like``: a case
    that is limited to that check
    gets this one too. ``served``: it asks a model server, not a worker.
    """

    name: str
    summary: str
    place: int
    needs: tuple[str, ...] = ()
    asks: bool = False
    saves: bool = False
    copies: bool = False
    differentiates: bool = False
    like: str = ""
    served: bool = False

    def among(self, names: Collection[str] | None) -> bool:
        """Return whether a case limited to the checks ``names`` (None: not limited) gets this
        check.
        """
        return names is None or self.name in names or self.like in names

    @property
    def only_reads(self) -> bool:
        """Whether the check asks the model where it lies, and writes no model."""
        return not (self.saves or self.copies)

    def calls(self, request: Mapping[str, Any]) -> bool:
        """Return whether the check calls what a request of an artifact names."""
        return self.asks or self.saves or (self.differentiates and bool(request.get("gradients")))

    def not_applicable(self, capabilities: Collection[str], kinds: Collection[str]) -> str | None:
        """Return why this check has nothing to ask, or None.

        ``kinds`` are the kinds of the artifact's requests (``signature``, ``function``), in any
        number.
        """
        if self.needs and not any(need in capabilities for need in self.needs):
            return f"the consumer cannot {' or '.join(self.needs)}"
        if self.asks and not any(answerable(kind, capabilities) for kind in kinds):
            return "no request this consumer can answer: " + (
                ", ".join(sorted(set(kinds))) or "none recorded"
            )
        return None
