"""The parts of a model that a finding stops: the consequences of its rule, where the finding is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savedmodel_tools.verify.consequences import (
    LOAD,
    NONE,
    OF_RULE,
    Body,
    Form,
    Stop,
)
from savedmodel_tools.verify.findings import Fault, Rule

if TYPE_CHECKING:
    from savedmodel_tools.verify.model import Graph


def stops_of(rule: Rule, graph: Graph | None, fault: Fault) -> tuple[Stop, ...]:
    """Return what a fault of a rule stops.

    Args:
      rule: the rule that found the fault.
      graph: the MetaGraph of the fault; None for a fault of the whole directory.
      fault: the fault.
    """
    found = OF_RULE.get(rule.id, NONE) if fault.consequences is None else fault.consequences
    form = Form.CUT if graph is None or graph.is_cut else Form.REBUILT
    body = Body.MAIN if fault.function is None else Body.FUNCTION
    stops: dict[Stop, None] = {}
    for item in found:
        if form in item.forms and body in item.bodies:
            for loader in item.loaders:
                for part in fault.parts if item.calls else (LOAD,):
                    stops[Stop(loader, part, item.proved, item.since)] = None
    return tuple(stops)
