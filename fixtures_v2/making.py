"""Artifacts made in the runtime of a release, by the worker that makes those of the matrix.

The worker (``compat_matrix/workers/tf2_worker.py``) runs in the locked environment of the release
and makes all its cases in one process, in the order of their names.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from compat_matrix.cases import read_case
from compat_matrix.checks.produce import LIMIT
from compat_matrix.runtimes.resolve import provide
from compat_matrix.runtimes.runtime import Runtime
from compat_matrix.runtimes.worker import ReplyError, Worker, WorkerDied
from fixtures_v1.compare import differences
from fixtures_v2 import collection
from savedmodel_common import provenance

PROGRAM = "tf2_worker"
PRODUCER = "fixture"
Report = Callable[[str], None]


def add(release: str, cases: Sequence[str], report: Report) -> dict[str, list[str]]:
    """Make the artifacts of a release and put them in place of those that exist.

    Args:
        release: A release of the registry, e.g. ``"2.22"``; its runtime is installed if necessary.
        cases: The names of the cases to make.
        report: Called with each step of an installation.

    Returns:
        For each case the problems, one line each; a case with problems is left as it was.

    Raises:
        RuntimeTrouble: The runtime cannot be installed.
        NotStarted: Its worker does not start.
    """
    found = {}
    with _workshop(release, report) as make:
        for case in cases:
            fresh, lines = make(case)
            if fresh and not lines:
                _replace(fresh, collection.artifact(case, release))
            found[case] = lines
    return found


def check(release: str, cases: Sequence[str], report: Report) -> dict[str, list[str]]:
    """Make the artifacts of a release elsewhere; compare them with the committed ones by meaning.

    Arguments, result and errors are those of :func:`add`.
    """
    found = {}
    with _workshop(release, report) as make:
        for case in cases:
            fresh, lines = make(case)
            committed = collection.artifact(case, release)
            if fresh and not lines:
                lines = [*collection.verify(committed), *differences(committed, fresh)]
            found[case] = lines
    return found


Make = Callable[[str], "tuple[Path | None, list[str]]"]


@contextmanager
def _workshop(release: str, report: Report) -> Iterator[Make]:
    """Give a function that makes the artifact of a case in a temporary folder.

    It returns the folder, None for a case that the release cannot write, and the problems.
    """
    runtime = provide(collection.releases()[release].name, report)
    with tempfile.TemporaryDirectory(prefix="fixtures_v2.") as temporary:
        place = Path(temporary)
        worker = Worker(runtime, PROGRAM, place / "cwd", place / "log")
        try:
            yield lambda case: _made(worker, runtime, release, case, place)
        finally:
            worker.close()


def _made(
    worker: Worker, runtime: Runtime, release: str, case: str, place: Path
) -> tuple[Path | None, list[str]]:
    declared = collection.absence(case, release)
    folder, scratch = place / case, place / "scratch"
    folder.mkdir()
    scratch.mkdir(exist_ok=True)
    file = collection.case_file(case)
    try:
        reply = worker.request(
            "produce", LIMIT, case=str(file), dir=str(folder), scratch=str(scratch)
        )
    except (ReplyError, WorkerDied) as error:
        return None, _failed(declared, str(error), case)
    if declared:
        return None, [f"TensorFlow {release} can write the case: remove it from absent.toml"]
    _write_provenance(folder, case, release, reply["versions"])
    return folder, []


def _failed(declared: collection.Absence | None, message: str, case: str) -> list[str]:
    """Return the problems with a case that could not be made: none if it fails as declared."""
    if declared is None:
        return [f"{case} cannot be made: {message}"]
    if declared.error not in message:
        return [f"{case} fails otherwise than absent.toml says ({declared.error!r}): {message}"]
    return []


def _write_provenance(folder: Path, case: str, release: str, versions: dict[str, str]) -> None:
    file, lock = collection.case_file(case), collection.releases()[release].lock
    info = read_case(file)
    provenance.write(
        folder,
        case=case,
        title=info.title,
        clauses=info.clauses,
        features=info.features,
        producer={"name": PRODUCER, "versions": versions},
        generator=file,
        environment={"lock": lock.name, "sha256": provenance.file_sha256(lock)},
        command=f"python -m fixtures_v2 add {release} {case}",
    )


def _replace(fresh: Path, target: Path) -> None:
    """Put a fresh artifact in the place of the committed one."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.move(str(fresh), str(target))
