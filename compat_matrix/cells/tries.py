"""The details of a result that tell of two tries of its cell: the first, and the second in a fresh
process.

``details["second_try"]`` has a ``note``, and ``first`` and ``second`` where a try is kept beside
the result itself. A cell that was as expected does not have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compat_matrix.cells.results import Result

KEY = "second_try"  # in the details of a result
FIRST, SECOND, NOTE = "first", "second", "note"  # members of these details


def facts_of(details: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the members of the details that are about two tries; empty for a cell that was as
    expected.
    """
    found = details.get(KEY)
    return found if isinstance(found, dict) else {}


def note_of(result: Result) -> str:
    """Return the note about the second try; "" for a cell that needed none."""
    return str(facts_of(result.details).get(NOTE, ""))


def was_asked(result: Result) -> bool:
    """Return whether there was a second try."""
    return SECOND in facts_of(result.details)
