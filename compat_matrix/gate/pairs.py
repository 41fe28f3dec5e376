"""The pairs of cells that are compared: a baseline cell and its counterpart of the candidate, in up
to three roles.

``reads``: both read the same artifact (committed, or written by the baseline). This tests the
candidate's loader and kernels. ``writes``: the baseline reads the artifacts of both. This tests
whether the release in use can read the candidate's artifacts. ``both``: each reads its own
artifacts.

Programs with a version of their own belong to neither side: such a consumer reads the artifacts of
both (``writes``), and both read the artifacts of such an exporter (``reads``).
"""

from __future__ import annotations

import fnmatch
import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from compat_matrix.cells import registry
from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import NO_CONSUMER, PLAN_FILE, PRODUCE, RESULTS_FILE, Cell, Plan
from compat_matrix.cells.registry import OURS, Registry
from compat_matrix.cells.results import DESELECTED, Result, is_sealed, of_plan, read_results
from compat_matrix.cells.run_file import RunFile
from compat_matrix.verdict import referee
from compat_matrix.verdict.named import Named
from compat_matrix.verdict.summary import NO_RESULT

READS, WRITES, BOTH = "reads", "writes", "both"
ROLES = (READS, WRITES, BOTH)
NOT_PLANNED = "not planned"


@dataclass(frozen=True)
class Run:
    """The folder of a run: its plan, its results by cell, its artifacts and evidence, and its
    plug-ins.

    ``ended``: the run sealed its results. ``named``: the names that its command line gave, by axis.
    """

    out: Path
    plan: Plan
    results: Mapping[str, Result]
    registry: Registry = OURS
    started: str = ""
    ended: bool = True
    named: Named = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        out: Path,
        plan: Plan,
        results: Iterable[Result],
        registry: Registry = OURS,
        started: str = "",
    ) -> Run:
        """Return the record of a run, without results of other plans.

        ``started``: date and time.
        """
        return cls(out, plan, of_plan(results, plan), registry, started)

    @classmethod
    def read(cls, out: Path) -> Run:
        """Raises PlanError and ResultsError for files that cannot be used."""
        plan, results = Plan.read(out / PLAN_FILE), read_results(out / RESULTS_FILE)
        about = RunFile.read(out)
        made = cls.of(out, plan, results, registry.read(out), about.started)
        return replace(made, ended=is_sealed(out / RESULTS_FILE), named=about.named)

    @functools.cached_property
    def evaluated(self) -> Mapping[str, Result]:
        """Artifact id -> what the evaluator answers about it."""
        return referee.evaluated(self.plan, self.results)

    def is_referee(self, cell: Cell) -> bool:
        """Return whether the command line named consumers, but not the evaluator that answers in
        this cell: it is a witness about the others, and is not compared itself.
        """
        named = self.named.get("consumer", ())
        asked = any(fnmatch.fnmatchcase(cell.consumer, pattern) for pattern in named)
        return cell.consumer == referee.EVALUATOR and bool(named) and not asked

    def productions(self) -> dict[str, Cell]:
        """Return artifact id -> its production, for the artifacts that are made in the run."""
        return {cell.artifact_id: cell for cell in self.plan if cell.is_production}


@dataclass(frozen=True)
class Side:
    """One side of a pair: a cell and its result.

    ``production`` is the result of the cell that makes its artifact.

    If the artifact is not made and no question about it is planned, ``cell`` is the production.
    """

    run: Run
    cell: Cell
    result: Result | None
    production: Result | None = None

    @property
    def observed(self) -> bool:
        return self.result is not None and self.result.outcome.observable

    @property
    def reason(self) -> str:
        """Return why nothing was observed."""
        if self.cell.decided:
            return self.cell.decided.reason
        if self.not_made and self.production:
            why = f"{self.production.outcome} {self.production.cause}".strip()
            return f"its artifact could not be made: {why}".strip()
        return self.result.message if self.result else NO_RESULT

    @property
    def unfinished(self) -> bool:
        """Whether the result is missing although neither the plan, nor the selection, nor a failed
        production explains it.
        """
        if self.observed or self.cell.decided or self.not_made:
            return False
        return not self.deselected

    @property
    def deselected(self) -> bool:
        """Whether the selection of the run left the cell out."""
        return self.result is not None and _deselected(self.result)

    @property
    def not_made(self) -> bool:
        """Whether making the artifact failed."""
        made = self.production
        return made is not None and made.outcome.observable and made.outcome is not Outcome.PASS


@dataclass(frozen=True)
class Pair:
    """A cell of the baseline and its counterpart; None if there is no such cell.

    ``name`` is the common name without versions.
    """

    name: str
    role: str
    baseline: Side | None
    candidate: Side | None

    @property
    def sides(self) -> list[Side]:
        """Both sides, or the one that there is."""
        return [side for side in (self.baseline, self.candidate) if side]

    @property
    def evaluator(self) -> Result | None:
        """The evaluator's result about the artifact, if both sides read the same one."""
        if self.role != READS or len(self.sides) < 2 or self.cell.check != referee.VALUES:
            return None
        found = (side.run.evaluated.get(side.cell.artifact_id) for side in self.sides)
        return next(filter(None, found), None)

    @property
    def cell(self) -> Cell:
        """Either cell, for the fields that are equal in both: case, producer, consumer, check."""
        cells = [side.cell for side in self.sides]
        return next((cell for cell in cells if not cell.is_production), cells[0])


