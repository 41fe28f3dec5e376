"""Answers where none are recorded: the first consumer that answers is what the others are compared with.

An answer counts only if a model loaded afresh and asked in the same order gives it again. One that a second round on the same
model changes says that the model has a state; what differs from load to load is drawn at random, and nothing to compare with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from compat_matrix.cells.consumers import Consumer
from compat_matrix.cells.results import one_line
from compat_matrix.checks.kind import answerable
from compat_matrix.exports.questions import Question
from compat_matrix.hosts.host import Host, Loaded
from compat_matrix.requests.digest import answer_digest
from compat_matrix.runtimes.worker import NotStarted, ReplyError, WorkerDied
from compat_matrix.workers import tensors

ANSWERED_BY = "answered_by"  # member of a request in io.json
RANDOM = "loaded again it is answered otherwise (chance): there is nothing to compare with"
_LINE = 300  # characters of a reason
_NOISE = ("Graph execution error:", "Detected at node", "<stack traces unavailable>", "[[{{")


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


class _Died(Exception):
    """The process died of a question (None: of loading the model)."""

    def __init__(self, question: Question | None, reason: str) -> None:
        super().__init__(reason)
        self.question = question


@dataclass
class Recorder:
    """One artifact in the making: ``directory`` holds ``model`` and ``io``. ``stateful``: an answer changed later ones."""

    directory: Path
    host: Callable[[str], Host]
    limit: float
    stateful: bool = False
    _random: set[int] = field(default_factory=set)  # ids of questions

    def record(self, questions: Sequence[Question], readers: Iterable[Reader]) -> list[Question]:
        """Answer what is not answered; returns what cannot be asked, with its reasons.

        Inputs that somebody gave and nobody answers can, and so can what killed a process: the checks tell what becomes of them.
        """
        for reader in readers:
            for tags in dict.fromkeys(question.target[0] for question in questions):
                pending = [q for q in questions if q.target[0] == tags and self._is_pending(q, reader)]
                while pending:
                    try:
                        self._round(reader, tags, pending)
                        break
                    except _Died as death:
                        for question in [death.question] if death.question else pending:
                            question.reasons.append(f"{reader.name}: {death}")
                            question.fatal = True
                        pending = [q for q in pending if death.question and q is not death.question]
        return [q for q in questions if q.entry["outputs"] is None and (id(q) in self._random or (q.candidates and not q.fatal))]

    def _is_pending(self, question: Question, reader: Reader) -> bool:
        able = answerable(question.entry["kind"], reader.consumer.capabilities)
        return question.entry["outputs"] is None and id(question) not in self._random and able

    def _round(self, reader: Reader, tags: Sequence[str], pending: Sequence[Question]) -> None:
        """What one consumer answers, the same after loading the model again. Raises _Died; nothing is recorded then."""
        answers: list[tuple[Question, str]] = []
        current: Question | None = None
        repeated: list[Question] = []
        try:
            host = self.host(reader.runtime)
            worker = host.worker(reader.runtime, reader.consumer.program)
            with host.model(worker, self.directory / "model", tags, self.limit, shared=False) as loaded:
                for current in pending:
                    digest = self._first(loaded, current, reader)
                    answers += [(current, digest)] if digest else []
                current = None
            with host.model(worker, self.directory / "model", tags, self.limit, shared=False) as loaded:
                for current, digest in answers:
                    if self._ask(loaded, current) == digest:
                        repeated.append(current)
                    else:
                        self._random.add(id(current))
                        current.reasons.append(RANDOM)
                for current, digest in answers:
                    if current in repeated and self._ask(loaded, current, scrap=True) != digest:
                        self.stateful = True
                current = None
        except (ReplyError, NotStarted) as error:
            for question in pending:
                question.reasons.append(f"{reader.name}: {_line(error)}")
            return
        except WorkerDied as error:
            raise _Died(current, _line(error)) from error
        for question in repeated:
            question.entry["outputs"] = f"{question.entry['id']}.out.npz"
            question.entry[ANSWERED_BY] = reader.name

    def _first(self, loaded: Loaded, question: Question, reader: Reader) -> str:
        """The digest of the answer to the question, or to its first candidate that is answered; "" where there is none."""
        reasons = []
        for candidate in question.candidates or (None,):
            if candidate is not None:
                tensors.save(self.directory / "io" / question.entry["inputs"], candidate)
            try:
                return self._ask(loaded, question)
            except ReplyError as error:
                reasons.append(_line(error))
        # That of the first candidate: what is tried later is less likely.
        question.reasons.append(f"{reader.name}: {reasons[0] if reasons else 'no input of its dtypes and shapes can be made up'}")
        return ""

    def _ask(self, loaded: Loaded, question: Question, scrap: bool = False) -> str:
        io = self.directory / "io"
        target = io / (f"{question.entry['id']}.out.npz" if not scrap else "again.npz")
        request = {**question.entry, "outputs": None}
        reply = loaded.ask("call", self.limit, request=request, io_dir=str(io), outputs=str(target))
        answer = tensors.load(target)
        if scrap:
            target.unlink()
        elif question.entry["kind"] == "function":
            question.entry["structure"] = reply.get("structure")
        return answer_digest(question.entry, reply.get("structure"), answer)


def plain_error(text: str) -> str:
    """What an error of TensorFlow says, in one line without what surrounds it: where in Python the node was made, its name."""
    lines = [line.strip() for line in text.splitlines()]
    said = [line for line in lines if line and not line.startswith(_NOISE)]
    return " ".join(said) or " ".join(filter(None, lines))


def _line(error: Exception) -> str:
    return one_line(plain_error(str(error)) or type(error).__name__, _LINE)
