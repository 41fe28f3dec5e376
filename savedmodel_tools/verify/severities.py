"""How bad a finding is."""

from __future__ import annotations

import enum


class Severity(enum.IntEnum):
    """The severity of a finding."""

    INFO = 1  # good to know
    WARNING = 2  # fails, or loses something, for some users of the model
    ERROR = 3  # fails or answers wrongly when it is loaded or called as promised

    @property
    def word(self) -> str:
        return self.name.lower()
