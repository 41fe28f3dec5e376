"""Check SavedVariable nodes: their own fields, and whether the checkpoint's value fits.

RFC: FMT-12, RP-03
"""

from __future__ import annotations

from typing import Optional

from reference_impl.errors import DtypeError, ShapeError
from reference_impl.format import schema
from reference_impl.format.bundle.entry import Entry
from reference_impl.format.container.files import AnyPath
from reference_impl.format.values import dtypes, structure
from reference_impl.format.values.shapes import covers, shape_of, shape_text

_NUMBERS = {
    "synchronization": frozenset(schema.VariableSynchronization.values()),
    "aggregation": frozenset(schema.VariableAggregation.values()),
}


def invalid(variable: schema.SavedVariable) -> Optional[str]:
    """Return the reason why a SavedVariable describes an impossible variable, or None."""
    try:
        if dtypes.by_number(variable.dtype).is_ref:
            return f"its dtype is the reference {dtypes.by_number(variable.dtype).name}"
        structure.decode_shape(variable.shape)
    except (DtypeError, ShapeError) as error:
        return error.reason
    return invalid_settings(variable)


def invalid_settings(variable: schema.SavedVariable | schema.VariableDef) -> Optional[str]:
    """Return the synchronization or aggregation of a definition that does not exist, or None if
    both exist.
    """
    for name, numbers in _NUMBERS.items():
        number = getattr(variable, name)
        if number not in numbers:
            return f"no {name} has the number {number}"
    return None


def check_value(
    variable: schema.SavedVariable, entry: Entry, file: Optional[AnyPath] = None
) -> None:
    """Check that the checkpoint's value fits a variable that is not `invalid`.

    Raises DtypeError, ShapeError.
    """
    dtype, shape = dtypes.by_number(variable.dtype), shape_of(variable.shape)
    if entry.dtype.number != dtype.number:
        raise DtypeError(
            f"the checkpoint has dtype {entry.dtype.name}, the variable {dtype.name}",
            file=file,
            rule="SM-KIND-4",
        )
    if not covers(shape, entry.shape):
        raise ShapeError(
            f"the checkpoint has shape {shape_text(entry.shape)}, the variable {shape_text(shape)}",
            file=file,
            rule="SM-KIND-4",
        )
