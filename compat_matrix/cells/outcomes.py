"""The outcomes of a cell, a closed list. Building any other value raises ``ValueError``."""

from __future__ import annotations

import enum


class Outcome(str, enum.Enum):
    """The outcome of one cell, as written in ``results.jsonl``.

    UNSTABLE is an outcome, not a category of the verdict: that two processes gave two answers to
    one question is a fact about the cell, whatever a ledger expects. So it stays in the results
    when a run is judged again by another ledger, and no ledger may expect it.
    """

    PASS = "PASS"
    FAIL_VALUE = "FAIL_VALUE"
    FAIL_SIGNATURE = "FAIL_SIGNATURE"
    FAIL_STRUCTURE = "FAIL_STRUCTURE"
    REJECTED = "REJECTED"
    LOAD_ERROR = "LOAD_ERROR"
    CALL_ERROR = "CALL_ERROR"
    CRASH = "CRASH"
    TIMEOUT = "TIMEOUT"
    SETUP_ERROR = "SETUP_ERROR"
    ENV_ERROR = "ENV_ERROR"
    NOT_APPLICABLE = "NOT_APPLICABLE"
    NOT_RUN = "NOT_RUN"
    # Outcome of a cell that compares two others: two consumers with the same loader differ
    # (verdict.agreement).
    DISAGREE = "DISAGREE"
    # Outcome of a cell that was executed twice, in two processes, and ended differently
    # (verdict.second_try).
    UNSTABLE = "UNSTABLE"

    def __str__(self) -> str:
        return self.value

    @property
    def gate_failure(self) -> bool:
        """Whether this outcome fails the run if no ledger entry speaks of the cell."""
        return self not in (Outcome.PASS, Outcome.NOT_APPLICABLE, Outcome.NOT_RUN)

    @property
    def observable(self) -> bool:
        """Whether executing a cell can have this outcome.

        The plan and the run decide the others.
        """
        return self not in (Outcome.NOT_APPLICABLE, Outcome.NOT_RUN)

    @property
    def expectable(self) -> bool:
        """Whether the ledger may hold this outcome: a failure of the subject that every run sees,
        never of the harness or the machine."""
        return self.gate_failure and not self.harness_failure and self is not Outcome.UNSTABLE

    @property
    def harness_failure(self) -> bool:
        """Whether the harness or the machine failed, so that nothing is known about the subject."""
        return self in (Outcome.SETUP_ERROR, Outcome.ENV_ERROR)

    @property
    def may_be_skew(self) -> bool:
        """Whether the op history can name the cause: the consumer reported an error."""
        return self in (Outcome.LOAD_ERROR, Outcome.CALL_ERROR, Outcome.REJECTED)
