"""The context of the checks of a server: the cell's artifact behind a running server, and the
findings for its errors.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell
from compat_matrix.checks.context import STEP_LIMIT, Finding
from compat_matrix.checks.served import ServedCell
from compat_matrix.requests.artifact import Artifact
from savedmodel_common.interrupts import signal_name
from savedmodel_servers.client import (
    Client,
    NotInstalled,
    NotRepresentable,
    ServerError,
    ServingError,
    Timeout,
    Unreachable,
)
from savedmodel_servers.drivers import EngineTrouble, ExitState, NotHere
from savedmodel_servers.fleet import (
    Fleet,
    NotServed,
    NotStarted,
    Served,
)
from savedmodel_servers.starter import FleetOfRuntime
from savedmodel_servers.verdicts import (
    CRASHED,
    HUNG,
    KILLED,
    REFUSED,
)

# With these codes the server says that it, or this model, cannot do the request. Any other code is
# an error.
REFUSALS = frozenset({"FAILED_PRECONDITION", "UNIMPLEMENTED"})
_KINDS = {
    REFUSED: Outcome.REJECTED,
    CRASHED: Outcome.CRASH,
    HUNG: Outcome.TIMEOUT,
    KILLED: Outcome.ENV_ERROR,
}


@dataclass
class Wire:
    """One cell being executed.

    ``timings`` grow as the check asks; ``kept`` files are evidence of a pass.
    """

    cell: Cell
    fleet: Fleet
    artifact: Artifact
    scratch: Path
    ahead: Sequence[Path] = ()  # models that are asked next
    timings: dict[str, float] = field(default_factory=dict)
    kept: dict[str, Path] = field(default_factory=dict)
    rss_kib: int | None = None  # the server's memory is not measured

    @property
    def limit(self) -> float:
        return self.cell.timeout or STEP_LIMIT

    def served(self, tags: Sequence[str]) -> Served:
        """Return the artifact's MetaGraph of ``tags`` as AVAILABLE on the server. If answers change
        it, every check has its own."""
        model = self.artifact.model
        if self.artifact.stateful:
            model = self.scratch / f"{self.cell.case}-{self.cell.producer}-{self.cell.check}"
            if not model.exists():
                shutil.copytree(self.artifact.model, model)
        with self.timed("load"), trouble("load"):
            return self.fleet.served(model, tags, [(path, ("serve",)) for path in self.ahead])

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add the time inside the context to the seconds of ``step``."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.timings[step] = self.timings.get(step, 0.0) + time.perf_counter() - start


def wire_of(cell: ServedCell) -> Wire:
    """Return the context of a check as this package needs it; times and evidence are shared."""
    assert isinstance(cell.servers, FleetOfRuntime)
    fleet = cell.servers.fleet
    return Wire(cell.cell, fleet, cell.artifact, cell.scratch, cell.ahead, cell.timings, cell.kept)


@contextmanager
def trouble(what: str) -> Iterator[None]:
    """Turn an error of a server, its driver or a client into a Finding. ``what`` was asked."""
    try:
        yield
    except NotServed as error:
        raise _not_served(error) from error
    except ServingError as error:
        raise _no_answer(error, what) from error
    except NotStarted as error:
        raise Finding(
            Outcome.ENV_ERROR, str(error), error_class="NotStarted", texts={"server_log": error.log}
        ) from error
    except (NotHere, EngineTrouble) as error:
        raise Finding(Outcome.ENV_ERROR, str(error), error_class=type(error).__name__) from error


def _no_answer(error: ServingError, what: str) -> Finding:
    where = f"{what} over {error.transport}"
    if isinstance(error, ServerError):
        outcome = Outcome.REJECTED if error.code in REFUSALS else Outcome.CALL_ERROR
        return Finding(outcome, f"{where}: {error.message}", error_class=error.code)
    outcomes = {
        NotRepresentable: Outcome.REJECTED,
        Timeout: Outcome.TIMEOUT,
        Unreachable: Outcome.ENV_ERROR,
        NotInstalled: Outcome.SETUP_ERROR,
    }
    return Finding(
        outcomes.get(type(error), Outcome.CALL_ERROR),
        f"{what}: {error}",
        error_class=type(error).__name__,
    )


def _not_served(error: NotServed) -> Finding:
    details: dict[str, Any] = {"server": {"kind": error.kind}}
    if error.error is not None:
        details["server"] |= {"state": error.error.state, "error_code": error.error.error_code}
    name = (
        _ended(error.exit)
        if error.exit
        else (error.error.state if error.error else error.kind.upper())
    )
    texts = {"server_log": error.log}
    return Finding(_KINDS[error.kind], error.reason, error_class=name, details=details, texts=texts)


def _ended(state: ExitState) -> str:
    """Return the error class of a server's end, as for a worker: SIGABRT, exit 3; OOM if the memory
    limit ended it.
    """
    if state.oom_killed:
        return "OOM"
    return signal_name(state.signal) if state.signal is not None else f"exit {state.code}"


def rest_of(served: Served) -> Client:
    """The REST client. Raises a Finding for a server that has no REST API."""
    if served.rest is None:
        raise Finding(Outcome.ENV_ERROR, "the server has no REST port", error_class="NoRest")
    return served.rest
