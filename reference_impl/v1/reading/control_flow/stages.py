"""Divide the branches of a tf.cond among several Ifs if one If would wait for itself.

tf.gradients puts the backward pass of a branch into the branch. The backward pass uses values of
the forward pass, and gradients from outside that may depend on the results of the forward pass.
This works for single nodes, but one If would be a cycle. So nodes that come after results of the
branches go into another If. Tensors that they need from an earlier If become further results of
that If; the branch that is not taken returns zeros.

RFC: V1-11
"""

from __future__ import annotations

from reference_impl.format import schema
from reference_impl.v1.reading.control_flow.conditionals import Conditions, Group
from reference_impl.v1.reading.control_flow.editable_function import (
    EditableFunction,
    NotConvertible,
    order,
    source,
)


def split(conditions: Conditions, group: Group) -> list[Group]:
    """Divide a group into the fewest parts that do not wait for each other, each after the parts
    that it needs.

    Raises NotConvertible: a later part needs a handle of an earlier one.
    """
    function = conditions.function
    stage = _stages(function, group)
    parts = _parts(group, stage)
    branch_of = {
        **dict.fromkeys(group.branches[0], 0),
        **dict.fromkeys(group.branches[1], 1),
    }
    copies: dict[tuple[int, int], dict[str, None]] = {}
    for name, number in stage.items():
        merged = conditions.merges.get(name)
        for text in (
            function.data(function.nodes[name]) if merged is None else map(function.resolve, merged)
        ):
            origin = source(text)
            if origin not in branch_of or stage[origin] == number:
                continue
            if function.nodes[origin].op == "Const":  # each part gets a copy
                copies.setdefault((number, branch_of[origin]), {})[origin] = None
            elif function.dtype(text) in (schema.DT_RESOURCE, schema.DT_VARIANT):
                raise NotConvertible(origin, "is a handle that a later part of its branch uses")
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


def _stages(function: EditableFunction, group: Group) -> dict[str, int]:
    """Return the stage of each node of the group: the If into which it goes.

    The stage is the largest number of times that a path to the node leaves the group and comes
    back. For example, a node of the backward pass that needs the loss, which is computed outside
    from the branch's result, has stage 1. A node whose users are all in later stages is moved to
    the first of those.
    """
    members = {*group.branches[0], *group.branches[1], *group.merges}
    names = order(function)
    if names is None:
        raise NotConvertible(source(group.predicate), "is in a graph with a cycle")
    found: dict[str, int] = {}
    users: dict[str, list[str]] = {name: [] for name in members}
    for name in names:
        inside = name in members
        needs = function.sources(function.nodes[name])
        found[name] = max(
            (found[other] + (other in members and not inside) for other in needs), default=0
        )
        for other in needs:
            if inside and other in members:
                users[other].append(name)
    merges = set(group.merges)
    for name in reversed(names):
        if name in members and name not in merges and users[name]:
            found[name] = min(found[user] for user in users[name])
    return {name: found[name] for name in names if name in members}
