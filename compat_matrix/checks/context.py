"""The context of a check: the cell's worker, artifact and evidence, and the exception that reports
a finding.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compat_matrix.cells.consumers import Consumer
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell
from compat_matrix.hosts.host import Host, Loaded
from compat_matrix.requests.artifact import Artifact
from compat_matrix.runtimes.worker import ReplyError, Worker, WorkerDied
from savedmodel_common.compare import Tolerance

STEP_LIMIT = 60.0  # seconds for one step when the plan sets no limit
_STATUS = {"rejected": Outcome.REJECTED, "unsupported": Outcome.SETUP_ERROR}
_DISK = "No space left on device"


class Finding(Exception):
    """A failure that a check found.

    ``texts`` and ``files`` become evidence: name -> content, name -> file to copy.
    """

    def __init__(
        self,
        outcome: Outcome,
        message: str,
        *,
        error_class: str | None = None,
        details: dict[str, Any] | None = None,
        texts: dict[str, str] | None = None,
        files: dict[str, Path] | None = None,
    ) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.error_class = error_class
        self.details = details or {}
        self.texts = texts or {}
        self.files = files or {}


def finding_of(failure: ReplyError | WorkerDied, what: str = "") -> Finding:
    """Return the finding for a worker's failure. ``what`` is put in front of the message."""
    message = f"{what}: {failure}" if what else str(failure)
    if isinstance(failure, WorkerDied):
        outcome = Outcome.TIMEOUT if failure.timed_out else Outcome.CRASH
        return Finding(
            outcome, message, error_class=failure.error_class, texts={"stderr": failure.tail}
        )
    outcome = _STATUS.get(
        failure.status, Outcome.LOAD_ERROR if failure.op == "load" else Outcome.CALL_ERROR
    )
    if _DISK in message:
        outcome = Outcome.ENV_ERROR
    texts = {"traceback": failure.traceback, "stderr": failure.tail}
    return Finding(outcome, message, error_class=failure.error_class, texts=texts)


@dataclass
class Context:
    """One cell being executed.

    ``timings`` and ``rss_kib`` grow as the check asks; ``kept`` files are evidence of a pass.
    """

    cell: Cell
    host: Host
    worker: Worker
    consumer: Consumer
    artifact: Artifact
    scratch: Path
    timings: dict[str, float] = field(default_factory=dict)
    rss_kib: int | None = None
    kept: dict[str, Path] = field(default_factory=dict)

    @property
    def limit(self) -> float:
        return self.cell.timeout or STEP_LIMIT

    @property
    def tolerance(self) -> Tolerance:
        """Return the tolerance of answers: that of the artifact together with that of the
        consumer.
        """
        own = self.consumer.tolerance
        return self.artifact.tolerance.or_wider(*own[:2]) if own else self.artifact.tolerance

    @contextmanager
    def model(self, tags: Sequence[str], directory: Path | None = None) -> Iterator[Loaded]:
        """Return a loaded MetaGraph of the artifact, shared with other checks; a new one for
        ``directory``.

        A model that answers change is shared until a check has called it.
        """
        with self.host.model(
            self.worker,
            directory or self.artifact.model,
            tags,
            self.limit,
            shared=directory is None,
            role=self.consumer.role,
            untouched=self.artifact.stateful,
        ) as model:
            self._time("load", model.seconds)
            self.rss_kib = max(self.rss_kib or 0, model.rss_kib or 0) or None
            yield model

    def ask(self, model: Loaded, op: str, **fields: Any) -> dict[str, Any]:
        """One request about a loaded model, timed."""
        start = self.worker.busy_seconds
        try:
            return model.ask(op, self.limit, **fields)
        finally:
            self._time(op, self.worker.busy_seconds - start)

    def _time(self, step: str, seconds: float) -> None:
        self.timings[step] = self.timings.get(step, 0.0) + seconds


@dataclass
class Evidence:
    """Evidence files of a cell, below ``out/evidence/<cell id>``.

    The folder is made with the first file.
    """

    out: Path
    folder: Path
    entries: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, out: Path, cell: Cell) -> Evidence:
        """Start the evidence of a cell; that of an earlier execution is removed. Every segment of a
        cell id is a safe file name."""
        folder = out / "evidence" / cell.id
        shutil.rmtree(folder, ignore_errors=True)
        return cls(out, folder)

    def add(self, finding: Finding) -> None:
        """Write the texts and files of a finding.

        Existing names are kept, since the first finding is reported.
        """
        for name, text in finding.texts.items():
            if text and name not in self.entries:
                self.add_text(name, text)
        self.add_files(finding.files)

    def add_text(self, name: str, text: str) -> None:
        self._path(name, ".txt").write_text(text, encoding="utf-8", errors="replace")

    def add_files(self, files: Mapping[str, Path]) -> None:
        """Copy files: name -> path."""
        for name, source in files.items():
            if name not in self.entries and source.is_file():
                shutil.copyfile(source, self._path(name, source.suffix))

    def add_json(self, name: str, value: Any) -> None:
        self._path(name, ".json").write_text(
            json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8"
        )

    def _path(self, name: str, suffix: str) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / (name + suffix)
        self.entries[name] = path.relative_to(self.out).as_posix()
        return path
