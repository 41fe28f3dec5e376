"""One model: planned, converted, proved, put in its place.

A model that is unproved or different never gets there.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from compat_matrix.cells.registry import OURS
from compat_matrix.checks import oracle
from compat_matrix.hosts.host import Loaded
from compat_matrix.hosts.pool import Hosts
from compat_matrix.requests.questions import RANDOM
from compat_matrix.runtimes.places import RuntimeTrouble
from compat_matrix.runtimes.runtime import local_runtime
from compat_matrix.runtimes.worker import NotStarted, ReplyError, WorkerDied
from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container import layout
from reference_impl.format.container.files import shown
from reference_impl.format.container.staging import put_in_place, sync
from reference_impl.format.names import OBJECT_GRAPH_KEY
from savedmodel_common import fast, staging
from savedmodel_common.printable import told
from savedmodel_migration.migrate import advice, elsewhere, proof
from savedmodel_migration.migrate.asked_before import AskedBefore
from savedmodel_migration.migrate.lost_kernels import convertible, rewritten
from savedmodel_migration.migrate.plan import (
    TF2,
    ModelPlan,
    PartPlan,
    plan_of,
    size_of,
)
from savedmodel_migration.migrate.proof import Asker, Away, Old
from savedmodel_migration.migrate.records import (
    KERAS_SETTINGS,
    Part,
    Record,
    Status,
    Verdict,
    worst,
)
from savedmodel_tools.record_files import source_hash
from savedmodel_tools.verify.findings import Severity
from savedmodel_tools.verify.run import verify

MANIFEST = "manifest.json"
TO_KERAS = "keras"  # of `Settings.to`
# Rules of `verify` about where a model runs and what tf.saved_model.load refuses: TensorFlow itself
# is asked, and what it refuses our load and save may mend.
REPAIRABLE = "SMC5"


@dataclass(frozen=True)
class Settings:
    """The settings of a migration."""

    # leave out and name what cannot be kept, and put what nothing can be asked of into the output
    partial: bool = False
    limit: float = 300.0  # seconds for one step
    to: str = "tf2"  # what is made, TF 2 or Keras 3
    custom_objects: tuple[
        str, ...
    ] = ()  # ``MODULE:NAME``, whose Python code may be run for Keras 3
    trust_lambda: bool = False  # so may that in the file
    wrap: bool = True  # what cannot be rebuilt becomes a layer
    release: str = (
        ""  # the runtime that answers for old models which the installed TensorFlow does not run
    )

    @property
    def text(self) -> str:
        """Records of other settings are done again."""
        if self.to == TO_KERAS:
            allowed = f"trust_lambda={self.trust_lambda} wrap={self.wrap}"
            return f"{KERAS_SETTINGS} custom_objects={','.join(self.custom_objects)} {allowed}"
        return f"1 partial={self.partial}"


class Migrator:
    """Migrates models one after the other with one warm worker.

    Not for several threads; ``work`` is its own folder.
    """

    def __init__(self, work: Path, settings: Settings) -> None:
        self.work, self.settings = work, settings
        self.hosts = Hosts(
            work,
            warm=True,
            registry=replace(OURS, consumers={**OURS.consumers, **proof.IN_ONE_PROCESS}),
        )
        self.hosts.know([local_runtime()])
        self._behind = ThreadPoolExecutor(
            1
        )  # what only waits for the disk, while the worker is asked
        self._waiting: list[Future[None]] = []
        self._numbers = itertools.count()

    def __enter__(self) -> Migrator:
        return self

    def __exit__(self, *error: object) -> None:
        self.hosts.close()
        self._behind.shutdown()
        shutil.rmtree(self.work, ignore_errors=True)

    def migrate(
        self, name: str, relative: str, source: Path, target: Path, digest: str = ""
    ) -> Record:
        """Migrate one model; whatever goes wrong with it is in the record.

        Args:
          name: what the user calls it.
          relative: where it goes below the output folder, and its name in reports.
          source: its directory, only read.
          target: what is made: a SavedModel, or a folder with one for each set of tags and a
            manifest. It takes its place in one rename, and only when everything is proved; what was
            there goes.
          digest: the hash of its files, if it is known.
        """
        start = time.monotonic()
        record = Record(name, relative, settings=self.settings.text)
        source, target = (
            source.absolute(),
            target.absolute(),
        )  # the worker has a directory of its own
        scratch = self.work / str(next(self._numbers))  # that of the last model is being removed
        shutil.rmtree(scratch, ignore_errors=True)  # of a run that was killed
        stage = scratch / "stage"
        try:
            record.source_hash = digest or source_hash(source)
            plan = plan_of(source)
            record.kind, record.tensorflow, record.bytes_before = (
                plan.kind,
                plan.tensorflow,
                plan.size,
            )
            if plan.problem:
                record.status, record.reason, record.fix = Status.REFUSED, plan.problem, plan.fix
            else:
                self._make(record, source, stage, plan)
            if not record.status.good and not record.fix:
                record.fix = advice.of_verify(source)
            if record.status.good or (self.settings.partial and record.status is Status.UNPROVED):
                record.bytes_after = size_of(stage)
                self._settle()
                target.parent.mkdir(parents=True, exist_ok=True)
                put_in_place(stage, target)
        except (OSError, SavedModelError, staging.Unstageable) as error:
            record.status, record.reason = Status.FAILED, told(error)
        except MemoryError as error:
            record.status, record.reason = (
                Status.CRASHED,
                "MemoryError: of the process that compares",
            )
            record.fix = advice.fix_of("", type(error).__name__)
        finally:
            with suppress(OSError):
                self._settle()
            self._waiting.append(self._behind.submit(shutil.rmtree, scratch, ignore_errors=True))
        record.seconds = round(time.monotonic() - start, 3)
        return record

    def _make(self, record: Record, source: Path, stage: Path, plan: ModelPlan) -> None:
        """Make the new model in ``stage`` and judge it."""
        if plan.kind == TF2:
            self._copy(record, source, stage, plan)
        else:
            self._convert(record, source, stage, plan)

    def _settle(self) -> None:
        """Wait for what goes on behind. Raises OSError: the disk has not got all of it."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.result()

    def _copy(self, record: Record, source: Path, stage: Path, plan: ModelPlan) -> None:
        """Take a model of TF 2 as it is where TensorFlow loads it, else what `reference_impl` loads
        and saves of it.
        """
        staging.place(source, stage)
        self._waiting.append(self._behind.submit(sync, stage))
        (wanted,) = plan.parts
        part = Part(
            list(wanted.tags), Status.COPIED, output=record.relative, signatures=wanted.signatures
        )
        errors = [
            finding for finding in verify(stage).findings if finding.severity is Severity.ERROR
        ]
        part.notes = [
            f"verify {item.rule}: {' '.join(filter(None, (item.where, item.message)))}"
            for item in errors
        ]
        broken = next((item for item in errors if not item.rule.startswith(REPAIRABLE)), None)
        lost = rewritten(layout.read(source).saved_model)[1]
        if (
            broken
        ):  # it is not loaded: what it would do to this machine may be what is wrong with it
            part.status = Status.UNPROVED if self.settings.partial else Status.REFUSED
            part.reason, part.fix = f"of TF 2 already, and broken: {broken.message}", broken.fix
        elif problem := "; ".join(lost) or self._prove_copy(source, stage, wanted, part):
            self._settle()
            shutil.rmtree(stage)
            part = Part(part.tags, output=part.output, signatures=part.signatures, notes=part.notes)
            self._repair(source, stage, wanted, part, problem)
        record.parts = [part]
        record.status, record.reason, record.fix = part.status, part.reason, part.fix

    def _prove_copy(self, source: Path, copy: Path, plan: PartPlan, part: Part) -> str:
        """Compare the copy's answers with those of the original.

        Return why TensorFlow does not load it, "" where it does.
        """
        problem = ""
        with errors_noted(source, part):
            asker = self._asker(copy, copy)
            asker.optimize(plan.symbolic)
            old = proof.ask_old(asker, source, part, proof.DIFFERENTIATED)
            problem = old.problem
            if not problem:
                part.verdicts = [*proof.ask_new(asker, copy, part.tags, old, part, proof.READERS)]
                # The bytes are the same, so where another loader differs it does so for the
                # original too.
                _judge_copy(part)
        return problem

    def _repair(self, source: Path, target: Path, plan: PartPlan, part: Part, problem: str) -> None:
        """Load and save a model that TensorFlow does not load; it is proved like a converted
        one.
        """
        self._part(source, target, target, plan, part, (proof.OLD, proof.REFERENCE))
        part.notes.append(problem)
        if part.status is Status.MIGRATED:
            part.status = Status.REPAIRED
        elif part.status.transient:
            return
        elif not part.signatures and proof.NOT_LOADED not in part.reason:
            part.status, part.fix = (
                Status.UNPROVED,
                "export it with a signature; --partial puts it into the output as it is now",
            )
            part.reason = (
                f"{problem}; saved again it loads, but it has no signature whose answers could be"
                " compared"
            )
        else:
            part.status = (
                Status.UNPROVED if self.settings.partial and target.exists() else Status.REFUSED
            )
            part.fix = advice.way_out(problem, None, source, part.tags) or part.fix
            again = (
                ""
                if proof.NOT_LOADED in part.reason
                else f"; saved again by reference_impl it is not proved: {part.reason}"
            )
            part.reason = advice.reason_of(problem, source, part.tags) + again

    def _convert(self, record: Record, source: Path, stage: Path, plan: ModelPlan) -> None:
        single = len(plan.parts) == 1
        stage.parent.mkdir(parents=True)
        if not single:
            stage.mkdir()
            entries = [
                {"tags": part.tags, "path": folder_of(part.tags), "signatures": part.signatures}
                for part in plan.parts
            ]
            (stage / MANIFEST).write_text(
                json.dumps({"schema": 1, "models": entries}, indent=1) + "\n", encoding="utf-8"
            )
        before = AskedBefore() if not single and fast.is_on() else None
        for part in plan.parts:
            folder = stage if single else stage / folder_of(part.tags)
            made = Part(list(part.tags), signatures=part.signatures)
            made.output = record.relative if single else f"{record.relative}/{folder.name}"
            record.parts.append(made)
            self._part(source, stage, folder, part, made, before=before)
        record.status = worst([part.status for part in record.parts])
        bad = next((part for part in record.parts if part.status is record.status), None)
        record.reason, record.fix = (bad.reason, bad.fix) if bad else ("", "")

    def _part(
        self,
        source: Path,
        stage: Path,
        target: Path,
        plan: PartPlan,
        part: Part,
        olds: Sequence[str] = (proof.OLD,),
        before: AskedBefore | None = None,
    ) -> None:
        origin = source
        with errors_noted(source, part):
            asker = self._asker(stage, target)
            asker.known = before.gradients if before else None
            origin, replaced = convertible(source, asker.place("without lost kernels"))
            part.notes += replaced
            said = asker.ask(
                "convert",
                dir=str(origin),
                tags=part.tags,
                target=str(target),
                partial=self.settings.partial,
            )
            self._waiting.append(self._behind.submit(sync, stage))
            part.notes += said["warnings"]
            part.notes += [
                f"signature {key!r} can be called in neither: {why}"
                for key, why in said["unusable"].items()
            ]
            part.names = names_of(target)
            asker.optimize(
                plan.symbolic
            )  # only the optimizer of functions makes gradients of functions
            old = before.old(plan.content, asker, part) if before else None
            if old is None:
                noted = len(part.notes)
                old = self._old(asker, source, part, olds, origin)
                if before:
                    before.keep(plan.content, old, part.notes[noted:])
            part.verdicts = list(self._proved(asker, old, target, part))
            _judge(part, source, self.settings.partial)
        if origin != source:  # a copy for this run only: its path would mean nothing to the user
            part.reason, *part.notes = [
                text.replace(str(origin), str(source)) for text in (part.reason, *part.notes)
            ]

    def _asker(self, stage: Path, target: Path) -> Asker:
        return Asker(self.hosts, stage.with_name(f"asked {target.name}"), self.settings.limit)

    def _old(
        self, asker: Asker, source: Path, part: Part, olds: Sequence[str], origin: Path
    ) -> Old:
        """Ask the old model, in another release if the installed TensorFlow lacks an op of it.

        ``origin``: the source, or its copy without what the installed TensorFlow lacks.
        """
        old = proof.ask_first(asker, source, part, olds)
        if not (
            part.signatures and any(map(advice.is_lack, (old.problem, *part.not_asked.values())))
        ):
            return old
        runtime = elsewhere.runtime_for(self.settings.release)
        if runtime is None:
            part.needs = elsewhere.names_of(elsewhere.releases_that_can(source, part.tags))
            return old
        away = Away(runtime, origin if origin != source else None)
        return proof.ask_away(asker, source, part, away) or old

    def _proved(self, asker: Asker, old: Old, target: Path, part: Part) -> Iterator[Verdict]:
        tags = ["serve", *part.tags] if "serve" not in part.tags else part.tags
        again = asker.folder / "again"

        def save_again(loaded: Loaded) -> None:
            asker.ask(
                "convert", handle=loaded.handle, tags=sorted(tags), target=str(again), partial=False
            )

        if old.problem:
            yield Verdict("answers", "absent", old.problem)
            with asker.model(proof.REFERENCE, target, tags) as loaded:
                save_again(loaded)
        else:
            roles = (proof.REFERENCE, *proof.READERS)
            yield from proof.ask_new(
                asker, target, tags, old, part, roles, {proof.REFERENCE: save_again}
            )
        yield from proof.stored(old, target, sorted(tags))
        if old.drawn_weights:
            yield Verdict(
                "next generation",
                "none",
                "each load draws new weights, so no two generations are the same",
            )
        else:
            yield _fixed_point(asker, target, again, sorted(tags))