_Key = tuple[
    str, str, str, str, str, str
]  # case, producer, its version, consumer, its version, check


def pairs_of_run(run: Run, baseline: str, candidate: str) -> list[Pair]:
    """Return all pairs of two TensorFlow versions of one run, in the order of the plan.

    A pair is left out if the plan or the selection has only one of its cells, unless making the
    artifact of the other cell failed.
    """
    cells = {_key(cell): cell for cell in run.plan}
    productions = run.productions()

    def side(key: _Key) -> Side | None:
        if key in cells:
            return _side(run, cells[key], productions)
        production = cells.get((*key[:3], NO_CONSUMER, "", PRODUCE))
        made = run.results.get(production.id) if production else None
        if production is None or (made and (made.outcome is Outcome.PASS or _deselected(made))):
            return None
        return Side(run, production, None, made)

    out: dict[tuple[str, str], Pair] = {}
    for cell in run.plan:
        if run.is_referee(cell):
            continue
        made = cell.artifact_id in productions
        for role, one, other in _counterparts(
            cell, made, run.registry.brings_version(cell), (baseline, candidate)
        ):
            name = _name(cell) if role != READS or made else _fixture_name(cell)
            if (role, name) not in out:
                out[role, name] = Pair(name, role, side(one), side(other))
    return [pair for pair in out.values() if _is_asked(pair.baseline) and _is_asked(pair.candidate)]


def _is_asked(side: Side | None) -> bool:
    return side is not None and not side.deselected


def _counterparts(
    cell: Cell, made: bool, own: tuple[bool, bool], two: tuple[str, str]
) -> Iterator[tuple[str, _Key, _Key]]:
    """Yield (role, key of the baseline's cell, key of the candidate's cell) for every comparison to
    which the cell belongs.

    ``own``: whether writer and reader have versions of their own, which may look like one of the
    ``two`` TensorFlow versions.
    """
    (baseline, candidate), (own_writer, own_reader) = two, own
    case, producer, written_by, consumer, read_by, check = _key(cell)

    def key(writer: str, reader: str) -> _Key:
        return (case, producer, writer, consumer, reader, check)

    writes, reads = written_by in two and not own_writer, read_by in two and not own_reader
    if cell.is_production:
        if writes:
            yield WRITES, key(baseline, ""), key(candidate, "")
    elif not made or own_writer:
        if reads:
            yield READS, key(written_by, baseline), key(written_by, candidate)
    elif writes and own_reader:
        yield WRITES, key(baseline, read_by), key(candidate, read_by)
    elif writes and reads:
        here = key(baseline, baseline)
        theirs = {
            READS: key(baseline, candidate),
            WRITES: key(candidate, baseline),
            BOTH: key(candidate, candidate),
        }
        for role, there in theirs.items():
            if _key(cell) in (here, there):
                yield role, here, there


def pairs_of_folders(a: Run, b: Run) -> list[Pair]:
    """Return all pairs of two runs. Cells are paired by their names, without versions.

    If one of the runs holds several versions of a cell, the versions must agree too.
    """
    loose = _unambiguous(a.plan) and _unambiguous(b.plan)
    sides = []
    for run in (a, b):
        productions = run.productions()
        sides.append(
            {_name(cell) if loose else cell.id: _side(run, cell, productions) for cell in run.plan}
        )
    made = {*a.productions(), *b.productions()}
    return [
        _folder_pair(name, sides[0].get(name), sides[1].get(name), made)
        for name in dict.fromkeys([*sides[0], *sides[1]])
    ]


def _folder_pair(name: str, one: Side | None, other: Side | None, made: set[str]) -> Pair:
    cell = (one or other).cell  # type: ignore[union-attr]
    versions = {
        (side.cell.producer_version, side.cell.consumer_version) for side in (one, other) if side
    }
    if cell.is_production:
        role = WRITES
    elif cell.artifact_id not in made:
        role = READS
    elif len({reader for _, reader in versions}) == 1 and len(versions) > 1:
        role = WRITES
    else:
        role = BOTH
    return Pair(name, role, one, other)


def _side(run: Run, cell: Cell, productions: Mapping[str, Cell]) -> Side:
    production = None if cell.is_production else productions.get(cell.artifact_id)
    return Side(
        run, cell, run.results.get(cell.id), run.results.get(production.id) if production else None
    )


def _deselected(result: Result) -> bool:
    return result.outcome is Outcome.NOT_RUN and result.message == DESELECTED


def _key(cell: Cell) -> _Key:
    return (
        cell.case,
        cell.producer,
        cell.producer_version,
        cell.consumer,
        cell.consumer_version,
        cell.check,
    )


def _name(cell: Cell) -> str:
    return f"{cell.case}/{cell.producer}/{cell.consumer}/{cell.check}"


def _fixture_name(cell: Cell) -> str:
    """Return the name of a cell with the version of its committed artifact."""
    return f"{cell.case}/{cell.artifact_id.partition('/')[2]}/{cell.consumer}/{cell.check}"


def _unambiguous(plan: Plan) -> bool:
    return max(Counter(map(_name, plan)).values(), default=0) <= 1
