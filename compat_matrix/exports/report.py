"""The report of a check, as text for people and as data for programs.

Pure functions of plan and results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import Cell, Plan
from compat_matrix.cells.results import Result, normalise, one_line
from compat_matrix.checks.kinds.objects import GRADIENTS
from compat_matrix.exports.options import ANSWERING
from compat_matrix.report.terminal import EXIT_WORDS, NOT_COMPARED, ledger_lines
from compat_matrix.requests.artifact import read_artifact
from compat_matrix.requests.given import Prepared
from compat_matrix.requests.recorder import ANSWERED_BY
from compat_matrix.verdict import named
from compat_matrix.verdict.prediction import TOLD
from reference_impl.errors import listed
from reference_impl.format.container.files import shown
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.gist import gist
from savedmodel_common.printable import counted

SCHEMA = 1
RECORDED = "recorded"
NO_REQUEST = (
    "no request can be made: the export has no signature, and no request of a function is given"
    " (--requests FOLDER: io.json, kind `function`)"
)
_WIDE = 600  # characters of a message
_FEW = 3  # of one kind in one message


@dataclass(frozen=True)
class FailureGroup:
    """Cells that fail for one reason: who fails, what is wrong and what to do, the evidence of the
    first, how to repeat it.

    Attributes:
      models: the names of the models that fail so; empty if only one model was checked.
    """

    outcome: str
    models: list[str]
    title: str
    lines: list[str]
    evidence: list[str]
    replay: str
    cells: list[str]


@dataclass(frozen=True)
class Report:
    """The verdict on one or many exports. All files are in the folder ``out``."""

    out: Path
    prepared: list[Prepared]
    plan: Plan
    results: dict[str, Result]
    summary: dict[str, Any]

    @property
    def exit_code(self) -> int:
        """The exit code: 0 as expected, 1 unexpected, 2 stale expectation, 3 incomplete, 4 harness
        or machine.
        """
        return int(self.summary["exit_code"])

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    @property
    def counts(self) -> dict[str, int]:
        """Number of cells by outcome."""
        return {name: count for name, count in self.summary["by_outcome"].items() if count}

    @property
    def failures(self) -> list[Result]:
        """The results that are not as expected, in the order of execution."""
        return [result for result in self.results.values() if result.expected is False]

    @property
    def not_run(self) -> list[Result]:
        return [result for result in self.results.values() if result.outcome is Outcome.NOT_RUN]

    def cells(self, consumer: str = "*", check: str = "*") -> list[Result]:
        """Return the results of some cells."""
        chosen = (
            cell
            for cell in self.plan
            if consumer in ("*", cell.consumer) and check in ("*", cell.check)
        )
        return [self.results[cell.id] for cell in chosen]

    def headline(self) -> str:
        """Return one line: the export, or the number of exports, and the counts."""
        names = self.prepared[0].name if len(self.prepared) == 1 else f"{len(self.prepared)} models"
        bad = len(self.failures)
        made = counted(self.summary["observed"], "check")
        parts = [f"{bad} of {made} failed" if bad else made]
        parts += [f"{len(self.not_run)} not run"] if self.not_run else []
        known = sum(
            bool(result.expected) and result.outcome.gate_failure
            for result in self.results.values()
        )
        parts += [counted(known, "known failure")] if known else []
        return f"{names}: {', '.join(parts)}"

    def text(self) -> str:
        """Return the report as text: failures with the commands that repeat them, checks that did
        not run, and the comparisons."""
        lines = [self.headline()]
        for cause in self.causes():
            several = len(cause.models) > 1
            where = counted(len(cause.models), "model") if several else listed(cause.models, 1)
            lines.append(f"{cause.outcome}  {where + ': ' if cause.models else ''}{cause.title}")
            lines += [f"    models: {listed(cause.models)}"] if len(cause.models) > 1 else []
            lines += [f"    {line}" for line in cause.lines]
            if cause.evidence:
                paths = [self.out / path for path in cause.evidence]
                lines.append(
                    f"    evidence: {shown(paths[0].parent)}"
                    f" ({', '.join(path.name for path in paths)})"
                )
            lines.append(f"    reproduce: {cause.replay}")
        lines += ledger_lines(self.summary["ledger"])
        lines += self.not_run_lines()
        lines += [
            f"named, and not asked: {named.words([one])}"
            for one in self.summary.get("not_asked", ())
        ]
        for item in self.prepared:
            lines += self._compared(item)
        if not self.ok:
            lines.append(
                f"exit {self.exit_code}: {EXIT_WORDS[ExitCode(self.exit_code)]}; report:"
                f" {shown(self.out / 'report.html')}"
            )
        return "\n".join(lines)

    def not_run_lines(self) -> list[str]:
        """Return a line for each reason."""
        return list(self._not_run())

    def causes(self) -> list[FailureGroup]:
        """Return the failures, cells with the same reason together; first the reasons of most
        models.
        """
        groups: dict[tuple[str, ...], list[Result]] = {}
        for result in self.failures:
            groups.setdefault(self._cause_of(result), []).append(result)
        return sorted(map(self._told, groups.values()), key=lambda cause: -len(cause.models))

    def about(self) -> dict[str, Any]:
        """Return the data for the page beside plan and results
        (`compat_matrix.report.html.render`).
        """
        names = {cell.case: self._item(cell).name for cell in self.plan}
        return {"names": names, "causes": [vars(cause) for cause in self.causes()]}

    def _cause_of(self, result: Result) -> tuple[str, ...]:
        """Return a key that is equal for failures with the same reason, also in different checks,
        consumers and models.
        """
        cell = self.plan.by_id[result.cell]
        if isinstance(result.details.get("request"), str) and result.details.get("differences"):
            return (cell.case, str(result.outcome), *_words(result, self._item(cell), self.results))
        said = normalise(result.message, [self.out]).replace("the re-export, ", "")
        return (str(result.outcome), result.error_class or "", said, "" if said else cell.id)

    def _told(self, results: Sequence[Result]) -> FailureGroup:
        """Return one cause; its first cell is the example."""
        first = results[0]
        cells = [self.plan.by_id[result.cell] for result in results]
        who = ", ".join(dict.fromkeys(f"{cell.consumer}@{cell.consumer_version}" for cell in cells))
        checks = ", ".join(dict.fromkeys(cell.check for cell in cells))
        models = (
            list(dict.fromkeys(self._item(cell).name for cell in cells))
            if len(self.prepared) > 1
            else []
        )
        unexpected = [] if first.outcome.gate_failure else ["the ledger expects a failure"]
        return FailureGroup(
            str(first.outcome),
            models,
            f"{who} / {checks}",
            unexpected + list(_words(first, self._item(cells[0]), self.results)),
            sorted(first.evidence.values()),
            first.replay,
            [cell.id for cell in cells],
        )

    def _item(self, cell: Cell) -> Prepared:
        return next(item for item in self.prepared if str(item.directory) == cell.artifact)

    def _not_run(self) -> Iterator[str]:
        """Group cells by reason, and of many models by model."""
        groups: dict[tuple[str, str], list[Cell]] = {}
        for result in self.not_run:
            cell = self.plan.by_id[result.cell]
            model = f"{self._item(cell).name}: " if len(self.prepared) > 1 else ""
            groups.setdefault((model, result.message.removeprefix(NOT_COMPARED)), []).append(cell)
        for (model, reason), cells in groups.items():
            told = NOT_COMPARED if any(cell.check == "compared" for cell in cells) else ""
            consumers: dict[str, list[str]] = {}
            for cell in cells:
                consumers.setdefault(cell.consumer, []).append(cell.check)
            who = "; ".join(
                f"{consumer} / {', '.join(dict.fromkeys(checks))}"
                for consumer, checks in consumers.items()
            )
            yield f"NOT_RUN  {model}{who}: {told}{one_line(reason, 2 * _WIDE)}"

    def _compared(self, item: Prepared) -> Iterator[str]:
        """Return with what the answers were compared, by which consumers, and within which
        tolerance.
        """
        sources: Counter[str] = Counter()
        inexact = 0
        for cell in self.plan:
            if cell.artifact != str(item.directory) or cell.check not in ANSWERING:
                continue
            result = self.results[cell.id]
            if result.outcome is Outcome.PASS:
                consumer = result.cell.split("/")[2]
                answers = result.details.get("answers", ())
                answered_by = (item.answered_by.get(name, RECORDED) for name in answers)
                sources.update(source for source in answered_by if source != consumer)
                inexact += len(result.details.get("inexact", ()))
        if sources:
            against = ", ".join(
                f"{count} with {'recorded ones' if source == RECORDED else f'those of {source}'}"
                for source, count in sorted(sources.items())
            )
            near = f"; {inexact} equal within the tolerance only" if inexact else ""
            name = f"{item.name}: " if len(self.prepared) > 1 else ""
            yield f"{name}answers compared: {against}{near}"

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON data (docs/exporters/check_exports.md)."""
        return {
            "schema": SCHEMA,
            "exit_code": self.exit_code,
            "out": str(self.out),
            "counts": self.counts,
            "not_asked": self.summary["not_asked"],
            "exports": [
                {"name": item.name, "artifact": str(item.directory), "left_out": item.left_out}
                for item in self.prepared
            ],
            "cells": [self._cell(result) for result in self.results.values()],
            "ledger": {kind: items for kind, items in self.summary["ledger"].items() if items},
        }

    def _cell(self, result: Result) -> dict[str, Any]:
        return {
            "cell": result.cell,
            "outcome": str(result.outcome),
            "expected": result.expected,
            "error_class": result.error_class,
            "message": result.message,
            "details": result.details,
            "evidence": {name: str(self.out / path) for name, path in result.evidence.items()},
            "reproduce": result.replay,
        }


