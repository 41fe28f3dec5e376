"""The same migration on machines that a dask scheduler knows: each model a task, each process of a
worker with a warm TensorFlow.

All of them see the models and the output folder under the same paths, or the models by URLs. The
work of a worker that dies is given to another one; a model that kills worker after worker is given
up and recorded.
"""

from __future__ import annotations

import importlib
import itertools
import os
import shutil
import socket
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from savedmodel_common.extras import install
from savedmodel_migration.migrate import records
from savedmodel_migration.migrate.migrator import Migrator, Settings
from savedmodel_migration.migrate.records import Record, Status
from savedmodel_migration.migrate.run import (
    REPORTS,
    WORK,
    Job,
    migrate_one,
    migrator_for,
)

# tasks a thread of the cluster is given beforehand: a million at once are a burden to a scheduler
AHEAD = 4

_of_thread = threading.local()
_of_process: list[Migrator] = []


class NoCluster(Exception):
    """There is no dask here, or no scheduler at that address."""


def run(
    jobs: Sequence[Job], out: Path, settings: Settings, address: str
) -> Generator[Record, None, None]:
    """Migrate all jobs on the cluster at ``address``, and yield the records as they come.

    Raises NoCluster.
    """
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise NoCluster(f"dask.distributed is not installed: {install('cluster')}") from None
    try:
        client = distributed.Client(address, timeout="30s")
    except (OSError, ValueError) as error:
        raise NoCluster(f"no scheduler answers at {address}: {error}") from error
    with client, _workers(client, out):
        waiting = iter(jobs)
        threads = sum(client.nthreads().values()) or 1
        of: dict[str, Job] = {}
        running = distributed.as_completed()

        def submit(count: int) -> None:
            for job in itertools.islice(waiting, count):
                future = client.submit(_task, job, out, settings, pure=False)
                of[future.key] = job
                running.add(future)

        submit(AHEAD * threads)
        for future in running:
            job = of.pop(future.key)
            failure = future.exception()
            record = future.result() if failure is None else _given_up(job, out, settings, failure)
            yield record
            submit(1)


@contextmanager
def _workers(client: Any, out: Path) -> Iterator[None]:
    """End what tasks have started on the cluster, and remove its scratch files."""
    try:
        yield
    finally:
        client.run(_close)
        shutil.rmtree(out / WORK, ignore_errors=True)


def _task(job: Job, out: Path, settings: Settings) -> Record:
    """Runs on a worker of the cluster; its warm process is kept for the next task of this
    thread.
    """
    migrator = getattr(_of_thread, "migrator", None)
    if migrator is None or migrator.settings != settings:
        name = f"{socket.gethostname()}-{os.getpid()}-{threading.get_ident()}"
        migrator = _of_thread.migrator = migrator_for(out / WORK / name, settings)
        _of_process.append(migrator)
    return migrate_one(job, out, migrator, settings)


def _close() -> None:
    """Runs on each worker of the cluster when no task does."""
    global _of_thread
    _of_thread = threading.local()
    while _of_process:
        _of_process.pop().__exit__(None, None, None)


def _given_up(job: Job, out: Path, settings: Settings, error: BaseException) -> Record:
    status = Status.CRASHED if type(error).__name__ == "KilledWorker" else Status.FAILED
    record = Record(job.model.name, job.relative, settings=settings.text, status=status)
    record.reason = f"{type(error).__name__}: {error}"
    records.save(record, out / REPORTS / f"{job.relative}.json", out / WORK / "given-up")
    return record
