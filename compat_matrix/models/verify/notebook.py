"""The report of ``verify`` as notebooks show it."""

from __future__ import annotations

from collections.abc import Sequence

from compat_matrix.models.verify.findings import Finding, Severity, found_words
from reference_impl.inspection import html


def show(name: str, error: str | None, findings: Sequence[Finding]) -> str:
    """Return the HTML of the report of a model: the counts, and a row for each finding."""
    rows = [
        (
            (html.strong if finding.severity is Severity.ERROR else html.dim)(finding.severity.word),
            html.code(finding.rule),
            html.code(finding.where),
            html.line(html.code(finding.message)) + html.line(html.dim("fix: "), html.code(finding.fix)),
        )
        for finding in findings
    ]
    told = html.strong("could not be looked at: ") + html.code(error) if error else html.strong(found_words(findings))
    return html.block(
        html.line(html.path(name)), html.line(told), html.table(("severity", "rule", "where", "what is wrong"), rows)
    )