def compared(plan: Plan, results: Sequence[Result], item: Prepared) -> tuple[int, str]:
    """Return how many answers were compared with recorded ones or with another consumer's, or why
    none were.

    A consumer that repeats its own recorded answer does not count as a comparison.
    """
    count, alone, failed = 0, "", ""
    for result in results:
        cell = plan.by_id[result.cell]
        who = f"{cell.consumer}@{cell.consumer_version}"
        for name in result.details.get("answers", ()):
            if item.answered_by.get(name) == who:
                alone = f"only {who} answered, and nothing is recorded to compare with"
            else:
                count += 1
        if result.outcome.gate_failure:
            failed = "no consumer that answers can be compared with another"
    if count:
        return count, ""
    if not item.left_out and not item.problems and not read_artifact(item.directory).requests:
        return 0, NO_REQUEST
    not_run = next((result.message for result in results if result.outcome is Outcome.NOT_RUN), "")
    nothing = "; ".join(one_line(text, 2 * _WIDE) for text in item.left_out[:1]) or "; ".join(
        item.problems[:1]
    )
    nothing = nothing or "no consumer could be asked"
    return 0, not_run or alone or failed or nothing


def _words(result: Result, item: Prepared, results: Mapping[str, Result]) -> Iterator[str]:
    """Return the details of a failure: signature, output, element, both values and their distance;
    else the message.
    """
    name = result.details.get("request")
    request = next(
        (one for one in read_artifact(item.directory).requests if one["id"] == name), None
    )
    differences, found = result.details.get("differences"), result.details.get("findings")
    if isinstance(found, list):
        for one in found[:_FEW]:
            yield one_line(
                f"{one['severity']} {one['rule']} {one['node'] or one['file'] or ''}:"
                f" {one['message']}",
                _WIDE,
            )
            yield one_line(f"    fix: {one['fix']}", _WIDE)
        yield from [f"and {len(found) - _FEW} more findings"] if len(found) > _FEW else []
    elif request is None or not differences or not isinstance(differences[0], dict):
        yield one_line(" ".join(filter(None, (result.error_class, gist(result.message)))), _WIDE)
    else:
        source = request.get(ANSWERED_BY)
        said = f"{source} answered" if source else "recorded"
        of = "gradients of " if result.details.get("of") == GRADIENTS else ""
        what = of + (
            f"signature {request['signature']!r}, output"
            if request["kind"] == "signature"
            else f"function {request['path']!r},"
        )
        for difference in differences[:_FEW]:
            where = f" {difference['where']!r}" if difference["where"] else "s"
            yield one_line(
                f"request {request['id']}: {what}{where}: {_difference(difference, said)}", _WIDE
            )
        if source:
            yield from _alone(source, request["id"], result, results)
    if result.skew:
        yield one_line(f"skew: {result.skew}", _WIDE)
    if TOLD in result.details:
        yield one_line(f"predicted by the op history: {result.details[TOLD]}", _WIDE)
    problems = result.details.get("problems", ())
    for also in [*problems[1:], *result.details.get("also", ())][:_FEW]:
        yield one_line(f"also: {gist(also)}", _WIDE)


