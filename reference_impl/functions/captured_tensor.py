"""Captured tensors: tensors inside another function that a custom gradient uses.

RFC: FMT-14
"""

from __future__ import annotations

from typing import NamedTuple, Union

from reference_impl.format import schema
from reference_impl.functions.load_context import Load
from reference_impl.functions.names import ExportName, FileName


class CapturedTensor(NamedTuple):
    """A tensor of another function, which exists only while that function is differentiated."""

    tensor: str
    function: Union[FileName, ExportName]


def read(load: Load, number: int, node: schema.SavedObject) -> CapturedTensor:
    """Make the object of a `captured_tensor` node."""
    return CapturedTensor(
        node.captured_tensor.name, FileName(node.captured_tensor.concrete_function)
    )


def write(out: schema.SavedObject, captured: CapturedTensor) -> None:
    """Write a captured tensor into its SavedObject."""
    out.captured_tensor.name, out.captured_tensor.concrete_function = (
        captured.tensor,
        captured.function,
    )
