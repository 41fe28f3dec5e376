"""``produce``: a producer turns a case into an artifact.

The artifact is made in a sibling directory and renamed when it is complete, so that a directory of
its name is always complete. A lock keeps a second process from making it at the same time.
"""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

from compat_matrix.cases import CaseError, CaseInfo, read_case
from compat_matrix.cells.generators import GENERATOR, GeneratorInfo, read_generator
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell, is_complete
from compat_matrix.cells.producers import GENERATE, Export
from compat_matrix.checks.context import Finding
from compat_matrix.hosts.host import Host
from compat_matrix.requests.artifact import ArtifactError
from compat_matrix.runtimes.pasts import PLAIN, Past
from compat_matrix.runtimes.worker import ReplyError, Worker
from savedmodel_common import provenance
from savedmodel_common.alone import alone
from savedmodel_common.writing import discard, new_folder

LIMIT = 300.0  # seconds
# the end of an error class: the export answers differently from the original
DIFFERS = "v1_answers.Differs"


def producing_worker(cell: Cell, host: Host) -> Worker:
    """Return the worker that makes the artifact of a cell.

    Raises ArtifactError for a producer without a program.
    """
    producer = host.registry.producers.get(cell.producer)
    if producer is None or producer.program is None:
        raise ArtifactError(
            f"the producer {cell.producer} makes nothing; its artifact {cell.artifact} is not there"
        )
    plain = host.past is not None and host.past.plain_productions and not producer.reproducible
    return host.worker(
        cell.producer_runtime, producer.program, "-produce", Past.of_seed(PLAIN) if plain else None
    )


def produce(cell: Cell, host: Host, out: Path, *, again: bool) -> None:
    """Make the artifact of a cell. An existing one is kept unless ``again`` is set.

    Raises the errors of the worker's request, and ArtifactError for a case that cannot be read.
    """
    final = cell.artifact_dir(out)
    final.parent.mkdir(parents=True, exist_ok=True)
    with alone(final.parent / f".{final.name}.lock"):
        if is_complete(final) and not again:
            return
        discard(final)  # consumers must not read an old one if making the new one fails
        scratch = host.scratch / "produce"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        try:
            with new_folder(final) as staged:
                _fill(cell, host, staged, scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _fill(cell: Cell, host: Host, staged: Path, scratch: Path) -> None:
    worker = producing_worker(cell, host)
    case = _source(cell, host)
    asked = case.name if isinstance(case, Export) else str(case.file.absolute())
    if worker.past:
        worker.count_to(worker.past.counter_of(case.name))
    try:
        # The case's own TIMEOUT is for consumers.
        reply = worker.request("produce", LIMIT, case=asked, dir=str(staged), scratch=str(scratch))
    except ReplyError as error:
        if not (error.error_class or "").endswith(DIFFERS):
            raise
        texts = {"traceback": error.traceback, "stderr": error.tail}
        raise Finding(
            Outcome.FAIL_VALUE, str(error), error_class=error.error_class, texts=texts
        ) from error
    provenance.write(
        staged,
        case=case.name,
        title=case.title,
        clauses=case.clauses,
        features=case.features,
        producer={"name": cell.producer, "versions": reply["versions"]},
        generator=case.file,
        environment={"runtime": cell.producer_runtime, "platform": platform.platform()},
        command=f"savedmodel-compat matrix run --cell {cell.artifact_id}/-/produce",
    )


def _source(cell: Cell, host: Host) -> CaseInfo | GeneratorInfo | Export:
    """Return the source of an artifact: a case, a generator of the fixtures, or an export of a
    plug-in.
    """
    producer = host.registry.producers[cell.producer]
    try:
        if producer.exports:
            return next(export for export in producer.exports if export.name == cell.case)
        if GENERATE in producer.capabilities:
            return read_generator(host.generators / cell.case / GENERATOR)
        return read_case(host.cases / f"{cell.case}.py")
    except (CaseError, OSError) as error:
        raise ArtifactError(str(error)) from error
