"""Observations (what a check returns) and results (one line of ``results.jsonl``)."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, Any

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import RESULTS_FILE, Cell, Plan
from reference_impl.errors import shortened
from savedmodel_common import strict_json
from savedmodel_common.gist import of_graph_error
from savedmodel_common.writing import write_set

SCHEMA = 1
MAX_MESSAGE = (
    20_000  # characters; a hostile model must not fill the disk with its reader's messages
)
MAX_DEPTH = 20  # of details
DESELECTED = "deselected"  # the reason of a NOT_RUN that the user's selection caused


class ResultsError(ValueError):
    """A result file cannot be used; the message names the file, the line and the reason."""


@dataclass
class Observation:
    """The observation of one executed cell.

    ``details`` is check specific (expected vs got) and JSON-able; ``evidence`` maps a name to a
    path relative to the output folder; ``timings`` maps a step to seconds; the worker reported
    ``versions`` and ``libraries``. Raises ValueError for an outcome that one execution cannot have
    (NOT_APPLICABLE, NOT_RUN, UNSTABLE).
    """

    outcome: Outcome
    error_class: str | None = None
    message: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    evidence: dict[str, str] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    libraries: list[str] = field(default_factory=list)
    rss_kib: int | None = None

    def __post_init__(self) -> None:
        self.outcome = Outcome(self.outcome)
        if not self.outcome.observable:
            raise ValueError(
                f"{self.outcome} is decided before a cell runs, a check cannot observe it"
            )
        if self.outcome is Outcome.UNSTABLE:
            raise ValueError("UNSTABLE needs two executions, a check cannot observe it in one")


@dataclass
class Result:
    """One line of ``results.jsonl``.

    ``expected`` is None if there is nothing to judge (NOT_RUN).
    """

    plan_id: str
    cell: str
    outcome: Outcome
    error_class: str | None = None
    message: str = ""
    message_normalised: str = ""
    expected: bool | None = None
    expectation: int | None = None
    versions: dict[str, str] = field(default_factory=dict)
    libraries: list[str] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    rss_kib: int | None = None
    evidence: dict[str, str] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    replay: str = ""

    @classmethod
    def observed(
        cls,
        plan_id: str,
        cell: str,
        seen: Observation,
        replay: str | None = None,
        places: Iterable[str | Path] = (),
    ) -> Result:
        """Return the result of an executed cell, not judged yet.

        ``replay`` is the command line that executes it again; ``places`` are folders of the run
        (see :func:`normalise`).
        """
        message = seen.message
        if len(message) > MAX_MESSAGE:
            message = f"{message[:MAX_MESSAGE]} ... ({len(message) - MAX_MESSAGE} characters more)"
        return cls(
            plan_id=plan_id,
            cell=cell,
            outcome=seen.outcome,
            error_class=seen.error_class,
            message=message,
            message_normalised=normalise(message, places),
            versions=dict(seen.versions),
            libraries=list(seen.libraries),
            timings={step: round(seconds, 4) for step, seconds in seen.timings.items()},
            rss_kib=seen.rss_kib,
            evidence=dict(seen.evidence),
            details=_plain(seen.details),
            replay=(
                f"savedmodel-compat matrix run --out replay --cell {cell}"
                if replay is None
                else replay
            ),
        )

    @classmethod
    def not_executed(
        cls,
        plan_id: str,
        cell: str,
        outcome: Outcome,
        reason: str,
        places: Iterable[str | Path] = (),
    ) -> Result:
        """Return the result of a cell that was decided by the plan (NOT_APPLICABLE) or was not
        executed (NOT_RUN).
        """
        expected = True if outcome is Outcome.NOT_APPLICABLE else None
        return cls(
            plan_id,
            cell,
            outcome,
            message=reason,
            message_normalised=_reason_normalised(reason, tuple(map(str, places))),
            expected=expected,
        )

    @property
    def skew(self) -> str:
        """Return the version skew that caused the failure, in one line; "" if none was found."""
        return str(self.skew_facts.get("text", ""))

    @property
    def skew_cause(self) -> str:
        """Return the name and the remedy of that skew, in words independent of the op's place in
        the model; "" if none was found."""
        return str(self.skew_facts.get("cause", ""))

    @property
    def cause(self) -> str:
        """Return the message for a headline: :func:`cause_of`."""
        return cause_of(self.message, self.message_normalised)

    @property
    def skew_facts(self) -> dict[str, Any]:
        """Return the skew as `savedmodel_tools.skew.naming.Skew` writes it; empty if none was
        found.
        """
        found = self.details.get("skew")
        return found if isinstance(found, dict) else {}

    def to_line(self) -> str:
        return json.dumps(
            {"schema": SCHEMA, **vars(self), "outcome": str(self.outcome)}, allow_nan=False
        )

    @classmethod
    def from_line(cls, line: str) -> Result:
        """Raises ResultsError for another schema, an unknown outcome, missing or unknown fields."""
        try:
            data = strict_json.loads(line)
            if data.pop("schema") != SCHEMA:
                raise ValueError(f"the schema is not {SCHEMA}")
            missing = {f.name for f in fields(cls)} ^ set(data)
            if missing:
                raise ValueError(f"missing or unknown fields: {', '.join(sorted(missing))}")
            wrong = [name for name, holds in _HOLDS.items() if not holds(data[name])]
            if wrong:
                raise ValueError(f"fields of another type: {', '.join(wrong)}")
            return cls(**{**data, "outcome": Outcome(data["outcome"])})
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ResultsError(f"not a result of schema {SCHEMA}: {error}") from error


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_table(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(holds, value.values()))


_HOLDS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(
        ("plan_id", "cell", "outcome", "message", "message_normalised", "replay"), _is_text
    ),
    "error_class": lambda value: value is None or _is_text(value),
    "expected": lambda value: value is None or isinstance(value, bool),
    **dict.fromkeys(
        ("expectation", "rss_kib"),
        lambda value: value is None or (isinstance(value, int) and _is_number(value)),
    ),
    **dict.fromkeys(("versions", "evidence"), _is_table(_is_text)),
    "libraries": lambda value: isinstance(value, list) and all(map(_is_text, value)),
    "timings": _is_table(_is_number),
    "details": lambda value: isinstance(value, dict),
}


def read_results(path: Path) -> list[Result]:
    """Read the results of a file; the last line of a cell counts.

    A torn last line (of a killed run) is left out.

    A missing file holds no results. Raises ResultsError for any other line that cannot be read, and
    for a line that was added or changed after the run ended.
    """
    if not path.exists():
        return []
    known = _seal(path)
    text = path.read_text(encoding="utf-8", errors="replace")
    results: dict[str, Result] = {}
    for number, line in enumerate(text.split("\n")[:-1], 1):
        try:
            result = Result.from_line(line)
        except ResultsError as error:
            raise ResultsError(f"{path}, line {number}: {error}") from error
        if known is not None and _digest(line) not in known:
            raise ResultsError(
                f"{path}, line {number}: the run did not write this result of {result.cell}: the"
                f" file was edited, or is of another run (see {seal_of(path).name}). Run it again"
            )
        results.pop(result.cell, None)
        results[result.cell] = result
    return list(results.values())


def of_plan(results: Iterable[Result], plan: Plan) -> dict[str, Result]:
    """Return cell -> result, without results of other plans and results that contradict what the
    plan decided.
    """
    mine = {
        result.cell: result
        for result in results
        if result.plan_id == plan.plan_id and result.cell in plan.by_id
    }
    return {name: result for name, result in mine.items() if _answers(plan.by_id[name], result)}


def _answers(cell: Cell, result: Result) -> bool:
    if cell.decided:
        return result.outcome is cell.decided.outcome
    return result.outcome is not Outcome.NOT_APPLICABLE


def write_results(path: Path, results: Iterable[Result]) -> None:
    """Write results, and the digests of their lines beside them.

    The digests are valid until the run is continued.
    """
    lines = [result.to_line() for result in results]
    seal = "".join(f"{digest}\n" for digest in sorted(map(_digest, lines)))
    write_set(
        path.parent, {path.name: "".join(f"{line}\n" for line in lines), seal_of(path).name: seal}
    )


def append_results(path: Path) -> IO[str]:
    """Open the results of a run that is continued; the next :func:`write_results` seals them
    again.
    """
    seal_of(path).unlink(missing_ok=True)
    return path.open("a", encoding="utf-8")


def remove_results(path: Path) -> None:
    """Remove the results and their seal."""
    seal_of(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def not_sealed(run: str = "the run") -> str:
    """Return in words that the results of a run have no digests, and what to do."""
    return (
        f"{run} did not come to its end, there is no {seal_of(Path(RESULTS_FILE)).name}: continue"
        " with --resume"
    )


def is_sealed(path: Path) -> bool:
    """Return whether the run that wrote a result file has ended."""
    return seal_of(path).exists()


def seal_of(path: Path) -> Path:
    """Return the file with the digests of the lines of a result file.

    It exists once the run has ended.
    """
    return path.with_suffix(".sha256")


def _seal(path: Path) -> set[str] | None:
    """Return the digests of all lines that the run wrote, None if they are not known yet."""
    seal = seal_of(path)
    return (
        set(seal.read_text(encoding="utf-8", errors="replace").split()) if seal.exists() else None
    )


def _digest(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()[:16]


_ENDS = r"\s'\"`,;:()\[\]{}<>"  # characters that end a path, unless it stands in quotes

# Parts of a message that differ between two runs of the same failure. The order matters: a device
# or a URL is not a path.
_NORMALISE = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<address>"),
    (re.compile(r"/job:[\w/:.-]+"), "<device>"),
    (
        re.compile(r"(?:(?<!\w)|(?<=\bb))(['\"`])(?:file://|~)?/(?:(?!\1)[^\n])+\1(?!\w)"),
        r"\1<path>\1",
    ),
    (re.compile(rf"(?<![\w:/<>.-])(?:file://|~)?/[^{_ENDS}]+"), "<path>"),
    (re.compile(r"\bline \d+"), "line #"),
    (
        re.compile(r"(?<=[A-Za-z0-9>])(?:_\d+)+(?!\w)|(?<=__load)\d+"),
        "",
    ),  # op suffixes: add_12, <lambda>_345, f__load6
    (re.compile(r"\s+"), " "),
)


def normalise(message: str, places: Iterable[str | Path] = ()) -> str:
    """Return the part of a message that is the same in every run, without paths, addresses, op
    suffixes, line numbers and times.

    A path without quotes ends at a space or a bracket. ``places`` are folders, absolute, whose
    names may hold such characters.
    """
    for place in sorted({str(place) for place in places}, key=len, reverse=True):
        if place.startswith("/"):
            message = message.replace(place, re.sub(f"[{_ENDS}]", "_", place))
    for pattern, text in _NORMALISE:
        message = pattern.sub(text, message)
    return message.strip()


@functools.lru_cache(maxsize=256)
def _reason_normalised(reason: str, places: tuple[str, ...]) -> str:
    """Return `normalise`: a run of few cells gives one reason for all others."""
    return normalise(reason, places)


def cause_of(message: str, normalised: str) -> str:
    """Return what a headline says of a message: of a graph error the informative line, which stands
    far from its front.
    """
    return normalise(of_graph_error(message)) or normalised


def one_line(text: str, limit: int) -> str:
    """Return ``text`` for a terminal: one line of at most ``limit`` characters, without control
    characters from untrusted files."""
    text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return shortened(text, limit, "...")


def _plain(value: Any, depth: int = 0) -> Any:
    """Return ``value`` as strict JSON, so that a check cannot break the file with a NaN, a NumPy
    scalar or a cycle.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth >= MAX_DEPTH:
        return "..."
    if isinstance(value, dict):
        return {str(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, depth + 1) for item in value]
    if hasattr(value, "tolist"):  # NumPy
        return _plain(value.tolist(), depth + 1)
    return str(value)
