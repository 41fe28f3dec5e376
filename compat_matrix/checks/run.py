"""Execute one cell: find its worker and artifact, run the check, turn every result or error into an
observation.
"""

from __future__ import annotations

import errno
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell, is_complete
from compat_matrix.cells.results import Observation
from compat_matrix.checks import export_bytes
from compat_matrix.checks.context import Context, Evidence, Finding, finding_of
from compat_matrix.checks.produce import produce, producing_worker
from compat_matrix.checks.served import ServedCell
from compat_matrix.checks.table import RUN
from compat_matrix.hosts.host import Host
from compat_matrix.requests.artifact import Artifact, ArtifactError, altered_files, read_artifact
from compat_matrix.runtimes.worker import NotStarted, ReplyError, Worker, WorkerDied
from compat_matrix.verdict.pasts import EXPORTS
from reference_impl.errors import SavedModelError
from savedmodel_common.compare import Tolerance
from savedmodel_common.printable import first_of
from savedmodel_tools.skew import naming as skew

# Errors of the machine, not of anything under test.
_ENVIRONMENT = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS})


class NotExecuted(Exception):
    """There is nothing to execute: the cell is NOT_RUN; the message says why."""


class NotProduced(NotExecuted):
    """The artifact a cell asks about could not be made; its production is a cell of its own."""


def run_cell(cell: Cell, host: Host, out: Path) -> Observation:
    """Execute ``cell`` and return the observation.

    Raises :class:`NotProduced` for a cell that must be reported as NOT_RUN.
    """
    out = Path(out)
    evidence = Evidence.of(out, cell)
    scratch = host.scratch / "cell"
    host.delete(scratch)
    scratch.mkdir(parents=True)
    host.begin(cell)
    execution = _Execution(cell, host, out, scratch)
    try:
        details = execution.run()
        execution.check_worker()
        evidence.add_files(execution.context.kept if execution.context else {})
        if host.keeps_logs:
            evidence.add_text("stderr", execution.log())
        return execution.observation(Outcome.PASS, None, "", details, evidence.entries)
    except NotProduced:
        raise
    except (
        Exception
    ) as error:  # every failure is an observation; the closed list of outcomes says which
        finding = _finding(error)
        execution.add_log(finding)
        execution.name_skew(finding)
        evidence.add(finding)
        if finding.details:
            evidence.add_json("details", finding.details)
        return execution.observation(
            finding.outcome, finding.error_class, str(finding), finding.details, evidence.entries
        )
    finally:
        host.delete(scratch)


