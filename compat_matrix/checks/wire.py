"""What the checks of a server work with: the cell's artifact behind a running server, and what its errors amount to."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compat_matrix.checks.artifact import Artifact
from compat_matrix.checks.context import STEP_LIMIT, Finding
from compat_matrix.consumers.serving.client import Client, NotRepresentable, ServerError, ServingError, TimedOut, Unreachable
from compat_matrix.consumers.serving.fleet import Fleet, NotServed, Served
from compat_matrix.outcomes import Outcome
from compat_matrix.plan import Cell

# The server answers, and says that this model, or this server, cannot do it; any other code is an error where an answer was due.
REFUSALS = frozenset({"FAILED_PRECONDITION", "UNIMPLEMENTED"})


@dataclass
class Wire:
    """One cell being executed. ``timings`` grow as the check asks; ``kept`` files are evidence of a pass."""

    cell: Cell
    fleet: Fleet
    artifact: Artifact
    scratch: Path
    timings: dict[str, float] = field(default_factory=dict)
    kept: dict[str, Path] = field(default_factory=dict)
    rss_kib: int | None = None  # the server's memory is its own affair

    @property
    def limit(self) -> float:
        return self.cell.timeout or STEP_LIMIT

    def served(self, tags: Sequence[str]) -> Served:
        """The artifact's MetaGraph of ``tags`` behind the server, AVAILABLE. Where answers change it, every check has its own."""
        with self.timed("load"):
            own = self.cell.check if self.artifact.stateful else ""
            try:
                return self.fleet.served(self.artifact.model, tuple(tags), instance=own)
            except NotServed as error:
                raise finding_of_refusal(error) from error

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add what is done inside to the seconds of ``step``."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.timings[step] = self.timings.get(step, 0.0) + time.perf_counter() - start


@contextmanager
def asking(served: Served, client: Client, what: str) -> Iterator[None]:
    """Turn the errors of one request into a Finding; a server that died of it does not get the model again."""
    try:
        yield
    except ServingError as error:
        raise finding_of(error, served, f"{what} over {client.transport}") from error


def finding_of(error: ServingError, served: Served, what: str) -> Finding:
    """The finding that an error of a request amounts to."""
    if isinstance(error, ServerError):
        outcome = Outcome.REJECTED if error.code in REFUSALS else Outcome.CALL_ERROR
        return Finding(outcome, f"{what}: {error.message}", error_class=error.code, texts={"server_log": served.log()})
    if isinstance(error, NotRepresentable):
        return Finding(Outcome.REJECTED, f"{what}: {error}", error_class="NotRepresentable")
    if isinstance(error, TimedOut):
        return Finding(Outcome.TIMEOUT, f"{what}: {error}", error_class="TIMEOUT", texts={"server_log": served.log()})
    if isinstance(error, Unreachable):
        died = served.died()
        if died is not None:
            text = f"{what}: the server died of it ({died})"
            return Finding(Outcome.CRASH, text, error_class=died.cause, texts={"server_log": served.log()})
        return Finding(Outcome.ENV_ERROR, f"{what}: {error}", error_class="Unreachable", texts={"server_log": served.log()})
    return Finding(Outcome.CALL_ERROR, f"{what}: {error}", error_class=type(error).__name__, texts={"server_log": served.log()})


def finding_of_refusal(error: NotServed) -> Finding:
    """The finding that a model which does not become AVAILABLE amounts to."""
    outcomes: dict[str, Outcome] = {
        "refused": Outcome.REJECTED,
        "crashed": Outcome.CRASH,
        "timeout": Outcome.TIMEOUT,
        "environment": Outcome.ENV_ERROR,
    }
    details: dict[str, Any] = {"server": error.details}
    return Finding(
        outcomes[error.kind], str(error), error_class=error.error_class, details=details, texts={"server_log": error.log}
    )
