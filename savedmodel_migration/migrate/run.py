"""Many models: a pool of warm workers, each model once, resumable, interruptible; the reports at
the end.
"""

from __future__ import annotations

import hashlib
import os
import queue
import re
import shutil
import threading
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from compat_matrix.hosts.host import RESTART_AFTER
from compat_matrix.runtimes.places import RuntimeTrouble
from savedmodel_migration.migrate import elsewhere, records
from savedmodel_migration.migrate.migrator import TO_KERAS, Migrator, Settings
from savedmodel_migration.migrate.records import Record, Status
from savedmodel_migration.migrate.to_keras import KerasMigrator
from savedmodel_tools.find import Model
from savedmodel_tools.record_files import source_hash

MODELS, REPORTS, WORK = "models", "records", ".work"
MAX_NAME = 100  # characters; file systems take 255 bytes with what is put before and after


@dataclass(frozen=True)
class Job:
    """One model and where it goes, ``relative`` to the folders of models and records."""

    model: Model
    relative: str


def jobs_of(models: Sequence[Model]) -> list[Job]:
    """A place in the output for each model.

    Two of one name below two arguments get different ones; none is inside of another.
    """
    taken: set[str] = set()
    above: set[str] = set()  # folders that have places in them
    jobs = []
    for model in models:
        safe = "/".join(_safe(part) for part in model.relative.replace("\\", "/").split("/"))
        low = (
            safe.lower()
        )  # on a file system that knows no case two names that differ in it are one
        if low in taken or low in above or taken & _above(low):
            safe = f"{safe.replace('/', '+')[-MAX_NAME:]}~{_digest(model.name)}"
            low = safe.lower()
        taken.add(low)
        above |= _above(low)
        jobs.append(Job(model, safe))
    return jobs


def _above(place: str) -> set[str]:
    parts = place.split("/")
    return {"/".join(parts[:count]) for count in range(1, len(parts))}


def _safe(part: str) -> str:
    """A name for a folder.

    A record of it is a file of this name and ``.json``, so no folder ends so.
    """
    text = re.sub(r"[^A-Za-z0-9_.+=-]", "_", part)
    text = text if len(text) <= MAX_NAME else f"{text[:MAX_NAME]}~{_digest(part)}"
    text = f"{text}_" if text.lower().endswith(".json") else text
    return f"_{text}" if text.startswith(".") or not text else text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def migrate_one(job: Job, out: Path, migrator: Migrator, settings: Settings) -> Record:
    """Migrate one model into ``out`` unless its record says that this was done."""
    path = out / REPORTS / f"{job.relative}.json"
    target = out / MODELS / job.relative
    known = records.load(path)
    try:
        with job.model.local() as source:
            folder = source if source.is_dir() else source.parent
            digest = source_hash(folder)
            if known is not None and _done(known, digest, settings) and _holds(target, known):
                return replace(known, done_before=True)
            record = migrator.migrate(job.model.name, job.relative, folder, target, digest)
    except OSError as error:
        record = Record(job.model.name, job.relative, settings=settings.text, reason=str(error))
    if record.needs and not record.status.good:
        record.command = elsewhere.command(record.needs, job.model.name, out)
    placed = record.status.good or (settings.partial and record.status is Status.UNPROVED)
    if placed:
        record.output_hash = source_hash(target)
    else:
        _keep_or_remove(record, known, target)
    records.save(record, path, migrator.work)
    return record


def _keep_or_remove(record: Record, known: Record | None, target: Path) -> None:
    """Remove what an earlier run put into the output if the model now proves bad; else it stays
    until another is proved.
    """
    if record.status in (Status.REFUSED, Status.DIFFERS):
        shutil.rmtree(target, ignore_errors=True)
    elif target.exists():
        source = (
            f"of the source with the hash {known.source_hash[:12]}" if known else "without a record"
        )
        record.kept = (
            known.kept if known else ""
        ) or f"the output still holds what an earlier run put there, {source}"


def _done(known: Record, digest: str, settings: Settings) -> bool:
    same = (known.source_hash, known.settings) == (digest, settings.text)
    return same and not known.status.transient and not (known.needs and _is_here(settings))


def _holds(target: Path, known: Record) -> bool:
    """Return whether the output holds the model that was proved, if one was: a user may have put
    another one in its place.
    """
    if not known.output_hash:
        return not known.status.good
    return target.is_dir() and source_hash(target) == known.output_hash


def _is_here(settings: Settings) -> bool:
    """Return whether a release can be asked now that an earlier run lacked."""
    try:
        return elsewhere.runtime_for(settings.release) is not None
    except RuntimeTrouble:
        return False


def recorded(jobs: Sequence[Job], out: Path, settings: Settings) -> int:
    """Return how many models an earlier run into ``out`` has done with these settings, whether or
    not they changed since. A result that is gone is to be made again.
    """
    count = 0
    for job in jobs:
        known = records.load(out / REPORTS / f"{job.relative}.json")
        there = (out / MODELS / job.relative).exists()
        if known is not None and (there or not known.status.good):
            count += _done(known, known.source_hash, settings)
    return count


def run(
    jobs: Sequence[Job], out: Path, settings: Settings, workers: int
) -> Generator[Record, None, None]:
    """Migrate all jobs into ``out`` with ``workers`` processes, and yield the records as they come.

    An interruption, or closing the generator, ends the workers; what is done stays, and the next
    run goes on.
    """
    waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
    for job in jobs:
        waiting.put(job)
    ready: queue.SimpleQueue[Record | BaseException | None] = queue.SimpleQueue()
    stop = threading.Event()
    pool = [
        threading.Thread(
            target=_work, args=(waiting, ready, stop, out, settings, number), daemon=True
        )
        for number in range(max(1, min(workers, len(jobs))))
    ]
    for thread in pool:
        thread.start()
    try:
        left = len(pool)
        while left:
            item = ready.get()
            if item is None:
                left -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                yield item
    finally:
        stop.set()
        for thread in pool:
            thread.join()
        shutil.rmtree(out / WORK, ignore_errors=True)


def _work(
    waiting: queue.SimpleQueue[Job],
    ready: queue.SimpleQueue[Record | BaseException | None],
    stop: threading.Event,
    out: Path,
    settings: Settings,
    number: int,
) -> None:
    try:
        while not stop.is_set():
            # The worker of a run that was just killed may still use a folder of its own.
            with migrator_for(out / WORK / f"{os.getpid()}-{number}", settings) as migrator:
                for _ in range(RESTART_AFTER):
                    if stop.is_set():
                        break
                    job = waiting.get_nowait()
                    ready.put(migrate_one(job, out, migrator, settings))
    except queue.Empty:
        pass
    except BaseException as error:  # a defect of ours ends the run, not a thread without a word
        ready.put(error)
    finally:
        ready.put(None)


def migrator_for(work: Path, settings: Settings) -> Migrator:
    """Return a migrator to TF 2 or to Keras 3; ``work`` is its own folder."""
    return (KerasMigrator if settings.to == TO_KERAS else Migrator)(work, settings)
