"""The one recorder: whether a model answers a request, always the same, and with what.

An answer counts only if a model that is loaded again and asked in the same order gives it again.
Both models are asked several rounds: an answer that differs between the rounds of one model, and
not between the models, depends on earlier requests. An answer that differs between the models is
drawn at random, unless the graph says that only some outputs are left to chance. Each request is
also asked twice in a row, since a round may end in the state in which it began.

Two rounds may draw the same: a class seldom changes with the numbers behind it. So a signature
whose graph draws is asked more often, and with other inputs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from compat_matrix.cells.consumers import CONSUMERS, Consumer, answerable
from compat_matrix.hosts.host import Host, Loaded
from compat_matrix.requests.chance import left_to_chance
from compat_matrix.requests.digest import digest_of, named_outputs
from compat_matrix.requests.draws import drawn
from compat_matrix.requests.policies import Policy
from compat_matrix.requests.questions import NO_INPUTS, RANDOM, STATEFUL, Question
from compat_matrix.runtimes.runtime import Runtime, local_runtime
from compat_matrix.runtimes.worker import NotStarted, ReplyError, WorkerDied
from reference_impl.format.container import layout
from savedmodel_common import tensors
from savedmodel_common.gist import gist
from savedmodel_common.tensors import Tensor

ANSWERED_BY = "answered_by"  # member of a request in io.json
_FAILED = "failed"  # in place of the name of an output, where a later call fails
_DRAWS = (
    6  # calls for each of some inputs, to see whether what the graph draws arrives in an output
)
_DRAWN_INPUTS = 3

Digests = Mapping[
    str, str
    # of one answer: output, or path in the result -> digest; "" -> what the result holds beside
    # tensors
]


@dataclass(frozen=True)
class Reader:
    """A consumer in a runtime."""

    runtime: str
    version: str
    consumer: Consumer

    @property
    def name(self) -> str:
        """As in a cell id."""
        return f"{self.consumer.name}@{self.version}"


def readers_of(runtimes: Sequence[Runtime], consumers: Mapping[str, Consumer]) -> list[Reader]:
    """Return who can be asked for an answer, in order; a consumer that brings its version along
    once.
    """
    able = [runtime for runtime in runtimes if not runtime.server]
    out = []
    for runtime in able:
        for consumer in consumers.values():
            version = consumer.version if runtime is able[0] else None
            version = version or (runtime.tensorflow_version if consumer.version is None else None)
            if version and consumer.name not in {**runtime.lacks, **runtime.unready}:
                out.append(Reader(runtime.name, version, consumer))
    return out


def local_readers(policy: Policy) -> list[Reader]:
    """Return the readers of the local TensorFlow that a policy asks."""
    return readers_of([local_runtime()], {name: CONSUMERS[name] for name in policy.answered_by})


class _Died(Exception):
    """Raised when the process died of a question, or of loading the model (None)."""

    def __init__(self, question: Question | None, reason: str) -> None:
        super().__init__(reason)
        self.question = question


@dataclass
class Recorder:
    """Records the answers of one model."""

    found: layout.Layout  # the SavedModel
    model: Path  # its directory as readers load it
    io: Path  # the folder with the tensors of the questions; answers are added
    host: Callable[[str], Host]  # gives the host of a runtime by name
    policy: Policy
    stateful: bool = False  # an answer depends on earlier requests
    # Reader -> why it does not load the model, by the tags of the MetaGraph.
    refused: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)
    _files: dict[int, str] = field(
        default_factory=dict
    )  # id of a question -> the file of its answer
    _scrap: str = ""

    def record(self, questions: Sequence[Question], readers: Iterable[Reader]) -> list[Question]:
        """Answer the questions that have no answer; return those that cannot be asked: their
        ``why`` says the reason.

        Raises WorkerDied where the policy does not survive that.
        """
        self._files = {
            id(question): _free_file(self.io, number) for number, question in enumerate(questions)
        }
        self._scrap = _free_file(self.io, len(questions))
        for reader in readers:
            for tags in dict.fromkeys(question.target[0] for question in questions):
                pending = [
                    q for q in questions if q.target[0] == tags and self._is_pending(q, reader)
                ]
                while pending:
                    try:
                        pending = self._asked(reader, tags, pending)
                    except _Died as death:
                        for question in [death.question] if death.question else pending:
                            question.reasons.append(f"{reader.name}: {death}")
                            question.fatal = True
                        pending = [q for q in pending if death.question and q is not death.question]
        self.stateful = self.stateful or any(question.stateful for question in questions)
        left = [
            question for question in questions if not (question.is_answered or question.is_needless)
        ]
        return [
            question for question in left if not (self.policy.keeps_unanswered and _stays(question))
        ]

    def begin(self, loaded: Loaded) -> None:
        """Called with the model that was loaded again, before it is asked anything."""

    def end(self, loaded: Loaded, answered: Sequence[Question]) -> None:
        """Called with the same model, after the questions whose answers count."""

    def _is_pending(self, question: Question, reader: Reader) -> bool:
        able = answerable(question.entry["kind"], reader.consumer.capabilities)
        return able and not (question.is_answered or question.is_useless or question.is_needless)

    def _asked(
        self, reader: Reader, tags: Sequence[str], pending: Sequence[Question]
    ) -> list[Question]:
        """Record what one reader answers.

        Return the questions to be asked once more, without those that changed their answers.

        Raises _Died, and nothing is recorded then; WorkerDied.
        """
        said: dict[int, tuple[Question, list[Digests]]] = {}
        current: Question | None = None
        try:
            with self._loaded(reader, tags) as loaded:
                for current in pending:
                    if not any(id(other) in said for other in current.instead_of):
                        first = self._first(loaded, current, reader)
                        said.update({id(current): (current, [first])} if first else {})
                for _ in range(1, self.policy.rounds):
                    for current, answers in said.values():
                        answers.append(self._repeated(loaded, current))
                current = None
            with self._loaded(reader, tags) as loaded:
                self.begin(loaded)
                again: dict[int, list[Digests]] = {key: [] for key in said}
                for _ in range(self.policy.rounds):
                    for key, (current, _answers) in said.items():
                        again[key].append(self._repeated(loaded, current))
                # Another signature may have set back what one changes, as the reset of a counter
                # does.
                at_once: dict[int, list[Digests]] = {}
                for key, (current, _answers) in said.items() if len(said) > 1 else ():
                    at_once[key] = [self._repeated(loaded, current) for _ in range(2)]
                current = None
                for key, (question, answers) in said.items():
                    current = question
                    self._judge(question, answers, again[key], at_once.get(key, []), loaded)
                current = None
                kept = [question for question, _ in said.values() if not question.is_useless]
                lost_state = len(kept) < len(said) and any(question.stateful for question in kept)
                if not lost_state:
                    self.end(loaded, kept)
        except (ReplyError, NotStarted) as error:
            if isinstance(error, ReplyError):
                self.refused[reader.name, tuple(tags)] = line_of(error)
            for question in pending:
                question.reasons.append(f"{reader.name}: {line_of(error)}")
            return []
        except WorkerDied as error:
            if not self.policy.survives:
                raise
            raise _Died(current, line_of(error)) from error
        if lost_state:
            for question in kept:
                question.stateful = False
            return kept
        for question in kept:
            question.entry["outputs"] = self._files[id(question)]
            question.entry[ANSWERED_BY] = reader.name
        return []

    def _loaded(self, reader: Reader, tags: Sequence[str]) -> AbstractContextManager[Loaded]:
        host = self.host(reader.runtime)
        worker = host.worker(reader.runtime, reader.consumer.program)
        return host.model(
            worker, self.model, tags, self.policy.limit, shared=False, role=reader.consumer.role
        )

    def _first(self, loaded: Loaded, question: Question, reader: Reader) -> Digests | None:
        """Return the answer to the question, or to the first of its candidates that is answered;
        None where there is none.
        """
        reason, first = "", None
        for candidate in question.candidates() if question.candidates else (None,):
            if candidate is not None:
                first = candidate if first is None else first
                tensors.save(self.io / question.entry["inputs"], candidate)
            try:
                return self._ask(loaded, question)
            except ReplyError as error:
                reason = reason or line_of(
                    error
                )  # that of the first: what is tried later is less likely
        if first is not None:
            tensors.save(self.io / question.entry["inputs"], first)
        question.reasons.append(f"{reader.name}: {reason}" if reason else NO_INPUTS)
        return None

    def _repeated(self, loaded: Loaded, question: Question) -> Digests:
        try:
            return self._ask(loaded, question, scrap=True)
        except ReplyError as error:
            return {_FAILED: line_of(error)}

    def _ask(self, loaded: Loaded, question: Question, scrap: bool = False) -> Digests:
        target = self.io / (self._files[id(question)] if not scrap else self._scrap)
        request = {**question.entry, "outputs": None}
        reply = loaded.ask(
            "call", self.policy.limit, request=request, io_dir=str(self.io), outputs=str(target)
        )
        answer = tensors.load(target)
        if scrap:
            target.unlink()
        elif question.entry["kind"] == "function":
            question.entry["structure"] = reply.get("structure")
        skeleton, named = named_outputs(question.entry, reply.get("structure"), answer)
        return {
            "": digest_of(skeleton, {}),
            **{where: digest_of(None, {where: one}) for where, one in named.items()},
        }

    def _judge(
        self,
        question: Question,
        answers: Sequence[Digests],
        again: Sequence[Digests],
        at_once: Sequence[Digests],
        loaded: Loaded,
    ) -> None:
        """Say of a question whether its answer counts, and whether it depends on earlier requests.

        Args:
          answers: of each round, in the model that was loaded first.
          again: likewise, in the model that was loaded again.
          at_once: of that model, one right after the other.
        """
        differing: set[str] = set().union(*map(_differing, answers, again))
        changing = _changing(answers) | _changing(at_once)
        if question.entry["kind"] == "signature":
            tags, signature = question.target
            random = drawn(self.found.meta_graph(tags), signature)
            if random and not random.keys() & (differing | changing):
                differing |= self._arriving(loaded, question, random)
            chance = left_to_chance(self.found.meta_graph(tags), signature) if differing else {}
            random = random if random.keys() & (differing | changing) else {}
            if _FAILED not in differing:
                random = {**dict.fromkeys(differing - chance.keys() - {""}, ""), **random}
            question.leave_out(chance, random, answers[0])
            differing -= question.not_compared
            changing -= question.not_compared
            if random and not question.random:  # nothing else would be left
                differing |= random.keys()
        if differing:
            fails = again[0].get(_FAILED, "")
            question.reasons.append(f"loaded again it fails: {fails}" if fails else RANDOM)
            question.is_useless = True
            return
        question.stateful = bool(changing)
        if question.stateful and not self.policy.keeps_stateful:
            question.reasons.append(STATEFUL)
            question.is_useless = True

    def _arriving(self, loaded: Loaded, question: Question, random: Mapping[str, str]) -> set[str]:
        """Return outputs that change from call to call, of those that depend on nodes that draw;
        the model's state changes.
        """
        for inputs in (None, *self._others(question)):
            entry = dict(question.entry)
            if inputs is not None:
                entry["inputs"] = f"{self._scrap}.inputs.npz"
                tensors.save(self.io / entry["inputs"], inputs)
            try:
                answers = [
                    self._ask(loaded, replace(question, entry=entry), scrap=True)
                    for _ in range(_DRAWS)
                ]
            except ReplyError:  # it takes no such inputs
                continue
            changing = _changing(answers) & random.keys()
            if changing:
                return changing
        return set()

    def _others(self, question: Question) -> Iterator[dict[str, Tensor]]:
        """Yield other inputs of the shapes that the question has."""
        if question.candidates is None:
            return
        asked = tensors.load(self.io / question.entry["inputs"])
        shapes = {name: tensor.array.shape for name, tensor in asked.items()}
        for variant in range(1, _DRAWN_INPUTS + 1):
            for inputs in question.candidates(variant=variant):
                if {name: tensor.array.shape for name, tensor in inputs.items()} == shapes:
                    yield inputs
                    break


def _free_file(io: Path, number: int) -> str:
    """Return the name of a file that is not there; names of requests are their author's, and may be
    no names of files.
    """
    names = (f"{number}.{'_' * length}answer.npz" for length in itertools.count())
    return next(name for name in names if not (io / name).exists())


def _stays(question: Question) -> bool:
    return not question.is_useless and (question.fatal or question.candidates is None)


def _differing(one: Digests, other: Digests) -> set[str]:
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


def _changing(run: Sequence[Digests]) -> set[str]:
    """Return the outputs that are not the same in all answers to one question."""
    changing: set[str] = set()
    for later in run[1:]:
        changing |= _differing(run[0], later)
    return changing


def line_of(error: Exception) -> str:
    """Return what an error says, in one line."""
    return gist(str(error)) or getattr(error, "error_class", None) or type(error).__name__
