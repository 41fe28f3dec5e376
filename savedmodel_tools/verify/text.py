"""Findings for people: a line each, the fix below; and the whole of a rule."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from reference_impl.errors import listed
from savedmodel_common.printable import counted
from savedmodel_tools.find import Skipped
from savedmodel_tools.verify.findings import Finding, Rule, found_words
from savedmodel_tools.verify.run import Report

WIDTH = 100


def report_lines(report: Report, seen: set[str]) -> Iterator[str]:
    """One model. ``seen`` are the rules whose fix has been told, which is told once."""
    yield report.name
    if report.error:
        yield f"  could not be looked at: {report.error}"
    for finding in report.findings:
        where = f"{finding.where}: " if finding.where else ""
        yield f"  {finding.severity.word:<7}  {finding.rule}  {where}{finding.message}"
        if finding.rule not in seen:
            seen.add(finding.rule)
            yield f"           fix: {finding.fix}"


def summary(
    reports: Sequence[Report], skipped: Sequence[Skipped], left_out: Sequence[str] = ()
) -> Iterator[str]:
    """Return the places that were not searched, and the counts.

    ``left_out``: ids of the rules that were not applied.
    """
    for item in skipped:
        yield f"not looked into: {item.name}: {item.reason}"
    failed = sum(report.error is not None for report in reports)
    findings = itertools.chain.from_iterable(report.findings for report in reports)
    parts = [counted(len(reports), "model"), found_words(findings)]
    parts += (
        [f"{counted(len(left_out), 'rule')} not applied ({listed(left_out)})"] if left_out else []
    )
    parts += [f"{failed} could not be looked at"] if failed else []
    yield ": ".join(parts[:2]) + "".join(f"; {part}" for part in parts[2:])


def rule_text(rule: Rule) -> str:
    """A rule explained."""
    import textwrap

    head = f"{rule.id} {rule.name} ({rule.severity.word})"
    paragraphs = [rule.summary, f"Why: {rule.why}", f"Fix: {rule.fix}"]
    return "\n\n".join([head, *[textwrap.fill(part, WIDTH) for part in paragraphs]])


def rule_line(rule: Rule) -> str:
    """Return the line of a rule in a list."""
    return f"{rule.id}  {rule.severity.word:<7}  {rule.name}"


def by_severity(findings: Iterable[Finding]) -> Counter[str]:
    """How many of each severity."""
    return Counter(finding.severity.word for finding in findings)
