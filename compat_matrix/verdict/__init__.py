"""Expectations: the ledger of known failures, an assertion in both directions.

``expectations.toml`` holds one ``[[expect]]`` table per entry (docs/releases/results.md)::

    [[expect]]
    case = "ragged_*"                # a selector: a name, * within the segment, or a list of these
    producer = "tf2"
    producer_version = ">=2.12,<2.16"  # optional, PEP 440, on the TensorFlow of that side
    consumer = ["v1_session", "c_api"]
    check = "*"                      # * is any check of a consumer; a production is named: consumer
                                     = "-", check = "produce"
    outcome = "LOAD_ERROR"
    error_class = "NotFoundError"    # the whole name or its last part
    message = "Op type not registered"  # regular expression, searched in the normalised message
    kind = "by_design"               # bug | by_design | unsupported_upstream | environment
    reason = "Shown in every report."
    issue = "https://..."            # optional
    added = 2025-01-31
    until = 2026-01-31               # optional: a date, or a version of this project as a string
    wide = "why one entry may cover more than 20 questions"  # optional; a question is a cell
                                                             whatever the versions

A cell an entry selects still runs. ``entries`` reads, ``ledger`` judges, ``update`` rewrites the
file from results, with the ``new_entries`` of new failures.
"""

from __future__ import annotations

from pathlib import Path

from compat_matrix.verdict.entries import LedgerError
from compat_matrix.verdict.ledger import Ledger, Verdict

DEFAULT_PATH = Path(__file__).parent / "expectations.toml"
NO_ENTRIES = Path(__file__).parent / "none.toml"

__all__ = ["DEFAULT_PATH", "NO_ENTRIES", "Ledger", "LedgerError", "Verdict"]
