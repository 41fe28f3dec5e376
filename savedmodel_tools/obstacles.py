"""The findings of `verify` that keep a part of a model from loading or being called.

They hold whatever ops a release has: damage, contradictions, types of other packages. The module
:mod:`savedmodel_tools.verify.consequences` lists what each of them stops. `compat` says that a
part cannot be used where that is proved. It makes no prediction where a part may fail, since no
answer is better than a wrong one.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator

from reference_impl.errors import shortened
from reference_impl.format.container import layout
from savedmodel_tools.verify.consequences import (
    LOAD,
    OF_RULE,
    Loader,
    Stop,
    fails_in,
)
from savedmodel_tools.verify.findings import Finding, Rule
from savedmodel_tools.verify.model import Graph, Model
from savedmodel_tools.verify.rules import all_rules
from savedmodel_tools.verify.run import findings_of

_SHOWN = 120  # characters of a message


class Obstacles:
    """The obstacles in one MetaGraph, from the findings about it."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._lines: dict[tuple[Loader, str], dict[str, tuple[str, list[Stop]]]] = {}
        for finding in sorted(findings, key=lambda item: item.rule):
            for stop in finding.stops:
                of_part = self._lines.setdefault((stop.loader, stop.part), {})
                of_part.setdefault(finding.rule, (_line(finding), []))[1].append(stop)

    def concern(self, loader: str, part: str) -> bool:
        """Return whether there is any about a part."""
        return next(self._of(loader, part), None) is not None

    def refused(self, loader: str, part: str, index: int) -> tuple[str, ...]:
        """Return why a part is proved not to load, or not to answer, in a release; a line for each
        rule with a finding.
        """
        return self._chosen(loader, part, [index], proved=True)

    def unknown(
        self, loader: str, part: str, releases: Iterable[int] | None = None
    ) -> tuple[str, ...]:
        """Return why it is not known whether a part loads.

        Args:
          loader: the loader.
          part: the part, as `compat` names it.
          releases: numbers of the op history. None: nothing counts as proved.
        """
        return self._chosen(loader, part, releases, proved=False)

    def _chosen(
        self, loader: str, part: str, releases: Iterable[int] | None, proved: bool
    ) -> tuple[str, ...]:
        asked = None if releases is None else tuple(releases)
        found: dict[str, None] = {}
        for line, stops in self._of(loader, part):
            if asked is None:
                found[line] = None
                continue
            fails = [_any_fails(stops, index) for index in asked]
            if any(fails) if proved else not all(fails):
                found[line] = None
        return tuple(found)

    def _of(self, loader: str, part: str) -> Iterator[tuple[str, list[Stop]]]:
        """Yield each line about a part, and about all parts, with what it stops."""
        for name in dict.fromkeys([LOAD, part]):
            yield from self._lines.get((Loader(loader), name), {}).values()


def obstacles(found: layout.Layout) -> list[Obstacles]:
    """Return the obstacles in each MetaGraph.

    Raises SavedModelError: a file cannot be read, for a reason other than the model.
    """
    model = Model(found)
    try:
        # A rule that is stopped, by a limit or by damage, has not found the model sound.
        seen: list[Finding] = []
        for rule in _rules():
            seen += [item._replace(rule=rule.id) for item in findings_of(rule, model, tell=True)]
        return [Obstacles(_about(graph, seen)) for graph in model.graphs]
    finally:
        model.close()


@functools.cache
def _rules() -> tuple[Rule, ...]:
    """Return the rules whose findings stop something."""
    return tuple(rule for rule in all_rules() if OF_RULE.get(rule.id) or rule.id in SOMETIMES)


SOMETIMES = ("SMC601",)  # a file that is read at load may be absent


def _line(item: Finding) -> str:
    return f"{item.rule}: {shortened(item.message, _SHOWN, '...')}"


def _any_fails(stops: Iterable[Stop], index: int) -> bool:
    return any(fails_in(stop, index) for stop in stops)


def _about(graph: Graph, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings about one MetaGraph, and those about the whole model."""
    return [item for item in findings if item.tags in (None, graph.tags)]
