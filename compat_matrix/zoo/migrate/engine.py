"""One model: planned, converted, proved, put in its place. What is unproved or different never gets there."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from compat_matrix.checks.artifact import ArtifactError, read_artifact
from compat_matrix.consumers.serving import staging
from compat_matrix.runtimes.host import Host
from compat_matrix.runtimes.runtime import LOCAL
from compat_matrix.runtimes.worker import NotStarted, ReplyError, WorkerDied
from compat_matrix.zoo.migrate import advice, proof
from compat_matrix.zoo.migrate.names import names_of
from compat_matrix.zoo.migrate.plan import TF2, ModelPlan, PartPlan, plan_of, size_of, source_hash
from compat_matrix.zoo.migrate.proof import Asker, Request
from compat_matrix.zoo.migrate.records import Part, Record, Status, Verdict, worst
from compat_matrix.zoo.verify.findings import Severity
from compat_matrix.zoo.verify.run import verify
from reference_impl.format.errors import SavedModelError
from reference_impl.format.staging import sync

PROGRAM = "migration_worker"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Settings:
    """What a migration depends on beside the model.

    ``partial``: what cannot be kept is left out and named, and what nothing can be asked of is put into the output too.
    ``limit``: seconds for one step.
    """

    partial: bool = False
    limit: float = 300.0

    @property
    def text(self) -> str:
        """Records of other settings are done again."""
        return f"1 partial={self.partial}"


class Migrator:
    """Migrates models one after the other with one warm worker. Not for several threads; ``work`` is its own folder."""

    def __init__(self, work: Path, settings: Settings) -> None:
        self.work, self.settings = work, settings
        self.host = Host(work)
        self._behind = ThreadPoolExecutor(1)  # what only waits for the disk, while the worker is asked
        self._waiting: list[Future[None]] = []
        self._numbers = itertools.count()

    def __enter__(self) -> Migrator:
        return self

    def __exit__(self, *error: object) -> None:
        self.host.__exit__(*error)
        self._behind.shutdown()
        shutil.rmtree(self.work, ignore_errors=True)

    def migrate(self, name: str, relative: str, source: Path, target: Path, digest: str = "") -> Record:
        """Migrate one model.

        Args:
          name: what the user calls it.
          relative: where it goes below the output folder, and its name in reports.
          source: its directory, only read.
          target: what is made: a SavedModel, or a folder with one for each set of tags and a manifest. It takes its place in
            one rename, and only when everything is proved; what was there goes.
          digest: the hash of its files, if it is known.

        Returns:
          The record; whatever goes wrong with the model is in there.
        """
        start = time.monotonic()
        record = Record(name, relative, settings=self.settings.text)
        source, target = source.absolute(), target.absolute()  # the worker has a directory of its own
        scratch = self.work / str(next(self._numbers))  # that of the last model is being removed
        shutil.rmtree(scratch, ignore_errors=True)  # of a run that was killed
        stage = scratch / "stage"
        try:
            record.source_hash = digest or source_hash(source)
            plan = plan_of(source)
            record.kind, record.tensorflow, record.bytes_before = plan.kind, plan.tensorflow, plan.size
            if plan.problem:
                record.status, record.reason, record.fix = Status.REFUSED, plan.problem, plan.fix
            elif plan.kind == TF2:
                self._copy(record, source, stage, plan)
            else:
                self._convert(record, source, stage, plan)
            if record.status.good or (self.settings.partial and record.status is Status.UNPROVED):
                record.bytes_after = size_of(stage)
                self._settle()
                _exchange(stage, target)
        except (OSError, SavedModelError, staging.Unstageable) as error:
            record.status, record.reason = Status.FAILED, f"{type(error).__name__}: {error}"
        except MemoryError as error:
            record.status, record.reason = Status.CRASHED, "MemoryError: of the process that compares"
            record.fix = advice.fix_of("", type(error).__name__)
        finally:
            with suppress(OSError):
                self._settle()
            self._waiting.append(self._behind.submit(shutil.rmtree, scratch, ignore_errors=True))
        record.seconds = round(time.monotonic() - start, 3)
        return record

    def _settle(self) -> None:
        """Wait for what goes on behind. Raises OSError: the disk has not got all of it."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.result()

    def _copy(self, record: Record, source: Path, stage: Path, plan: ModelPlan) -> None:
        staging.place(source, stage)
        self._waiting.append(self._behind.submit(sync, stage))
        part = plan.parts[0]
        record.parts = [Part(list(part.tags), Status.COPIED, output=record.relative, signatures=part.signatures)]
        record.status = Status.COPIED
        broken = [finding for finding in verify(stage).findings if finding.severity is Severity.ERROR]
        record.parts[0].notes = [f"verify {item.rule}: {' '.join(filter(None, (item.where, item.message)))}" for item in broken]
        if broken and not self.settings.partial:
            record.status = record.parts[0].status = Status.REFUSED
            record.reason, record.fix = f"of TF 2 already, and broken: {broken[0].message}", broken[0].fix

    def _convert(self, record: Record, source: Path, stage: Path, plan: ModelPlan) -> None:
        single = len(plan.parts) == 1
        stage.parent.mkdir(parents=True)
        if not single:
            stage.mkdir()
            entries = [{"tags": part.tags, "path": folder_of(part.tags), "signatures": part.signatures} for part in plan.parts]
            (stage / MANIFEST).write_text(json.dumps({"schema": 1, "models": entries}, indent=1) + "\n", encoding="utf-8")
        for part in plan.parts:
            folder = stage if single else stage / folder_of(part.tags)
            made = Part(list(part.tags), signatures=part.signatures)
            made.output = record.relative if single else f"{record.relative}/{folder.name}"
            record.parts.append(made)
            self._part(source, stage, folder, part, made)
        record.status = worst([part.status for part in record.parts])
        bad = next((part for part in record.parts if part.status is record.status), None)
        record.reason, record.fix = (bad.reason, bad.fix) if bad else ("", "")

    def _part(self, source: Path, stage: Path, target: Path, plan: PartPlan, part: Part) -> None:
        folder = stage.with_name(f"asked {target.name}")
        try:
            asker = Asker(self.host.worker(LOCAL, PROGRAM), folder, self.settings.limit)
            said = asker.ask("convert", dir=str(source), tags=part.tags, target=str(target), partial=self.settings.partial)
            self._waiting.append(self._behind.submit(sync, stage))
            part.notes += said["warnings"]
            part.notes += [f"signature {key!r} can be called in neither: {why}" for key, why in said["unusable"].items()]
            part.names = names_of(target)
            asker.ask("optimize", on=plan.symbolic)  # only the optimizer of functions makes gradients of functions
            part.verdicts = list(self._proved(asker, source, target, part))
            _judge(part, source, self.settings.partial)
        except ReplyError as error:
            scarce = (error.error_class or "").endswith(advice.SCARCE)  # the next run tries again
            part.status = Status.CRASHED if scarce else Status.REFUSED
            part.reason = advice.reason_of(str(error), source, part.tags)
            part.fix = advice.fix_of(str(error), error.error_class)
        except WorkerDied as error:
            part.status, part.reason = Status.CRASHED, f"{error.op}: {error}\n{error.tail}".strip()
            part.fix = advice.fix_of("", error.error_class)
        except NotStarted as error:
            part.status, part.reason = Status.FAILED, str(error)

    def _proved(self, asker: Asker, source: Path, target: Path, part: Part) -> Iterator[Verdict]:
        tags = ["serve", *part.tags] if "serve" not in part.tags else part.tags
        old, again = proof.ask_old(asker, source, part, _given(asker, source, part)), asker.folder / "again"
        if old.problem:
            yield Verdict("answers", "absent", old.problem)
        with asker.model(proof.REFERENCE, target, tags) as handle:
            asker.ask("convert", handle=handle, tags=sorted(tags), target=str(again), partial=False)  # before a call changes it
            if not old.problem:
                yield proof.ask_loaded(asker, proof.REFERENCE, handle, old, part)
        if not old.problem:
            yield from proof.ask_new(asker, target, tags, old, part)
        yield from proof.stored(source, target, part.tags, sorted(tags))
        yield _fixed_point(asker, target, again, sorted(tags))


