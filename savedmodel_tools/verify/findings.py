"""Findings, and the rules that make them.

A rule's id never changes its meaning and is never given again; its name and words may become
better. The hundreds are concerns: 1 the file, 2 the checkpoint, 3 graph, functions and objects, 4
tables and assets, 5 where it runs, 6 what it does to a machine.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from savedmodel_common.printable import counted
from savedmodel_tools.verify.consequences import Consequences, Stop, severity_in
from savedmodel_tools.verify.severities import Severity as Severity


class Finding(NamedTuple):
    """One defect."""

    rule: str  # id of the rule
    severity: Severity  # that of the rule, or what the rule made of it here
    message: str  # what is wrong, in one sentence
    fix: str  # what the owner can do
    tags: str | None = (
        None  # the MetaGraph's, by commas; None for what concerns the whole directory
    )
    file: str | None = None  # relative to the model's directory
    node: str | None = None  # where in the graph
    function: str | None = None  # that the node is in (None: the main graph)
    stops: tuple[Stop, ...] = ()  # what it keeps from loading, or from being called

    def to_json(self) -> dict[str, Any]:
        """Field by field; the severity as a word.

        `compat` tells part by part what a finding stops.
        """
        fields = {name: value for name, value in self._asdict().items() if name != "stops"}
        return {**fields, "severity": self.severity.word}

    @property
    def where(self) -> str:
        """MetaGraph, function and node in words; empty for the whole directory."""
        parts = [
            f"function {self.function}" if self.function else "",
            f"node {self.node}" if self.node else "",
        ]
        tags = [] if self.tags is None else [f"[{self.tags}]"]
        return " ".join([*tags, ", ".join(filter(None, parts)) or self.file or ""]).strip()


class Fault(NamedTuple):
    """A defect as a rule yields it: the part of a finding that is not fixed by the rule."""

    message: str
    node: str | None = None
    function: str | None = None
    file: str | None = None
    severity: Severity | None = None
    fix: str | None = None
    parts: tuple[
        str, ...
    ] = ()  # of the MetaGraph, as `compat` names them: those whose calls need what is broken
    # What it stops, where that differs from what `consequences.OF_RULE` says of its rule.
    consequences: Consequences | None = None


Check = TypeVar("Check", bound=Callable[..., Iterable[Fault]])


class Rule(NamedTuple):
    """A rule."""

    id: str  # ``SMC204``
    name: str  # ``value-missing``
    severity: Severity  # of most of its findings
    summary: str  # what it finds, one line
    why: str  # what happens to whom
    fix: str  # what to do about it
    # Faults of a model, or of one MetaGraph of it where ``per_graph``; None: found before rules can
    # run.
    check: Callable[..., Iterable[Fault]] | None
    per_graph: bool

    @property
    def is_safety(self) -> bool:
        """Whether it is about what the model does to the machine."""
        return self.id.startswith("SMC6")

    def finding(
        self,
        fault: Fault,
        tags: str | None = None,
        stops: tuple[Stop, ...] = (),
        releases: Sequence[int] = (),
    ) -> Finding:
        """Return the finding for a fault.

        Args:
          fault: the fault.
          tags: those of its MetaGraph.
          stops: what it stops.
          releases: the severity is at least that of what these releases, numbers of the op history,
            refuse.
        """
        severity = self.severity if fault.severity is None else fault.severity
        proved = severity_in(stops, releases)
        severity = severity if proved is None else max(severity, proved)
        places = (tags, fault.file, fault.node, fault.function)
        return Finding(self.id, severity, fault.message, fault.fix or self.fix, *places, stops)


REGISTRY: dict[str, Rule] = {}


def _rule(
    per_graph: bool, id_: str, name: str, severity: Severity, *, summary: str, why: str, fix: str
) -> Callable[[Check], Check]:
    """Register a rule: the decorated function yields its faults."""

    def register(check: Check) -> Check:
        _register(Rule(id_, name, severity, summary, why, fix, check, per_graph))
        return check

    return register


graph_rule = functools.partial(
    _rule, True
)  # of each MetaGraph: its check is given the model and the MetaGraph
model_rule = functools.partial(_rule, False)  # of the whole directory


def declare(id_: str, name: str, severity: Severity, *, summary: str, why: str, fix: str) -> Rule:
    """Register a rule for what is found where no rule can run: a model that cannot be read."""
    return _register(Rule(id_, name, severity, summary, why, fix, None, False))


def _register(rule: Rule) -> Rule:
    if rule.id in REGISTRY or rule.name in {known.name for known in REGISTRY.values()}:
        raise ValueError(f"two rules are called {rule.id} or {rule.name}")
    REGISTRY[rule.id] = rule
    return rule


def few(names: Iterable[str], shown: int = 3) -> Iterator[str]:
    """Return the first names, quoted, and the number of the others."""
    listed = list(names)
    yield from map(repr, listed[:shown])
    if len(listed) > shown:
        yield f"and {len(listed) - shown} more"


def found_words(findings: Iterable[Finding]) -> str:
    """Return ``2 errors, 1 warning``, or ``nothing found``."""
    counts = Counter(finding.severity for finding in findings)
    found = [
        counted(counts[severity], severity.word)
        for severity in reversed(Severity)
        if counts[severity]
    ]
    return ", ".join(found) or "nothing found"
