"""Faster twins of plain code.

    entry_point_files   entry points without `importlib.metadata`
    deferred_modules    protobuf without its messages in pure Python

A twin returns what the plain code returns, or None where it does not know; then the plain code
answers. A test compares the two, and a row of docs/evidence/benchmarks.md says what the twin is
worth. The environment variable SAVEDMODEL_COMPAT_PLAIN=1 turns all twins off.
"""

from __future__ import annotations

import os

PLAIN = "SAVEDMODEL_COMPAT_PLAIN"


def is_on() -> bool:
    """Return whether fast twins may be used."""
    return os.environ.get(PLAIN, "0") in ("", "0")