def _given(asker: Asker, source: Path, part: Part) -> Sequence[Request]:
    """The requests that lie beside a model, as this project's artifacts have them (docs/contracts.md, section 1)."""
    if not (source.parent / "io" / "io.json").is_file():
        return []
    try:
        artifact = read_artifact(source.parent)
    except ArtifactError as error:
        part.notes.append(f"the requests beside the model cannot be used: {error}")
        return []
    return [
        Request(item["id"], item["signature"], artifact.io / item["inputs"])
        for item in artifact.requests
        if item["kind"] == "signature" and sorted(item["tags"]) == sorted(part.tags)
    ]


def _fixed_point(asker: Asker, target: Path, again: Path, tags: list[str]) -> Verdict:
    """The new model and what was saved ``again`` of it are the same, or that one and the next: TF 1.x did not write all of it."""
    if not _same(asker, target, again):
        after = again.with_name("and again")
        asker.ask("convert", dir=str(again), tags=tags, target=str(after), partial=False)
        if not _same(asker, again, after):
            return Verdict("next generation", "differs", "saved again and again it is another model each time")
    return Verdict("next generation", "equal")


def _same(asker: Asker, one: Path, other: Path) -> bool:
    """Whether two SavedModels are one: in every byte, as most are, or else in the canonical form, which takes longer."""
    if source_hash(one) == source_hash(other):
        return True
    first, second = (asker.ask("canonical", dir=str(path))["hash"] for path in (one, other))
    return bool(first == second)


