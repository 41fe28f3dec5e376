"""The reasons that keep a model from loading in any release: damage, and types of other packages. `compat` then makes no
prediction.

The rules of `verify` find it. A loader may still get through where one of them has a finding: no answer is better than a wrong
one.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from compat_matrix.models.verify.findings import Finding, Rule
from compat_matrix.models.verify.model import Model
from compat_matrix.models.verify.rules import all_rules
from compat_matrix.models.verify.run import findings_of
from reference_impl.errors import shortened
from reference_impl.format.container import layout

# Files, the checkpoint, and names in the graph that lead nowhere: no loader gets past them.
OF_ALL = ("SMC201", "SMC202", "SMC203", "SMC211", "SMC212", "SMC302", "SMC303", "SMC305", "SMC411")
# Objects, and what tf.saved_model.load alone does: it makes a function of each signature and looks at every type.
OF_OBJECTS = (
    *OF_ALL,
    "SMC214",
    "SMC311",
    "SMC312",
    "SMC313",
    "SMC314",
    "SMC315",
    "SMC521",
    "SMC522",
    "SMC523",
    "SMC525",
    "SMC526",
    "SMC528",
    "SMC531",
)
# Sessions place strictly: a machine without the device refuses the graph.
OF_SESSIONS = (*OF_ALL, "SMC501")
_SHOWN = 120  # characters of a message


@dataclass(frozen=True)
class Untold:
    """The reasons why there is no prediction for a MetaGraph through tf.saved_model.load, and through sessions and servers.

    There is one line for each rule with a finding.
    """

    objects: tuple[str, ...]
    others: tuple[str, ...]


def untold(found: layout.Layout) -> list[Untold]:
    """Return the reasons for each MetaGraph. Raises SavedModelError: a file cannot be read, for a reason other than the model."""
    model = Model(found)
    try:
        # A rule that is stopped, by a limit or by damage, has not found the model sound.
        seen = [item._replace(rule=rule.id) for rule in _rules() for item in findings_of(rule, model, tell=True)]
        return [_of_graph([item for item in seen if item.tags in (None, graph.tags)]) for graph in model.graphs]
    finally:
        model.close()


def _of_graph(seen: Sequence[Finding]) -> Untold:
    first = {item.rule: item for item in reversed(seen)}
    lines = {rule: _line(first[rule]) for rule in sorted(first)}
    each = (tuple(line for rule, line in lines.items() if rule in rules) for rules in (OF_OBJECTS, OF_SESSIONS))
    return Untold(*each)


@functools.cache
def _rules() -> tuple[Rule, ...]:
    return tuple(rule for rule in all_rules() if rule.id in OF_OBJECTS + OF_SESSIONS)


def _line(item: Finding) -> str:
    return f"{item.rule}: {shortened(item.message, _SHOWN, '...')}"
