"""Findings as JUnit XML: a test case for each model and rule that found something, one for each
model in which none did. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from savedmodel_common.junit import ERROR, FAILURE, TestCase, render
from savedmodel_tools.find import Skipped
from savedmodel_tools.verify.findings import Severity
from savedmodel_tools.verify.run import Report


def document(
    reports: Sequence[Report], skipped: Sequence[Skipped], fail_on: Severity | None
) -> str:
    """The document.

    Findings of at least ``fail_on`` are failures (None: none is), the others cases that passed.
    """
    cases: list[TestCase] = []
    for report in reports:
        cases += _cases(report, fail_on)
    cases += [TestCase(item.name, "find", state="skipped", message=item.reason) for item in skipped]
    return render("savedmodel-compat verify", cases)


def _cases(report: Report, fail_on: Severity | None) -> Iterator[TestCase]:
    if report.error:
        yield TestCase(report.name, "verify", state=ERROR, message=report.error)
        return
    for rule in dict.fromkeys(finding.rule for finding in report.findings):
        found = [finding for finding in report.findings if finding.rule == rule]
        worst = max(finding.severity for finding in found)
        lines = [
            f"{finding.severity.word}: {finding.where}: {finding.message}" for finding in found
        ]
        fixes = dict.fromkeys(finding.fix for finding in found)
        lines += [f"fix: {fix}" for fix in fixes]
        if fail_on is not None and worst >= fail_on:
            yield TestCase(
                report.name, rule, state=FAILURE, message=found[0].message, text="\n".join(lines)
            )
        else:
            yield TestCase(report.name, rule)
    if not report.findings:
        yield TestCase(report.name, "verify")