def _judge(part: Part, source: Path, partial: bool) -> None:
    different = [item for item in part.verdicts if item.state == "differs"]
    if different:
        part.status = Status.DIFFERS
        part.reason = "; ".join(f"{item.what}: {item.detail}" for item in different)
        return
    asked = [item for item in part.verdicts if item.what.startswith("answers") and item.state in ("equal", "close")]
    if asked:
        part.status = Status.MIGRATED
        return
    absent = [item.detail for item in part.verdicts if item.state == "absent"]
    # Neither the old nor the new one runs without its op: there is nothing that works to hand over.
    unknown = next((text for text in absent if "Op type not registered" in text), "")
    if unknown:
        part.status, part.reason, part.fix = (
            Status.REFUSED,
            advice.reason_of(unknown, source, part.tags),
            advice.fix_of(unknown, None),
        )
        return
    part.status = Status.UNPROVED
    part.reason = "; ".join(part.not_asked) or next(iter(absent), "")
    part.fix = "give requests that it answers: io/io.json beside the model's directory"
    helps = [advice.never(text) for text in part.not_asked]
    if not part.signatures:
        part.reason, part.fix = advice.NO_SIGNATURE, advice.SIGN_IT
    elif helps and all(helps):
        part.fix = helps[0]
    else:
        return
    part.status = part.status if partial else Status.REFUSED


def folder_of(tags: Sequence[str]) -> str:
    """A safe folder name for a set of tags, another one for another set."""
    text = "+".join(sorted(tags)) or "no-tags"
    safe = re.sub(r"[^A-Za-z0-9_.+-]", "_", text).strip(".")[:80]
    return safe if safe == text else f"{safe}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _exchange(stage: Path, target: Path) -> None:
    """Put a directory in the place of what is there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    old = target.with_name(f".{target.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.replace(old)
    stage.replace(target)
    shutil.rmtree(old, ignore_errors=True)
