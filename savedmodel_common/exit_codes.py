"""The exit codes of every command."""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """Exit codes.

    When several apply to a run the first of 64, 4, 1, 2, 3 wins (see ``verdict.summary``).
    """

    AS_EXPECTED = 0
    UNEXPECTED = 1
    STALE_EXPECTATION = 2
    INCOMPLETE = 3
    HARNESS_ERROR = 4
    USAGE = 64
    INTERRUPTED = 130


_LEADING = (
    ExitCode.USAGE,
    ExitCode.HARNESS_ERROR,
    ExitCode.UNEXPECTED,
    ExitCode.STALE_EXPECTATION,
    ExitCode.INTERRUPTED,
    ExitCode.INCOMPLETE,
    ExitCode.AS_EXPECTED,
)


def leading(*codes: int) -> int:
    """Return the code of a command to which several apply: the first of them in ``_LEADING``."""
    return min(codes, key=lambda code: _LEADING.index(ExitCode(code)))


MEANINGS = {
    ExitCode.AS_EXPECTED: "as expected",
    ExitCode.UNEXPECTED: (
        "an unexpected result; for a single model: it was refused, with a named error"
    ),
    ExitCode.STALE_EXPECTATION: "a stale or invalid expectation",
    ExitCode.INCOMPLETE: "an incomplete run: something that was planned was not asked",
    ExitCode.HARNESS_ERROR: (
        "a harness or environment error: a file that cannot be read, no space left, a defect of"
        " ours"
    ),
    ExitCode.USAGE: (
        "wrong usage: an unknown option or command, a path that does not exist, an empty selection"
    ),
    ExitCode.INTERRUPTED: "interrupted, by SIGINT or SIGTERM: there is no verdict",
}
