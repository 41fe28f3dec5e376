"""Checks: what is asked of one artifact and one consumer, and the verdict on the answers.

``CHECKS`` is the ordered table the plan is made from, ``SERVE_CHECKS`` that of servers, ``READING``
the names of those that write
no model; :func:`run_cell` executes one cell.
They are imported when they are asked for: a command that only lists or plans needs none of what
executes a cell.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compat_matrix.checks.kind import Check
    from compat_matrix.checks.run import NotExecuted, NotProduced, outcome_of_error, run_cell
    from compat_matrix.checks.table import CHECKS, READING, SERVE_CHECKS

__all__ = [
    "CHECKS",
    "READING",
    "SERVE_CHECKS",
    "Check",
    "NotExecuted",
    "NotProduced",
    "outcome_of_error",
    "run_cell",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "table" if name in ("CHECKS", "READING", "SERVE_CHECKS", "Check") else "run"
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
