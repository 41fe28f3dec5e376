"""``produce``: a producer turns a case into an artifact.

The artifact is made in a sibling directory and renamed when it is complete, so that a directory of its name is a whole one.
A lock keeps a second process from making it at the same time.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compat_matrix.cases import CaseError, CaseInfo, read_case
from compat_matrix.checks.artifact import ArtifactError, file_sha256, hash_files
from compat_matrix.plan import Cell
from compat_matrix.producers import PRODUCERS
from compat_matrix.runtimes.host import Host
from compat_matrix.runtimes.worker import Worker

LIMIT = 300.0  # seconds
LICENCE = "Apache-2.0"
SCHEMA = 1


def producing_worker(cell: Cell, host: Host) -> Worker:
    """The worker that makes the artifact of a cell. ArtifactError for a producer without a program: its artifacts are given."""
    producer = PRODUCERS.get(cell.producer)
    if producer is None or producer.program is None:
        raise ArtifactError(f"the producer {cell.producer} makes nothing; its artifact {cell.artifact} is not there")
    return host.worker(cell.producer_runtime, producer.program)


def produce(cell: Cell, host: Host, out: Path, *, again: bool) -> None:
    """Make the artifact of a cell. Unless ``again``, one that exists is left alone.

    Raises what the worker's request raises, and ArtifactError for a case that cannot be read.
    """
    final = cell.artifact_dir(out)
    final.parent.mkdir(parents=True, exist_ok=True)
    with _lock(final.parent / f".{final.name}.lock"):
        if is_complete(final) and not again:
            return
        shutil.rmtree(final, ignore_errors=True)
        staged = final.parent / f".{final.name}.{os.getpid()}.tmp"
        scratch = host.scratch / "produce"
        for folder in (staged, scratch):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        try:
            _fill(cell, host, staged, scratch)
            staged.rename(final)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
            shutil.rmtree(scratch, ignore_errors=True)


def is_complete(artifact: Path) -> bool:
    """Whether a directory is an artifact: the provenance is written last."""
    return (artifact / "provenance.json").is_file()


def _fill(cell: Cell, host: Host, staged: Path, scratch: Path) -> None:
    worker = producing_worker(cell, host)
    case = _case(host.cases / f"{cell.case}.py")
    # The case's own TIMEOUT is for consumers.
    reply = worker.request("produce", LIMIT, case=str(case.file.absolute()), dir=str(staged), scratch=str(scratch))
    provenance = _provenance(cell, case, reply["versions"], staged)
    (staged / "provenance.json").write_text(json.dumps(provenance, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _case(path: Path) -> CaseInfo:
    try:
        return read_case(path)
    except (CaseError, OSError) as error:
        raise ArtifactError(str(error)) from error


def _provenance(cell: Cell, case: CaseInfo, versions: dict[str, str], staged: Path) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "case": case.name,
        "title": case.title,
        "clauses": list(case.clauses),
        "features": list(case.features),
        "producer": {"name": cell.producer, "versions": versions},
        "generator": {"file": case.file.name, "sha256": file_sha256(case.file)},
        "environment": {"runtime": cell.producer_runtime, "platform": platform.platform()},
        "command": f"savedmodel-compat matrix run --cell {cell.artifact_id}/-/produce",
        "licence": LICENCE,
        "files": hash_files(staged, ("model", "io")),
    }


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(stream, fcntl.LOCK_UN)
