"""The second try of an unexpected cell in a fresh process, joined with the first try.

Pure functions of two results.

A cell whose two tries differ has the outcome UNSTABLE. A cell that fails the same way twice keeps
the result of its first try, with a note. The same way means the same outcome and error class: which
of several missing ops a message names first may differ between two processes, so another message is
told in the note. Both tries stand in the details of the result, so that a run can be judged again
from its files alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell
from compat_matrix.cells.results import MAX_MESSAGE, Result, one_line
from compat_matrix.cells.tries import FIRST, KEY, NOTE, SECOND
from compat_matrix.verdict.entries import NEEDS_ERROR
from compat_matrix.verdict.error_words import error_words

TWICE = "failed twice, in a fresh process too"
PASSED_TWICE = "passed twice, in a fresh process too"
_SHOWN = 300  # characters of the message of one try


def due(result: Result) -> bool:
    """Return whether a judged result needs a second try: it is unexpected, and neither the harness
    nor the machine failed.

    After a SETUP_ERROR or an ENV_ERROR nothing is known about the subject, and the run says so with
    its own exit code.
    """
    return (
        result.expected is False
        and result.outcome.observable
        and not result.outcome.harness_failure
    )


def joined(cell: Cell, first: Result, second: Result) -> Result:
    """Return the result of a cell from its two tries, both judged."""
    if second.outcome.harness_failure or not second.outcome.observable:
        return noted(
            first, f"the second try, in a fresh process, could not be made: {_said(second)}", second
        )
    same = (first.expected, first.outcome, first.error_class) == (
        second.expected,
        second.outcome,
        second.error_class,
    )
    if not same:
        return _unstable(first, second)
    note = PASSED_TWICE if first.outcome is Outcome.PASS else TWICE
    if first.outcome in NEEDS_ERROR and _other_words(cell, first, second):
        note += f", then with another message: {one_line(second.message_normalised, _SHOWN)}"
    return noted(first, note, second)


def noted(first: Result, note: str, second: Result | None = None) -> Result:
    """Return the result of the first try with a note about the second; ``second`` if there was
    one.
    """
    kept: dict[str, Any] = {NOTE: note}
    evidence = dict(first.evidence)
    if second is not None:
        kept[SECOND] = _facts(second, details=False)
        evidence |= _named(SECOND, second)
    return replace(first, details={**first.details, KEY: kept}, evidence=evidence)


def _other_words(cell: Cell, first: Result, second: Result) -> bool:
    """Return whether the messages of two errors differ.

    Messages of wrong answers hold numbers, which may differ each time.
    """
    version = cell.producer_version if cell.is_production else cell.consumer_version
    return error_words(first, version) != error_words(second, version)


def _unstable(first: Result, second: Result) -> Result:
    note = f"the first try: {_said(first)}; the second, in a fresh process: {_said(second)}"
    return replace(
        second,
        outcome=Outcome.UNSTABLE,
        error_class=None,
        message=note,
        message_normalised=note,
        expected=False,
        details={
            KEY: {
                NOTE: note,
                FIRST: _facts(first, details=True),
                SECOND: _facts(second, details=True),
            }
        },
        evidence={**_named(FIRST, first), **_named(SECOND, second)},
    )


def _said(result: Result) -> str:
    """Return the outcome of one try, its class and its message, in one line."""
    head = " ".join(filter(None, (str(result.outcome), result.error_class)))
    text = one_line(result.message_normalised, _SHOWN)
    return f"{head} ({text})" if text else head


def _facts(result: Result, *, details: bool) -> dict[str, Any]:
    """Return one try as the details of a cell keep it."""
    kept = {"details": result.details} if details and result.details else {}
    return {
        "outcome": str(result.outcome),
        "error_class": result.error_class,
        "message": result.message[:MAX_MESSAGE],
        "evidence": result.evidence,
        "timings": result.timings,
        **kept,
    }


def _named(which: str, result: Result) -> dict[str, str]:
    """Return the evidence of a try, with the try in front of each name."""
    return {f"{which}_{name}": path for name, path in result.evidence.items()}
