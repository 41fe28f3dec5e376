"""Checks: what is asked of one artifact and one consumer, and the verdict on the answers.

``CHECKS`` is the ordered table the plan is made from, ``SERVE_CHECKS`` that of servers; :func:`run_cell` executes one cell.
"""

from __future__ import annotations

from compat_matrix.checks.run import NotProduced, run_cell
from compat_matrix.checks.table import CHECKS, SERVE_CHECKS, Check

__all__ = ["CHECKS", "SERVE_CHECKS", "Check", "NotProduced", "run_cell"]
