"""The new model against the old one: answers, gradients, everything stored, and the next
generation.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from compat_matrix.cells.consumers import CONSUMERS, Consumer
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import ABSENT
from compat_matrix.cells.results import Result
from compat_matrix.checks import CHECKS, oracle
from compat_matrix.checks.kinds.signatures import compare_signatures
from compat_matrix.engine.loop import run_plan
from compat_matrix.hosts.host import Loaded
from compat_matrix.hosts.pool import Hosts
from compat_matrix.plan.planning import Axes, expand, fixture_artifact
from compat_matrix.requests.artifact import ArtifactError
from compat_matrix.requests.chance import chance_notes, left_to_chance, random_notes, tensors_of
from compat_matrix.requests.draws import drawn
from compat_matrix.requests.given import Export, beside, copied, questions_of
from compat_matrix.requests.policies import ACROSS_RELEASES, GENERATIONS, OptionError
from compat_matrix.requests.questions import Asked, Question, invent
from compat_matrix.requests.recorder import Reader, Recorder, line_of
from compat_matrix.runtimes.programs import Program
from compat_matrix.runtimes.runtime import LOCAL, Runtime, local_runtime
from compat_matrix.runtimes.worker import NotStarted, ReplyError, WorkerDied
from compat_matrix.verdict import Ledger
from reference_impl.errors import V1CheckpointError
from reference_impl.graph.references import CALL_OPS, FunctionIndex
from savedmodel_common import tensors
from savedmodel_common.compare import (
    EXACT,
    Tolerance,
    compare_named,
    compare_tensor,
)
from savedmodel_common.gist import gist
from savedmodel_common.tensors import Tensor
from savedmodel_migration import workers
from savedmodel_migration.migrate.advice import UNUSABLE, never
from savedmodel_migration.migrate.false_statements import askable, corrected
from savedmodel_migration.migrate.records import Part, Verdict
from savedmodel_migration.migrate.same_graph import KnownGradients, model_content

# all readers in one process: one for each would import TensorFlow once more for every model
PROGRAM = workers.MIGRATION
SESSION_PROGRAM = "contrib_session_worker"  # the old model's session in another release
OLD = "v1_session"
REFERENCE = "reference"  # also saves the new model again
READERS = ("tf2", "c_api")  # the others
DIFFERENTIATED = "tf2"  # what fine-tunes the new model
DRAWS = 2  # repetitions of gradients of a graph that draws numbers
_SHOWN = 3
NOT_LOADED = "does not load"
ROUNDED = "as far as rounding moves the answers of the old model"


def in_one_process(name: str) -> Consumer:
    """Return a consumer as the one worker of a migration holds it."""
    return replace(CONSUMERS[name], program=PROGRAM, role=name)


IN_ONE_PROCESS = {name: in_one_process(name) for name in (REFERENCE, *READERS)}
LOADERS = {
    OLD: "a session",
    REFERENCE: "reference_impl.load",
    DIFFERENTIATED: "tf.saved_model.load",
}


class Asker:
    """One warm worker that holds every reader, asked about one MetaGraph; ``folder`` holds what
    goes to and fro.

    ``known``: gradients of the new models of other MetaGraphs, if the old model has several.
    """

    def __init__(
        self,
        hosts: Hosts,
        folder: Path,
        limit: float,
        program: Program = PROGRAM,
        purpose: str = "",
    ) -> None:
        self.hosts, self.host, self.folder, self.limit = hosts, hosts.of(LOCAL), folder, limit
        self.known: KnownGradients | None = None
        self.worker = self.host.worker(LOCAL, program, purpose)
        self.worker.hello()
        self._generation = (
            self.worker.generation
        )  # one that took a dead one's place knows nothing of this model
        self._optimized: bool | None = None
        self._numbers = itertools.count()
        folder.mkdir(parents=True, exist_ok=True)

    def place(self, name: str) -> Path:
        """The path of a new file or folder; another asker may have used the folder before."""
        paths = (self.folder / f"{number}.{name}" for number in self._numbers)
        return next(path for path in paths if not path.exists())

    def optimize(self, on: bool) -> None:
        """Say whether functions are optimized from now on. Raises what `ask` raises."""
        self._optimized = on
        self.ask("optimize", on=on)

    def renew(self) -> None:
        """Go on with the process that takes the place of one that died.

        Raises what `ask` raises.
        """
        self.worker.hello()
        self._generation = self.worker.generation
        if self._optimized is not None:
            self.optimize(self._optimized)

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """Raises ReplyError, WorkerDied, NotStarted."""
        return self.worker.request(op, self.limit, self._generation, **fields)

    def model(
        self, role: str, directory: Path, tags: Sequence[str], shared: bool = False
    ) -> AbstractContextManager[Loaded]:
        """A loaded model. ``shared``: the one that a cell asks too, as long as it runs."""
        return self.host.model(self.worker, directory, tags, self.limit, shared, role)

    def gradients(self, loaded: Loaded, question: Question, io: Path) -> dict[str, Tensor]:
        """d(sum of the floating outputs that are compared)/d(variables and floating inputs)."""
        outputs = self.place(f"{loaded.role}.gradients.npz")
        fields = {
            "signature": question.signature,
            "inputs": str(io / question.entry["inputs"]),
            "outputs": str(outputs),
        }
        loaded.ask("gradients", self.limit, left_out=sorted(question.not_compared), **fields)
        return dict(tensors.load(outputs))

    def cells(self, role: str, artifact: Path) -> Iterator[Result]:
        """The result of the cell in which a reader is asked about an artifact; its model is freed
        when this is closed.
        """
        planned = replace(fixture_artifact(artifact), timeout=self.limit)
        here = replace(local_runtime(), tensorflow_version=_version())
        plan = expand([planned], {role: IN_ONE_PROCESS[role]}, CHECKS, Axes((here,)), Ledger())
        return run_plan(self.hosts, artifact.parent, plan)


def _version() -> str:
    return local_runtime().tensorflow_version or ABSENT  # the worker has started


@dataclass(frozen=True)
class Away:
    """Another release that answers for the old model.

    ``copy``: the model without what the installed TensorFlow lacks. It is asked here for what is
    compared beside the answers.
    """

    runtime: Runtime
    copy: Path | None

    @property
    def version(self) -> str:
        """The version of its TensorFlow."""
        return self.runtime.tensorflow_version or ABSENT


class Old(Recorder):
    """The old model: its answers, as every recorder takes them, its gradients by request, and what
    its tables hold.
    """

    def __init__(
        self, asker: Asker, model: Path, io: Path, part: Part, role: str, away: Away | None = None
    ) -> None:
        policy = replace(
            GENERATIONS,
            limit=asker.limit,
            tolerance=ACROSS_RELEASES if away else GENERATIONS.tolerance,
        )
        super().__init__(oracle.layout_of(model), model, io, asker.hosts.of, policy)
        self.asker, self.part, self.role, self.away = asker, part, role, away
        self.here = away.copy if away else model  # what the installed TensorFlow runs
        self.requests: list[Question] = []  # those that it answers, in their order
        self.dead: list[Question] = []  # of signatures that fail whatever they are asked
        self.gradients: dict[str, dict[str, Tensor]] = {}
        self.drawn_weights: list[str] = []  # variables that each load draws anew
        self.deadly: list[
            str
        ] = []  # why there are no gradients: TensorFlow ends the process that makes them
        self._bounds: dict[tuple[str, bool], dict[str, float]] = {}
        self.tables: list[
            list[str]
        ] = []  # dtypes of keys and values, and what each table holds in words
        self.problem = ""  # why it does not load

    def again(self, asker: Asker, part: Part) -> Old:
        """Return the same answers for ``part``, a MetaGraph that is equal but for its tags."""
        other = copy(self)
        other.asker, other.part = asker, part

        def asked_by(question: Question) -> Question:
            return replace(question, entry={**question.entry, "tags": list(part.tags)})

        other.requests = list(map(asked_by, self.requests))
        other.dead = list(map(asked_by, self.dead))
        other.drawn_weights, other._bounds = list(self.drawn_weights), dict(self._bounds)
        return other

    @property
    def reader(self) -> Reader:
        """The loader that answers."""
        if self.away is None:
            return Reader(LOCAL, _version(), in_one_process(self.role))
        session = replace(CONSUMERS[self.role], program=SESSION_PROGRAM)
        return Reader(self.away.runtime.name, self.away.version, session)

    @property
    def meta_graph(self) -> Any:
        """The MetaGraph that is asked."""
        return self.found.meta_graph(self.part.tags)

    def load(self) -> None:
        """Load the model: where nothing can be asked of it, this alone is known."""
        try:
            with self.asker.model(self.role, self.model, self.part.tags):
                return
        except ReplyError as error:
            self.refused[self.role, tuple(self.part.tags)] = line_of(error)

    def begin(self, loaded: Loaded) -> None:
        """Ask a session what its tables hold."""
        if self.away is None:
            self._find_tables(loaded)

    def end(self, loaded: Loaded, answered: Sequence[Question]) -> None:
        """Ask a session for the gradients of what depends neither on state nor on chance."""
        if self.away is None:
            self._find_gradients(loaded, answered)

    def ask_copy(self, answered: Sequence[Question]) -> None:
        """Ask the copy that runs here what its tables hold, and for gradients: in the other release
        a session only answers.
        """
        if self.here is None:
            return
        try:
            with self.asker.model(self.role, self.here, self.part.tags) as loaded:
                self._find_tables(loaded)
                self._find_gradients(loaded, answered)
        except ReplyError as error:
            _note(
                self.part,
                "tables and gradients are not compared, the copy does not load here:"
                f" {line_of(error)}",
            )

    def _find_tables(self, loaded: Loaded) -> None:
        if self.role == OLD and any(
            "HashTable" in node.op for node in self.meta_graph.graph_def.node
        ):
            try:
                self.tables = loaded.ask("tables", self.policy.limit)["tables"]
            except ReplyError as error:
                _note(
                    self.part,
                    "the tables of the old model are not compared, they cannot be read:"
                    f" {line_of(error)}",
                )

    def _find_gradients(self, loaded: Loaded, answered: Sequence[Question]) -> None:
        for question in answered if self.role == OLD else ():
            what = f"signature {question.signature!r}"
            if question.stateful or left_to_chance(self.meta_graph, question.signature):
                _note(self.part, f"{what} depends on state: its gradients are not compared")
                continue
            if _calls_within_calls(self.meta_graph, question.signature):
                # TensorFlow would work for long to say so.
                _note(
                    self.part,
                    f"TensorFlow makes no gradients of the old {what} in a session: its function"
                    " calls functions",
                )
                continue
            try:
                if loaded.alive:
                    self.gradients[question.entry["id"]] = self._gradients(loaded, question)
                    continue
                with self._loaded_here() as again:
                    self.gradients[question.entry["id"]] = self._gradients(again, question)
            except ReplyError as error:
                _note(
                    self.part, f"TensorFlow makes no gradients of the old {what}: {line_of(error)}"
                )
            except (
                WorkerDied
            ) as death:  # of the old model, which proves nothing against the new one
                slow = (
                    "takes longer than --limit"
                    if death.timed_out
                    else f"ends the process ({death.error_class})"
                )
                self.deadly.append(f"TensorFlow {slow} while it makes gradients of the old {what}")
                _note(self.part, self.deadly[-1])
                self.asker.renew()

    def bounds(self, question: Question, gradients: bool) -> dict[str, float]:
        """Return how far rounding may move each output of the old model, or each gradient; {} where
        it cannot be measured.
        """
        place = question.entry["id"], gradients
        if place not in self._bounds:
            fields = {
                "signature": question.signature,
                "inputs": str(self.io / question.entry["inputs"]),
                "gradients": gradients,
            }
            try:
                with self._loaded_here() as loaded:
                    said = loaded.ask(
                        "rounding",
                        self.policy.limit,
                        left_out=sorted(question.not_compared),
                        **fields,
                    )
                self._bounds[place] = said["bounds"]
            except ReplyError:
                self._bounds[place] = {}
        return self._bounds[place]

    def held(self) -> dict[str, Tensor]:
        """Return what the variables hold after a load, by name. Raises ReplyError, WorkerDied."""
        outputs = self.asker.place("held.npz")
        with self._loaded_here() as loaded:
            loaded.ask("held", self.policy.limit, outputs=str(outputs))
        return dict(tensors.load(outputs))

    def _loaded_here(self) -> AbstractContextManager[Loaded]:
        assert self.here is not None
        return self.asker.model(self.role, self.here, self.part.tags)

    def _gradients(self, loaded: Loaded, question: Question) -> dict[str, Tensor]:
        """Return the gradients without those that depend on what each call draws: these are
        noted.
        """
        found = self.asker.gradients(loaded, question, self.io)
        for _ in range(DRAWS if drawn(self.meta_graph, question.signature) else 0):
            again = self.asker.gradients(loaded, question, self.io)
            for item in compare_named(found, again, EXACT):
                said = (
                    f"gradient of signature {question.signature!r} is not compared, it is another"
                    " one in each call"
                )
                _note(self.part, f"{item.where}: {said}")
                found.pop(item.where, None)
        return found


def _calls_within_calls(meta_graph: Any, signature: str) -> bool:
    """Return whether every output of a signature is that of a function that calls others, as
    exports of TF 2 are.

    Sessions have no gradient of a call inside of a function.
    """
    library = FunctionIndex(meta_graph.graph_def.library)
    nodes = {node.name: node for node in meta_graph.graph_def.node}
    refs = list(itertools.chain(*tensors_of(meta_graph.signature_def[signature].outputs).values()))
    for ref in refs:
        called = library.called(nodes[ref.source]) if ref.source in nodes else None
        if called is None or not any(
            node.op in CALL_OPS for node in library.functions[called].node_def
        ):
            return False
    return bool(refs)


def ask_first(asker: Asker, model: Path, part: Part, roles: Sequence[str]) -> Old:
    """Ask the old model through the first of ``roles`` that loads it; the answer of the last, where
    none does.
    """
    for role in roles:
        old = ask_old(asker, model, part, role)
        if not old.problem:
            break
    return old


def ask_away(asker: Asker, model: Path, part: Part, away: Away) -> Old | None:
    """Ask the old model in another release.

    Return None if it does not load there. A note says so if it answers nothing.
    """
    asker.hosts.know([away.runtime])
    asked = Part(part.tags, signatures=part.signatures)
    why = ""
    try:
        old = ask_old(asker, model, asked, OLD, away)
        old.ask_copy(old.requests)
        why = old.problem or next(
            (f"signature {key!r}: {text}" for key, text in asked.not_asked.items()),
            "nothing can be asked",
        )
    except (WorkerDied, NotStarted) as error:
        old, why = None, line_of(error)
    if old is None or not old.requests:
        _note(part, f"TensorFlow {away.version} does not answer for the old model either: {why}")
    if old is None or old.problem:
        return None
    part.take_over(asked)
    old.part = part
    return old


def ask_old(
    asker: Asker, model: Path, part: Part, role: str = OLD, away: Away | None = None
) -> Old:
    """Ask the old model the requests that lie beside it, and of every other signature the first of
    ours that it answers.

    What cannot be asked is noted in ``part.not_asked``. ``away``: another release that answers.
    """
    directory = asker.place("old")
    io = directory / "io"
    io.mkdir(parents=True)
    old = Old(asker, model, io, part, role, away)
    questions = _questions(old, directory)
    gone = old.record(questions, [old.reader])
    if not questions and away is None:
        old.load()
    old.problem = "".join(
        f"{LOADERS[role]} does not load it: {why}" for why in old.refused.values()
    )
    if old.problem:
        return old
    old.requests = [question for question in questions if question.is_answered]
    part.asked = sorted({question.signature for question in old.requests})
    part.answered_by = old.reader.version if old.requests else ""
    part.not_asked = {
        question.signature: question.why
        for question in gone
        if question.signature not in part.asked
    }
    for question in gone:
        if question.candidates is None:
            _note(part, f"signature {question.signature!r}: {question.why}")
        elif (
            not question.is_useless
            and never(question.why)
            and (io / question.entry["inputs"]).is_file()
        ):
            old.dead.append(question)
    for question in old.requests:
        _note_chance(part, question)
    return old


def _questions(old: Old, directory: Path) -> list[Question]:
    """The requests beside the model and ours, of one MetaGraph; what cannot be used is noted."""
    asked, part, found = Asked(), old.part, askable(old.found)
    try:
        asked, _ = questions_of(Export(old.model), beside(old.model, old.model), found, directory)
    except (ArtifactError, OptionError) as error:
        _note(part, f"{UNUSABLE}: {error}")
    for problem in asked.problems:
        _note(part, f"{UNUSABLE}: {problem}")
    given = [question for question in asked.questions if question.entry["kind"] == "signature"]
    for question in given:
        question.entry["outputs"] = None  # the old model says what it answers, and what it refuses
        question.entry.pop("error", None)
    ours = invent(found, given, old.policy.make_up or 0, old.policy.instead)
    return [
        question for question in (*given, *ours) if sorted(question.target[0]) == sorted(part.tags)
    ]


class Unanswered(Exception):
    """The process of the readers died of a cell, or the machine failed: that says nothing of the
    new model.
    """

    def __init__(self, cell: Result, stderr: str) -> None:
        super().__init__(f"{cell.cell}: {cell.outcome} {cell.message}\n{stderr}".strip())
        self.died = cell.outcome in (Outcome.CRASH, Outcome.TIMEOUT)
        self.error_class = cell.error_class


def ask_new(
    asker: Asker,
    new: Path,
    tags: Sequence[str],
    old: Old,
    part: Part,
    roles: Sequence[str],
    first: Mapping[str, Callable[[Loaded], object]] | None = None,
) -> Iterator[Verdict]:
    """Each of ``roles`` of the new model against the old answers, tables and gradients.

    ``first``: role -> what is done with the model before anything is asked of it. Raises
    Unanswered, and what ``first`` raises.
    """
    artifact, todo = _artifact(asker, new, tags, old), dict(first or {})
    for role in roles:
        verdicts = list(_asked(asker, role, artifact, tags, old, part, todo.pop(role, None)))
        differing = any(verdict.state == "differs" for verdict in verdicts)
        if differing and _leave_out_chance(old, part):
            artifact = _artifact(asker, new, tags, old)
            verdicts = list(_asked(asker, role, artifact, tags, old, part))
        yield from verdicts


def _artifact(asker: Asker, new: Path, tags: Sequence[str], old: Old) -> Path:
    """The new model with the requests and answers of the old one (docs/exporters/artifacts.md,
    section 1).
    """
    directory = asker.place("cells") / "new"
    directory.mkdir(parents=True)
    (directory / "model").symlink_to(new)
    entries = [{**question.entry, "tags": list(tags)} for question in old.requests]
    document = {
        "schema": 1,
        "stateful": old.stateful,
        "tolerance": old.policy.tolerance._asdict(),
        "requests": entries,
    }
    copied(directory, old.io, document, oracle.layout_of(new), "a model that was converted")
    return directory


def _leave_out_chance(old: Old, part: Part) -> bool:
    """Note outputs that the old model leaves to chance, which were not looked for before; whether
    there are any.

    What nodes with a seed draw is compared first: the new model may draw the same, but need not.
    """
    before = [question.not_compared for question in old.requests]
    for question in old.requests:
        chance = left_to_chance(old.meta_graph, question.signature)
        random = drawn(old.meta_graph, question.signature, seeded=True) if question.stateful else {}
        question.leave_out(chance, random, tensors.load(old.io / question.entry["outputs"]))
        _note_chance(part, question)
    return before != [question.not_compared for question in old.requests]


def _asked(
    asker: Asker,
    role: str,
    artifact: Path,
    tags: Sequence[str],
    old: Old,
    part: Part,
    first: Callable[[Loaded], object] | None = None,
) -> Iterator[Verdict]:
    """One reader: tables before anything is asked, the cell with the answers, then gradients, all
    of the model as loaded once.
    """
    model = artifact / "model"
    with closing(cast("Generator[Result]", asker.cells(role, artifact))) as cells:
        if first:
            with asker.model(role, model, tags, shared=True) as loaded:
                first(loaded)
        if role == DIFFERENTIATED and old.tables:
            with suppress(ReplyError), asker.model(role, model, tags, shared=True) as loaded:
                yield _tables(asker, loaded, old.tables)
        result = next(cells)
        verdict = _of_result(result, role, artifact, old)
        if verdict.state == "differs" and not verdict.detail.startswith(NOT_LOADED):
            with asker.model(role, model, tags, shared=True) as loaded:
                verdict = _but_for_rounding(asker, loaded, old, result, verdict)
        yield verdict
        if verdict.detail.startswith(NOT_LOADED):
            return
        with asker.model(role, model, tags, shared=True) as loaded:
            for question in old.dead:
                with suppress(ReplyError):
                    outputs = str(asker.place("npz"))
                    loaded.ask(
                        "call",
                        asker.limit,
                        request=question.entry,
                        io_dir=str(old.io),
                        outputs=outputs,
                    )
                    said = (
                        f"signature {question.signature!r} answers now, where the old model fails"
                        " whatever it is asked"
                    )
                    _note(part, said)
            if role == DIFFERENTIATED and any(old.gradients.values()):
                yield _gradients(asker, loaded, old)
            elif role == DIFFERENTIATED and old.deadly:
                yield Verdict(f"gradients, {role}", "none", old.deadly[0])
            elif role == DIFFERENTIATED and old.away and old.here is None:
                yield Verdict(
                    f"gradients, {role}",
                    "none",
                    f"the session of TensorFlow {old.away.version} only answers",
                )


def _of_result(result: Result, role: str, artifact: Path, old: Old) -> Verdict:
    """Return what a cell says of the answers of a reader."""
    what = f"answers, {role}"
    if result.outcome.harness_failure or result.outcome in (
        Outcome.CRASH,
        Outcome.TIMEOUT,
        Outcome.NOT_RUN,
    ):
        stderr = artifact.parent / result.evidence.get("stderr", "no such file")
        raise Unanswered(
            result, stderr.read_text(encoding="utf-8", errors="replace") if stderr.is_file() else ""
        )
    if result.outcome is not Outcome.PASS and "call" not in result.timings:
        return Verdict(
            what, "differs", f"{NOT_LOADED}: {gist(result.message) or result.error_class}"
        )
    failed = result.details.get("failed", {})
    signatures = {question.entry["id"]: question.signature for question in old.requests}
    differences = [
        f"{signatures[name]}: {gist(one['message'].removeprefix(f'request {name}: '))}"
        for name, one in failed.items()
    ]
    return _verdict(what, differences, bool(result.details.get("inexact")), len(old.requests))


def _but_for_rounding(
    asker: Asker, loaded: Loaded, old: Old, result: Result, verdict: Verdict
) -> Verdict:
    """Return ``close`` in place of a verdict on answers that are off by no more than rounding moves
    those of the old model.
    """
    failed = result.details.get("failed", {})
    for question in old.requests:
        if question.entry["id"] not in failed:
            continue
        bounds = {} if question.stateful or old.away else old.bounds(question, False)
        outputs = asker.place("npz")
        if not bounds:
            return verdict
        try:
            loaded.ask(
                "call",
                asker.limit,
                request=question.entry,
                io_dir=str(old.io),
                outputs=str(outputs),
            )
        except ReplyError:
            return verdict
        expected, got = tensors.load(old.io / question.entry["outputs"]), tensors.load(outputs)
        counted = {
            name: tensor for name, tensor in expected.items() if name not in question.not_compared
        }
        kept = {name: got[name] for name in counted if name in got}
        if not compare_named(counted, kept, GENERATIONS.tolerance.bounds):
            return (
                verdict  # asked again, it gives another answer, and rounding does not explain that
            )
        if not all(_is_rounded(name, counted, kept, bounds) for name in counted):
            return verdict
    return Verdict(verdict.what, "close", f"{len(old.requests)} compared, {ROUNDED}")


def _is_rounded(
    name: str,
    expected: Mapping[str, Tensor],
    got: Mapping[str, Tensor],
    bounds: Mapping[str, float],
) -> bool:
    """Return whether one array is as it was, but for rounding."""
    if name not in got:
        return False
    usual = GENERATIONS.tolerance.bounds
    bound = max(bounds.get(name, 0.0), usual.atol)
    return compare_tensor(name, expected[name], got[name], Tolerance(usual.rtol, bound)) is None


def _tables(asker: Asker, loaded: Loaded, tables: list[list[str]]) -> Verdict:
    """Every entry of every table, before anything is asked of the model."""
    types = sorted({(key, value) for key, value, _ in tables})
    after = loaded.ask("tables", asker.limit, types=types)["tables"]
    before = Counter(text for _, _, text in tables)
    lost = before - Counter(text for _, _, text in after)
    return _verdict(
        "tables",
        [f"{count} x {text} is lost or changed" for text, count in lost.items()],
        False,
        len(tables),
    )


def _gradients(asker: Asker, loaded: Loaded, old: Old) -> Verdict:
    differences, close, count = [], False, 0
    known = asker.known if old.gradients else None
    # Read once for all questions: the files of a model may be large.
    content = model_content(loaded.directory.resolve()) if known is not None else b""
    for question in old.requests:
        expected = old.gradients.get(question.entry["id"])
        if not expected:
            continue
        count += 1
        try:
            make = functools.partial(asker.gradients, loaded, question, old.io)
            got = make() if known is None else known.of(content, _request(question, old.io), make)
        except ReplyError as error:
            differences.append(f"{question.signature}: {line_of(error)}")
            continue
        kept = {
            name: got[name] for name in expected if name in got
        }  # a gradient that only the new one has is not a loss
        found = compare_named(expected, kept, GENERATIONS.tolerance.bounds)
        bounds = old.bounds(question, True) if found else {}
        found = [
            item
            for item in found
            if not (item.where and _is_rounded(item.where, expected, kept, bounds))
        ]
        differences += [f"{question.signature}: {item}" for item in found]
        close = close or (not found and bool(compare_named(expected, kept, EXACT)))
    return _verdict(f"gradients, {loaded.role}", differences, close, count)


def _request(question: Question, io: Path) -> tuple[object, ...]:
    """Return what a question asks of a model, whatever the tags of the MetaGraph are."""
    inputs = (io / question.entry["inputs"]).read_bytes()
    return question.signature, inputs, frozenset(question.not_compared)


def _verdict(what: str, differences: list[str], close: bool, count: int) -> Verdict:
    if differences:
        more = f"; and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
        return Verdict(what, "differs", "; ".join(differences[:_SHOWN]) + more)
    if not count:
        return Verdict(what, "absent", "nothing to compare with")
    return Verdict(what, "close" if close else "equal", f"{count} compared")


def stored(old: Old, new: Path, new_tags: Sequence[str]) -> Iterator[Verdict]:
    """Signatures, weights, assets: nothing is lost.

    The new model stores the weights that a TF 1 model initialises at load.
    """
    model, tags = old.model, old.part.tags
    before, after = oracle.signatures(model, tags), oracle.signatures(new, new_tags)
    differences = compare_signatures(before, after)
    if differences:
        before, sentences = corrected(oracle.layout_of(model), tags, before, after)
        differences = compare_signatures(before, after)
        old.part.notes += [text for text in sentences if text not in old.part.notes]
    methods = [oracle.method_names(model, tags), oracle.method_names(new, new_tags)]
    differences += [
        f"the method of {key!r} changed"
        for key in methods[0]
        if methods[0][key] != methods[1].get(key)
    ]
    yield _verdict("signatures", differences, False, len(methods[0]))
    try:
        held, kept = oracle.inventory(model, tags), oracle.inventory(new, new_tags)
        if held - kept and old.role == OLD and not old.problem and old.here is not None:
            held = _after_load(old, model, tags)
        differences = [
            f"{count} x {name} is lost or changed" for name, count in (held - kept).items()
        ]
        weights = _verdict("weights", differences, False, sum(held.values()))
        if old.drawn_weights and weights.state == "absent":
            weights = Verdict(
                "weights", "none", "the old model draws all of them again at each load"
            )
        yield weights
    except (
        V1CheckpointError
    ) as error:  # TensorFlow itself has restored it; the answers say whether rightly
        yield Verdict("weights", "absent", str(error))
    for what, read in (
        ("assets", oracle.assets),
        ("assets.extra", lambda model, _: oracle.extra_assets(model)),
    ):
        held, kept = read(model, tags), read(new, new_tags)
        yield _verdict(what, [f"{name} is lost" for name in held - kept], False, sum(held.values()))


def _after_load(old: Old, model: Path, tags: Sequence[str]) -> Counter[str]:
    """Return the inventory of a model after TensorFlow has loaded it: its main op may initialise
    variables anew.

    Variables on which two loads disagree are left out and named.
    """
    first, second = old.held(), old.held()
    found: dict[tuple[str, str], str] = {}
    changed = []
    for item in oracle.stored_variables(model, tags):
        value = first.get(item.node, item.value)
        if compare_named({"": value}, {"": second.get(item.node, value)}, EXACT):
            old.drawn_weights.append(item.node)
        else:
            found[item.key, item.node] = oracle.described(value)
            changed += (
                [item.node]
                if value is not item.value and compare_named({"": item.value}, {"": value}, EXACT)
                else []
            )
    for name in old.drawn_weights:
        _note(
            old.part,
            f"variable {name!r} is not compared, the old model draws it again at each load",
        )
    for name in changed:
        _note(
            old.part,
            f"variable {name!r}: its value after a load is compared, the init op of the model"
            " changes the stored one",
        )
    return Counter(found.values())


def _note_chance(part: Part, question: Question) -> None:
    notes = (
        chance_notes(question.signature, question.chance),
        random_notes(question.signature, question.random),
    )
    for note in itertools.chain(*notes):
        _note(part, note)


def _note(part: Part, text: str) -> None:
    part.notes += [text] if text not in part.notes else []
