"""The walk of a proof: questions, answers, noise, verdicts, first nodes, certificate."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Optional

from savedmodel_common import interrupts
from savedmodel_common.tensors import Tensor
from savedmodel_prove import bisection, nodes, noise, questions, records, verdicts
from savedmodel_prove.certificate import Certificate, Node, files_of
from savedmodel_prove.questions import Question, Target
from savedmodel_prove.records import Answer, Record
from savedmodel_prove.sides import program
from savedmodel_prove.sides.converted import File, is_saved_model
from savedmodel_prove.sides.evaluator import Evaluator
from savedmodel_prove.sides.program import Asked, TensorFlow
from savedmodel_prove.sides.side import Side, SideError, asked
from savedmodel_prove.verdicts import Kind, Verdict

THREADS = 4
MOST_NODES = 20  # of one output, at which the models part
TABLE_WRITES = ("LookupTableInsert", "LookupTableImport", "LookupTableRemove")


@dataclass(frozen=True)
class Sides:
    """Who is asked.

    Attributes:
      original: TensorFlow, or the evaluator where there is none.
      converted: the converted model.
      evaluator: the referee in float32; None where it answers for the original.
      exact: the evaluator in float64, or None.
      threaded: the original with several threads, or None.
      traced: the evaluator of the original, whose nodes are compared; None if it cannot be made.
      notes: the sides that are absent, and why.
    """

    original: Side
    converted: Side
    evaluator: Optional[Side] = None
    exact: Optional[Evaluator] = None
    threaded: Optional[Side] = None
    traced: Optional[Evaluator] = None
    notes: Sequence[str] = ()

    def close(self) -> None:
        """End the processes."""
        for side in (self.original, self.converted, self.threaded):
            if isinstance(side, (Asked, File, Model)):
                side.close()


@dataclass(frozen=True)
class Refusing:
    """A side that gives no answer, e.g. a file that no runtime reads."""

    reason: str
    name: str = "nothing"
    versions: Mapping[str, str] = field(default_factory=dict)

    def answer(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Raise SideError with the reason."""
        raise SideError(self.reason)

    def values(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Raise SideError with the reason."""
        raise SideError(self.reason)


@dataclass(frozen=True)
class Model:
    """A converted SavedModel: TensorFlow answers, the evaluator names the values."""

    asked: Asked
    evaluator: Evaluator

    @property
    def name(self) -> str:
        """The program that answers."""
        return self.asked.name

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions of its packages."""
        return self.asked.versions

    def answer(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the outputs. Raises SideError."""
        return self.asked.answer(inputs)

    def values(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the results of all nodes. Raises SideError."""
        return self.evaluator.values(inputs)

    def close(self) -> None:
        """End the process."""
        self.asked.close()


def open_sides(
    target: Target,
    converted: Path,
    folder: Path,
    python: Optional[Path] = None,
    names: Optional[Mapping[str, str]] = None,
    use_tensorflow: bool = True,
) -> Sides:
    """Return who is asked about a signature.

    Args:
      target: the signature of the original.
      converted: the converted file or SavedModel.
      folder: for the conversations with processes.
      python: of an environment that has the converted file's runtime.
      names: names of the original paired with names of the file.
      use_tensorflow: whether TensorFlow answers for the original, where it is here.

    Raises SideError: nobody can answer for the original.
    """
    model = target.found.directory
    notes: list[str] = []
    with_tensorflow = use_tensorflow and program.has_tensorflow()
    evaluator, reason = _evaluator(target, None)
    exact, _ = _evaluator(target, "float64")
    if evaluator is None and not with_tensorflow:
        raise SideError(f"{reason}, and no TensorFlow is asked")
    if evaluator is None:
        notes.append(f"there is no referee: {reason}")
    if not with_tensorflow:
        notes.append("TensorFlow is not asked: the evaluator answers for the original")
    other = _converted(target, converted, folder, python, names, with_tensorflow)
    if evaluator is not None and not with_tensorflow:
        return Sides(evaluator, other, None, exact, None, evaluator, notes)

    def started(name: str, threads: int) -> TensorFlow:
        worker = program.tensorflow(threads)
        return TensorFlow("TensorFlow", worker, Path(model), target.tags, target.key, folder / name)

    return Sides(
        started("original", 1),
        other,
        evaluator,
        exact,
        started("threaded", THREADS),
        evaluator,
        notes,
    )


def _evaluator(target: Target, precision: Optional[str]) -> tuple[Optional[Evaluator], str]:
    try:
        return Evaluator(Path(target.found.directory), target.tags, target.key, precision), ""
    except SideError as error:
        return None, str(error)


def _converted(
    target: Target,
    converted: Path,
    folder: Path,
    python: Optional[Path],
    names: Optional[Mapping[str, str]],
    with_tensorflow: bool,
) -> Side:
    """Return the side of the converted model, or one that tells why there is none."""
    try:
        if not is_saved_model(converted):
            return File(
                converted,
                target.key,
                list(target.inputs),
                target.outputs,
                folder / "converted",
                python,
                names,
            )
        evaluator = Evaluator(converted, target.tags, target.key)
    except SideError as error:
        return Refusing(str(error))
    if not with_tensorflow:
        return evaluator
    place = folder / "converted"
    worker = program.tensorflow()
    started = Asked("TensorFlow", worker, converted.absolute(), target.tags, target.key, place)
    return Model(started, evaluator)


def prove(
    target: Target, converted: Path, sides: Sides, seed: int, count: int, beside: Path
) -> Certificate:
    """Ask all sides, measure the noise of the original, and return what was found.

    Args:
      target: the signature of the original.
      converted: the converted model.
      sides: who is asked.
      seed: of made inputs.
      count: of random inputs.
      beside: the folder that the certificate will lie in.

    Raises:
      NoQuestion: no input can be read or made, or the original answers none.
      OSError: the files of a model cannot be read.
    """
    found, notes = _records(target, sides, seed, count)
    if not found:
        raise questions.NoQuestion("; ".join(notes) or "there are no inputs")
    parting, more = _parting_nodes(found, sides)
    programs, versions = {}, {}
    asked_sides = {
        records.ORIGINAL: sides.original,
        records.CONVERTED: sides.converted,
        records.EVALUATOR: sides.evaluator,
        records.EXACT: sides.exact,
    }
    for name, side in asked_sides.items():
        if side is not None:
            programs[name], versions[name] = side.name, dict(side.versions)
    return Certificate(
        files_of(Path(target.found.directory), beside),
        files_of(converted, beside),
        target.tags,
        target.key,
        seed,
        programs,
        versions,
        found,
        parting,
        [*sides.notes, *notes, *more, *_unsteady(found)],
    )


def _unsteady(found: Sequence[Record]) -> Iterator[str]:
    """Yield a note for each output that the original itself answers otherwise each time."""
    moves: dict[str, float] = {}
    for record in found:
        for output, spread in record.spread.items():
            moves[output] = max(moves.get(output, 0.0), spread.get(noise.REPEATS, 0.0))
    for output, moved in moves.items():
        if moved:
            yield (
                f"{output}: the original answers the same input otherwise each time, by up to"
                f" {moved:.3g}: this proof says little about it"
            )


def _records(target: Target, sides: Sides, seed: int, count: int) -> tuple[list[Record], list[str]]:
    """Return the questions that the original answers, and those that it refuses with the reason."""

    def ask(inputs: questions.Inputs) -> Answer:
        return asked(sides.original, inputs)

    found: list[Record] = []
    notes: list[str] = []
    given = list(questions.recorded(target))
    fixed = sides.converted.shapes if isinstance(sides.converted, File) else {}
    made: Iterator[Question] = questions.made(target, ask, seed, count, fixed)
    if given:  # what the user gave is enough where nothing can be made
        made = _while_possible(made, notes)
    for question in itertools.chain(given, made):
        interrupts.check()
        answer = ask(question.inputs)
        if answer.error:
            notes.append(f"{question.name}: the original refuses it ({answer.error})")
            continue
        found.append(_record(target, question, answer, sides, seed))
    if found and (
        _changes_tables(sides.traced, found[0])
        or _depends_on_the_past(found[0], ask(found[0].inputs))
    ):
        notes.append("the original changes its state when it is called")
        found = [_not_comparable(record) for record in found]
    return found, notes


def _changes_tables(traced: Optional[Evaluator], record: Record) -> bool:
    """Return whether a call writes into a table, whose content later calls see."""
    try:
        ran = traced.trace(record.inputs).ran if traced is not None else []
    except SideError:
        return False
    return any(one.op.startswith(TABLE_WRITES) for one in ran)


def _depends_on_the_past(record: Record, again: Answer) -> bool:
    """Return whether the original answers the first question otherwise after all others."""
    answer = record.answers[records.ORIGINAL]
    for name, expected in answer.outputs.items():
        allowed = verdicts.allowed_difference(expected, verdicts.noise_of(name, record))
        got = again.outputs.get(name)
        if got is None or not verdicts.agrees(expected, got, allowed):
            return True
    return False


def _not_comparable(record: Record) -> Record:
    """Return a record without the converted model's answer, which has another past."""
    reason = "the answers of the original depend on earlier calls"
    return replace(record, answers={**record.answers, records.CONVERTED: Answer(error=reason)})


def _while_possible(made: Iterator[Question], notes: list[str]) -> Iterator[Question]:
    try:
        yield from made
    except questions.NoQuestion as error:
        notes.append(str(error))


def _record(target: Target, question: Question, answer: Answer, sides: Sides, seed: int) -> Record:
    answers = {
        records.ORIGINAL: answer,
        records.CONVERTED: asked(sides.converted, question.inputs),
    }
    if sides.evaluator is not None:
        answers[records.EVALUATOR] = asked(sides.evaluator, question.inputs)
    if sides.exact is not None:
        answers[records.EXACT] = asked(sides.exact, question.inputs)
    sources = noise.Sources(sides.original, sides.threaded, sides.exact)
    batched = questions.has_batch(target.inputs, question.inputs)
    spread = noise.measure(question, answer.outputs, sources, seed, batched)
    return Record(question.name, question.inputs, answers, spread)


def _parting_nodes(
    found: Sequence[Record], sides: Sides
) -> tuple[dict[str, list[Node]], list[str]]:
    """Return the nodes at which two sides part, for each output where they do, and notes."""
    by_name = {record.name: record for record in found}
    parting: dict[str, list[Node]] = {}
    notes: list[str] = []
    for verdict in verdicts.judge(found):
        record = by_name[verdict.alone_at or verdict.question]
        for suspect in _suspects(verdict, sides):
            try:
                listed, more = _parting(suspect, verdict.output, record, sides)
            except SideError as error:
                listed, more = [], f"{_named(suspect)} gives no intermediate values ({error})"
            if listed:
                parting.setdefault(verdict.output, []).extend(listed)
            if more:
                notes.append(f"{verdict.output}: {more}")
    return parting, notes


def _suspects(verdict: Verdict, sides: Sides) -> list[str]:
    """Return the sides whose first wrong node is looked for."""
    if sides.traced is None:
        return []
    if verdict.alone == records.EVALUATOR:
        return [records.EVALUATOR]
    if verdict.kind is not Kind.DIFFERS:
        return []
    if verdict.alone == verdicts.TENSORFLOW:
        return [records.ORIGINAL]
    if verdict.alone == records.CONVERTED or sides.evaluator is None:
        return [records.CONVERTED]
    return [records.CONVERTED, records.ORIGINAL]


def _named(suspect: str) -> str:
    return "the converted model" if suspect == records.CONVERTED else verdicts.TENSORFLOW


def _parting(suspect: str, output: str, record: Record, sides: Sides) -> tuple[list[Node], str]:
    """Return the nodes at which a suspect and the others part, and a note or "".

    Raises SideError: there are no intermediate values.
    """
    assert sides.traced is not None
    asked_side = sides.converted if suspect == records.CONVERTED else sides.original
    try:
        rows = nodes.compared(sides.traced, sides.exact, asked_side, record.inputs)
    except SideError:
        if not isinstance(asked_side, bisection.Single):
            raise
        rows = []  # one node that cannot be asked spoils the call for all
    rows = [row for row in rows if row.parts][:MOST_NODES]
    note = "" if rows else f"no value that {_pair(suspect)} name differs"
    if not rows and isinstance(asked_side, bisection.Single):
        row = bisection.first_apart(sides.traced, sides.exact, asked_side, record.inputs, output)
        if row is not None:
            rows = [row]
            note = f"TensorFlow computes {row.node} otherwise where other values are asked with it"
    return [
        Node(row.node, row.op, row.theirs, record.name, row.difference, row.allowed, suspect)
        for row in rows
    ], note


def _pair(suspect: str) -> str:
    return "both models" if suspect == records.CONVERTED else "TensorFlow and the evaluator both"
