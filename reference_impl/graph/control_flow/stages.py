"""The branches of a tf.cond in several Ifs, where one would wait for itself (V1-11).

tf.gradients puts the backward pass of a branch into the branch: it uses what the forward pass computed there, and gradients from
outside, which may depend on the forward pass's results (already the ones that it begins with do, whose shape is theirs). As a
graph of single nodes that is fine; as one If it is a circle. So what has to come after results of the branches goes into an If of
its own, and what it needs of an earlier one is handed on as a further result, of which the branch not taken gives zeros.
"""

from __future__ import annotations

from reference_impl.graph.control_flow.conditionals import Conditions, Group
from reference_impl.graph.control_flow.flow import Body, Unprovable, order, source
from reference_impl.graph.op_table import RESOURCE, VARIANT


def whole(_: Conditions, group: Group) -> list[Group]:
    """One If."""
    return [group]


def split(conditions: Conditions, group: Group) -> list[Group]:
    """``group`` in the fewest parts that do not wait for each other, each after those that it needs.

    Raises:
      Unprovable: a handle would have to be handed on.
    """
    body = conditions.body
    stage = _stages(body, group)
    parts = _parts(group, stage)
    branch_of = {name: branch for branch in (0, 1) for name in group.branches[branch]}
    copies: dict[tuple[int, int], dict[str, None]] = {}
    for name, number in stage.items():
        merged = conditions.merges.get(name)
        for text in body.data(body.nodes[name]) if merged is None else map(body.resolve, merged):
            origin = source(text)
            if origin not in branch_of or stage[origin] == number:
                continue
            if body.nodes[origin].op == "Const":  # it stays one for whoever uses it
                copies.setdefault((number, branch_of[origin]), {})[origin] = None
            elif body.dtype(text) in (RESOURCE, VARIANT):
                raise Unprovable(origin, "is a handle that a later part of its branch uses")
            else:
                parts[stage[origin]].handed[text] = branch_of[origin]
    for (number, branch), names in copies.items():
        parts[number].branches[branch].extend(names)
    later: set[str] = set()
    for part in reversed(parts):
        inside = {*part.branches[0], *part.branches[1]}
        part.kept = inside & later
        later |= inside
    return [part for part in parts if part.merges or part.branches[0] or part.branches[1]]


def _parts(group: Group, stage: dict[str, int]) -> list[Group]:
    parts = [Group(group.outer, group.key, group.predicate) for _ in range(1 + max(stage.values()))]
    for branch in (0, 1):
        for name in group.branches[branch]:
            parts[stage[name]].branches[branch].append(name)
    for name in group.merges:
        parts[stage[name]].merges.append(name)
    return parts


def _stages(body: Body, group: Group) -> dict[str, int]:
    """For each node of the group how often the way to it leaves the group and comes back; the latest that will do."""
    members = {*group.branches[0], *group.branches[1], *group.merges}
    names = order(body)
    if names is None:
        raise Unprovable(source(group.predicate), "is in a graph with a cycle")
    found: dict[str, int] = {}
    users: dict[str, list[str]] = {name: [] for name in members}
    for name in names:
        inside = name in members
        needs = body.sources(body.nodes[name])
        found[name] = max((found[other] + (other in members and not inside) for other in needs), default=0)
        for other in needs:
            if inside and other in members:
                users[other].append(name)
    merges = set(group.merges)
    for name in reversed(names):
        if name in members and name not in merges and users[name]:
            found[name] = min(found[user] for user in users[name])
    return {name: found[name] for name in names if name in members}