@contextmanager
def errors_noted(source: Path, part: Part) -> Iterator[None]:
    """Turn errors of the worker into the status of ``part``."""
    try:
        yield
    except ReplyError as error:
        scarce = (error.error_class or "").endswith(advice.SCARCE)  # the next run tries again
        part.status = Status.CRASHED if scarce else Status.REFUSED
        part.reason = shown(advice.reason_of(str(error), source, part.tags))
        part.fix = advice.way_out(str(error), error.error_class, source, part.tags)
    except WorkerDied as error:
        part.status, part.reason = Status.CRASHED, f"{error.op}: {error}\n{error.tail}".strip()
        part.fix = advice.fix_of("", error.error_class)
    except proof.Unanswered as error:
        part.status, part.reason = Status.CRASHED if error.died else Status.FAILED, str(error)
        part.fix = advice.fix_of("", error.error_class) if error.died else ""
    except (NotStarted, RuntimeTrouble) as error:
        part.status, part.reason = Status.FAILED, str(error)


def _fixed_point(asker: Asker, target: Path, again: Path, tags: list[str]) -> Verdict:
    """The new model and what was saved ``again`` of it are the same, or that one and the next: TF
    1.x did not write all of it.
    """
    if not _same(asker, target, again):
        after = again.with_name("and again")
        asker.ask("convert", dir=str(again), tags=tags, target=str(after), partial=False)
        if not _same(asker, again, after):
            return Verdict(
                "next generation", "differs", "saved again and again it is another model each time"
            )
    return Verdict("next generation", "equal")


