"""The protocol of a side: a program that answers one signature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from savedmodel_common.tensors import Tensor
from savedmodel_prove.records import Answer


class SideError(Exception):
    """Raised when a side gives no answer. The text is the reason."""


class Side(Protocol):
    """One signature of one model in one program."""

    @property
    def name(self) -> str:
        """The program that answers, e.g. ``onnxruntime``."""

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions of its packages."""

    def answer(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the outputs by the original's names. Raises SideError."""

    def values(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the intermediate values by the names of the model, and the outputs by the
        original's names.

        Raises SideError.
        """


def asked(side: Side, inputs: Mapping[str, Tensor]) -> Answer:
    """Return a side's answer, with the reason where it has none."""
    try:
        return Answer(side.answer(inputs))
    except SideError as error:
        return Answer(error=str(error))