class _Execution:
    """The state of one execution, which remains known if it fails half-way."""

    def __init__(self, cell: Cell, host: Host, out: Path, scratch: Path) -> None:
        self.cell, self.host, self.out, self.scratch = cell, host, out, scratch
        self.worker: Worker | None = None
        self.context: Context | ServedCell | None = None
        self.server: dict[str, str] = {}  # what a server says of itself
        self.log_start = (0, 0)
        self.seconds: dict[str, float] = {}

    def run(self) -> dict[str, Any]:
        cell, host = self.cell, self.host
        if cell.is_production:
            self.worker = producing_worker(cell, host)
            self.log_start = self.worker.log_position()
            busy = self.worker.busy_seconds
            try:
                produce(cell, host, self.out, again=True)
            finally:
                self.seconds["produce"] = self.worker.busy_seconds - busy
            return self._produced()
        artifact = self._artifact()
        altered = altered_files(artifact)
        if altered:
            message = f"the artifact is not what its provenance says: {first_of(altered)}"
            raise Finding(Outcome.FAIL_STRUCTURE, message, details={"files": altered})
        asked = read_artifact(artifact)
        if host.tolerance is not None:
            asked = replace(asked, tolerance=Tolerance(*host.tolerance))
        if cell.is_served:
            return self._served(asked)
        consumer = host.registry.consumers[cell.consumer]
        self.worker = host.worker(cell.runtime, consumer.program)
        self.log_start = self.worker.log_position()
        self.context = Context(cell, host, self.worker, consumer, asked, self.scratch)
        return RUN[cell.check](self.context)

    def _produced(self) -> dict[str, Any]:
        """Return the details of a production: a digest of the export if it must not depend on the
        process.
        """
        if not self.host.registry.producers[self.cell.producer].reproducible:
            return {}
        model = self.cell.artifact_dir(self.out) / "model"
        return {EXPORTS: {"model": export_bytes.export_digest(model, self.host.out)}}

    def check_worker(self) -> None:
        """Raise WorkerDied if this cell ended the worker, or made it write more than its
        replies.
        """
        if self.worker is not None:
            self.worker.check("finish")

    def _served(self, artifact: Artifact) -> dict[str, Any]:
        """Return the details of a check that asks a server."""
        servers = self.host.servers(self.cell.runtime)
        self.server = servers.versions()
        ahead = self.host.ahead(self.cell.runtime, artifact.model)
        self.context = ServedCell(self.cell, servers, artifact, self.scratch, ahead)
        return RUN[self.cell.check](self.context)

    def _artifact(self) -> Path:
        directory = self.cell.artifact_dir(self.out)
        if not is_complete(directory):
            producing_worker(self.cell, self.host)  # a missing fixture is a fault of the harness
            try:
                produce(self.cell, self.host, self.out, again=False)
            except (ReplyError, WorkerDied, NotStarted, ArtifactError, Finding) as error:
                raise NotProduced(f"the artifact could not be made: {error}") from error
        return directory

    def add_log(self, finding: Finding) -> None:
        """Add the worker's log since the start of the cell, unless the finding has that of the
        failing step.
        """
        if self.worker is not None and not finding.texts.get("stderr"):
            finding.texts["stderr"] = self.log()

    def log(self) -> str:
        """Return the end of the worker's log since the start of the cell."""
        return self.worker.log_since(self.log_start) if self.worker is not None else ""

    def name_skew(self, finding: Finding) -> None:
        """Name the op, attr, kernel or version that caused a failure, if there is one, in
        ``details["skew"]`` (contracts, section 6)."""
        if not finding.outcome.may_be_skew:
            return
        version = (
            self.cell.producer_version if self.cell.is_production else self.cell.consumer_version
        )
        model = self.context.artifact.model if self.context else None
        found = skew.name(finding.error_class, str(finding), version, model)
        if found is not None:
            finding.details["skew"] = found.to_json()

    def observation(
        self,
        outcome: Outcome,
        error_class: str | None,
        message: str,
        details: dict[str, Any],
        evidence: dict[str, str],
    ) -> Observation:
        said = self.worker.last_hello if self.worker else {}
        if self.server:
            said = {"versions": self.server}
        return Observation(
            outcome,
            error_class=error_class,
            message=message,
            details=details,
            evidence=dict(evidence),
            timings={
                step: round(value, 6)
                for step, value in (self.context.timings if self.context else self.seconds).items()
            },
            versions=dict(said.get("versions", {})),
            libraries=list(said.get("libraries", [])),
            rss_kib=self.context.rss_kib if self.context else None,
        )


def _finding(error: Exception) -> Finding:
    """Return the finding for an exception from a check."""
    if isinstance(error, Finding):
        return error
    if isinstance(error, (ReplyError, WorkerDied)):
        return finding_of(error)
    name = type(error).__qualname__
    if isinstance(error, SavedModelError):
        return Finding(
            Outcome.FAIL_STRUCTURE, str(error), error_class=f"{type(error).__module__}.{name}"
        )
    if isinstance(error, NotStarted):
        return Finding(Outcome.SETUP_ERROR, str(error), error_class=name)
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return Finding(
        outcome_of_error(error), f"{name}: {error}", error_class=name, texts={"harness": text}
    )


def outcome_of_error(error: BaseException) -> Outcome:
    """Return ENV_ERROR for an error of the machine, such as a full disk, else SETUP_ERROR.

    A resumed run asks a cell with an ENV_ERROR again.
    """
    if isinstance(error, OSError) and error.errno in _ENVIRONMENT:
        return Outcome.ENV_ERROR
    return Outcome.SETUP_ERROR