def _same(asker: Asker, one: Path, other: Path) -> bool:
    """Whether two SavedModels are one: in every byte, as most are, or else in the canonical form,
    which takes longer.
    """
    if source_hash(one) == source_hash(other):
        return True
    first, second = (asker.ask("canonical", dir=str(path))["hash"] for path in (one, other))
    return bool(first == second)


def _judge(part: Part, source: Path, partial: bool) -> None:
    """Set the status of a converted MetaGraph: it is proved when every signature that the old model
    answers was compared.
    """
    different = [item for item in part.verdicts if item.state == "differs"]
    away = part.answered_by not in ("", local_runtime().tensorflow_version)
    lost = next((item.detail for item in different if away and advice.is_lack(item.detail)), "")
    # another release answers for the old model, and the new one needs what the installed one lacks
    if lost:
        part.status, part.reason = Status.REFUSED, advice.reason_of(lost, source, part.tags)
        part.fix = advice.way_out(lost, None, source, part.tags)
        return
    if different:
        part.status = Status.DIFFERS
        part.reason = "; ".join(f"{item.what}: {item.detail}" for item in different)
        return
    absent = [
        item.detail
        for item in part.verdicts
        if item.what.startswith("answers") and item.state == "absent"
    ]
    unasked = {key: why for key, why in part.not_asked.items() if key not in part.asked}
    alive = {key: why for key, why in unasked.items() if not advice.never(why)}
    compared = [
        item
        for item in part.verdicts
        if item.what.startswith("answers") and item.state in ("equal", "close")
    ]
    if compared and part.asked and not alive:
        part.status = Status.MIGRATED
        return
    # Neither the old nor the new one runs without its op: there is nothing that works to hand over.
    unknown = next((text for text in absent if "Op type not registered" in text), "")
    if unknown:
        part.status = Status.REFUSED
        part.reason = advice.reason_of(unknown, source, part.tags)
        part.fix = advice.way_out(unknown, None, source, part.tags)
        return
    part.status = Status.UNPROVED
    if not part.signatures:
        part.reason, part.fix = advice.NO_SIGNATURE, advice.SIGN_IT
    elif unasked and not alive and not part.asked:
        part.reason, part.fix = (
            advice.unasked(unasked, part.signatures),
            advice.never(next(iter(unasked.values()))),
        )
    else:
        part.reason = (
            advice.unasked(alive, part.signatures)
            if alive
            else next(iter(absent), "nothing could be compared")
        )
        # Nothing deterministic is left of any signature: no other request would help.
        random = bool(alive) and not part.asked and all(RANDOM in why for why in alive.values())
        part.reason = f"{advice.RANDOM_ALL}: {part.reason}" if random else part.reason
        # The releases that can are those of the model: each signature has its own further advice.
        there = next(
            (
                text
                for why in alive.values()
                if (text := advice.way_out(why, None, source, part.tags))
            ),
            "",
        )
        settled = "; ".join(
            dict.fromkeys(advice.settled_by(key, why) for key, why in alive.items())
        )
        unusable = [note for note in part.notes if note.startswith(advice.UNUSABLE)]
        settled = "; ".join([*unusable, settled]) if settled else ""
        part.fix = there or settled or advice.way_out(part.reason, None, source, part.tags)
        return
    part.status = part.status if partial else Status.REFUSED


