"""The rules on a model: `verify`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from reference_impl import errors
from reference_impl.format.container import files, layout
from savedmodel_common.printable import told
from savedmodel_tools.verify.consequences import LOAD, Loader, Stop
from savedmodel_tools.verify.findings import (
    Fault,
    Finding,
    Rule,
    Severity,
    found_words,
)
from savedmodel_tools.verify.model import Graph, Model
from savedmodel_tools.verify.rules import NOT_APPLIED, UNREADABLE, all_rules
from savedmodel_tools.verify.stops import stops_of

if TYPE_CHECKING:
    from savedmodel_tools.find import Model as Named

MAX_FINDINGS = 20  # of one rule in one MetaGraph; how many more there are is told


class Report(NamedTuple):
    """What was found in one model."""

    name: str  # of the model, as the user calls it
    findings: tuple[Finding, ...] = ()  # the worst first, then by rule
    # Why it could not be looked at for a reason that is not the model's (permissions, network);
    # None otherwise.
    error: str | None = None

    def worst(self) -> Severity | None:
        return max((finding.severity for finding in self.findings), default=None)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "error": self.error,
            "findings": [finding.to_json() for finding in self.findings],
        }

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        from reference_impl.views import html

        rows = [
            (
                (html.strong if finding.severity is Severity.ERROR else html.dim)(
                    finding.severity.word
                ),
                html.code(finding.rule),
                html.code(finding.where),
                html.line(html.code(finding.message))
                + html.line(html.dim("fix: "), html.code(finding.fix)),
            )
            for finding in self.findings
        ]
        failed = (
            html.strong("could not be looked at: ") + html.code(self.error) if self.error else ""
        )
        table = html.table(("severity", "rule", "where", "what is wrong"), rows)
        told = failed or html.strong(found_words(self.findings))
        return html.block(html.line(html.path(self.name)), html.line(told), table)


def verify(
    path: files.AnyPath,
    rules: Sequence[Rule] | None = None,
    *,
    name: str | None = None,
    follow_links: bool = False,
    releases: Sequence[int] = (),
) -> Report:
    """Apply rules to the SavedModel at ``path``.

    It is read, never run.

    Args:
      path: its directory, or a saved_model.* file.
      rules: those of `savedmodel_tools.verify.rules.choose`; all by default.
      name: what to call it in the report; the path by default.
      follow_links: accept symbolic links that lead out of the directory.
      releases: numbers of the op history; the severity of a finding is that for these. Default: the
        newest release.

    Returns:
      The findings. A model that cannot be read has one that says so; the report has an ``error``
      only when the operating system refuses.
    """
    chosen = all_rules() if rules is None else rules
    called = str(path) if name is None else name
    try:
        model = Model(layout.read(path, follow_links=follow_links), releases)
    except errors.SavedModelError as error:
        if not errors.about_the_model(error):
            return Report(called, error=str(error))
        found = [UNREADABLE.finding(Fault(told(error)))] if UNREADABLE in chosen else []
        return Report(called, tuple(found))
    try:
        findings: list[Finding] = []
        for rule in chosen:
            findings += findings_of(rule, model, NOT_APPLIED in chosen)
    except errors.FileAccessError as error:
        return Report(called, error=str(error))
    finally:
        model.close()
    return Report(called, tuple(sorted(findings, key=lambda item: (-item.severity, item.rule))))


def verify_found(
    model: Named, rules: Collection[str], follow_links: bool, releases: Sequence[int] = ()
) -> Report:
    """`verify` by the rules of some ids of a model that a search has found.

    Nothing that goes wrong ends the run over others.
    """
    try:
        with model.local() as path:
            chosen = [rule for rule in all_rules() if rule.id in rules]
            return verify(
                path, chosen, name=model.name, follow_links=follow_links, releases=releases
            )
    except OSError as error:
        return Report(model.name, error=str(error))
    except Exception as error:
        import traceback

        last = traceback.extract_tb(error.__traceback__)[-1]
        return Report(
            model.name,
            error=(
                f"a defect of ours: {type(error).__name__}: {error} ({last.name}, line"
                f" {last.lineno})"
            ),
        )


def findings_of(rule: Rule, model: Model, tell: bool = False) -> Iterator[Finding]:
    """Return the findings of one rule.

    A rule that is stopped is a finding too, if it is one of safety or with ``tell``.
    """
    if rule.check is None:
        return
    for graph in model.graphs if rule.per_graph else [None]:
        tags = None if graph is None else graph.tags
        try:
            faults = rule.check(model) if graph is None else rule.check(model, graph)
            yield from _first(
                rule, faults, tags, functools.partial(stops_of, rule, graph), model.releases
            )
        except errors.SavedModelError as error:
            if not errors.about_the_model(error):
                raise
            if tell or rule.is_safety:
                severity = _severity_of_the_unseen(rule, error)
                text = f"{rule.id} ({rule.name}): {type(error).__name__}: {error}"
                stops = _all_unproved(rule, graph)
                yield NOT_APPLIED.finding(Fault(text, severity=severity), tags, stops)


def _all_unproved(rule: Rule, graph: Graph | None) -> tuple[Stop, ...]:
    """Return what a rule might have found to be stopped, of every part, had it not been stopped
    itself.
    """
    loaders: set[Loader] = set()
    for body in (None, ""):
        stops = stops_of(rule, graph, Fault("", function=body, parts=(LOAD,)))
        loaders.update(item.loader for item in stops)
    return tuple(Stop(loader, LOAD, False, "") for loader in sorted(loaders))


def _severity_of_the_unseen(rule: Rule, error: errors.SavedModelError) -> Severity:
    """Return how bad it is that a rule stopped.

    A model must not pass a rule of safety by being damaged where the rule looks, nor any rule by
    being larger than its limit. Other damage is as bad as what the rule finds; the rules for the
    damaged part find it too.
    """
    if rule.is_safety or isinstance(error, errors.LimitError):
        return Severity.ERROR
    return max(rule.severity, Severity.WARNING)


def _first(
    rule: Rule,
    faults: Iterable[Fault],
    tags: str | None,
    stops_of_fault: Callable[[Fault], tuple[Stop, ...]],
    releases: Sequence[int],
) -> Iterator[Finding]:
    """Return the first findings, and one with the number of the others, their worst severity and
    all that they stop.
    """
    more, worst, stopped = 0, Severity.INFO, dict[Stop, None]()
    for number, fault in enumerate(faults):
        finding = rule.finding(fault, tags, stops_of_fault(fault), releases)
        if number < MAX_FINDINGS:
            yield finding
        else:
            more, worst = more + 1, max(worst, finding.severity)
            stopped.update(dict.fromkeys(finding.stops))
    if more:
        fault = Fault(f"{more} more findings of this rule are not listed", severity=worst)
        yield rule.finding(fault, tags, tuple(stopped), releases)