def _difference(found: Mapping[str, Any], said: str) -> str:
    if found["kind"] != "value":
        pair = (
            f"is {found['got']}, {said} {found['expected']}"
            if "got" in found and "expected" in found
            else ""
        )
        names = ", ".join(
            f"{word} {found[word]}" for word in ("missing", "unexpected") if found.get(word)
        )
        return f"{found['kind']}: {pair or names or 'differs'}"
    at = f"element {found['index']}" if found["index"] else "the scalar"
    text = (
        f"{at} is {found['got']}, {said} {found['expected']}; {found['differing']} of"
        f" {found['elements']} differ"
    )
    if "max_abs_error" in found:
        text += f", by at most {found['max_abs_error']:.6g}"
    if "max_ulp_error" in found:
        text += f" or {found['max_ulp_error']:.0f} ulp"
    return text


def _alone(
    source: str, request: str, result: Result, results: Mapping[str, Result]
) -> Iterator[str]:
    """Yield a sentence if all other consumers agree with each other, and only ``source`` answers
    differently.
    """
    digests = {}
    for other in results.values():
        who = other.cell.split("/")[2]
        if (
            other.cell.endswith("/values")
            and other.cell.split("/")[:2] == result.cell.split("/")[:2]
            and who != source
        ):
            digests[who] = other.details.get("answers", {}).get(request)
    if len(digests) > 1 and len(set(digests.values())) == 1 and None not in digests.values():
        yield f"{source} is alone with its answer: {', '.join(digests)} agree with each other"