def _judge_copy(part: Part) -> None:
    """Judge a copy by what `tf.saved_model.load` answers; of other loaders it is noted how they
    differ.
    """
    for verdict in part.verdicts:
        if verdict.state == "differs" and verdict.what == f"answers, {proof.DIFFERENTIATED}":
            part.status, part.reason = Status.DIFFERS, f"{verdict.what}: {verdict.detail}"
        elif verdict.state == "differs":
            part.notes.append(
                f"{verdict.what}: the copy and the original differ from tf.saved_model.load:"
                f" {verdict.detail}"
            )
    part.verdicts = [
        item for item in part.verdicts if item.state != "differs" or part.status is Status.DIFFERS
    ]
    loads = Verdict(
        f"loads, {proof.DIFFERENTIATED}", "equal", "the copy, in the TensorFlow of this run"
    )
    part.verdicts.insert(0, loads)


def folder_of(tags: Sequence[str]) -> str:
    """A safe folder name for a set of tags, another one for another set."""
    text = "+".join(sorted(tags)) or "no-tags"
    safe = re.sub(r"[^A-Za-z0-9_.+-]", "_", text).strip(".")[:80]
    return safe if safe == text else f"{safe}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def names_of(new: Path) -> dict[str, str]:
    """The map of one export; empty where nothing is stored."""
    prefix = oracle.layout_of(new).checkpoint_prefix
    if not prefix.with_name(prefix.name + ".index").exists():
        return {}
    with BundleReader(prefix) as bundle:
        if OBJECT_GRAPH_KEY not in bundle:
            return {}
        graph = schema.parse(
            schema.TrackableObjectGraph, bytes(bundle.read(OBJECT_GRAPH_KEY).item())
        )
    attributes = itertools.chain.from_iterable(node.attributes for node in graph.nodes)
    return {item.full_name: item.checkpoint_key for item in attributes if item.full_name}
