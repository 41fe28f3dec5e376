"""Captured tensors: tensors inside another function that a custom gradient uses.

RFC: FMT-14
"""

from __future__ import annotations

from typing import NamedTuple, Union

from reference_impl.functions.names import ExportName, FileName


class CapturedTensor(NamedTuple):
    """A tensor of another function, which exists only while that function is differentiated."""

    tensor: str
    function: Union[FileName, ExportName]
