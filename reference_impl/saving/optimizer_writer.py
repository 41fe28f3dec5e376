"""Write the optimizer messages of the extension: slots and update rules (OPT-02,
OPT-04..OPT-07).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError
from reference_impl.extension.update_rules import UpdateRules
from reference_impl.format import schema
from reference_impl.functions import specs
from reference_impl.kinds import optimizer
from reference_impl.kinds.optimizer import LoadedOptimizer, SavedSlot, rules_of
from reference_impl.saving import update_rule_tracing
from reference_impl.saving.captures import Captures
from reference_impl.saving.export_library import ExportLibrary
from reference_impl.saving.tree import Node, TreeBuilder


def messages(
    tree: TreeBuilder, slots: Sequence[SavedSlot], updates: Mapping[int, Any]
) -> list[Any]:
    """Return one OptimizerState message for each optimizer, in node order, even if it has no slots
    or update rules (OPT-01).

    `updates` has the messages with update rules, by the number of the optimizer.
    """
    found = {node.number for node in tree.nodes if node.kind is optimizer.KIND}
    numbers = sorted(found | {slot.optimizer for slot in slots})
    out = {number: schema.OptimizerState(node_id=number) for number in numbers}
    for number, state in updates.items():
        out[number].MergeFrom(state)
    for slot in slots:
        if not slot.listed:
            continue  # the object graph has these slots where shipped writers put them
        out[slot.optimizer].slots.add(variable=slot.variable, name=slot.name, value=slot.value)
    return list(out.values())


def updates(
    tree: TreeBuilder, library: ExportLibrary, captures: Captures, functional: bool
) -> dict[int, Any]:
    """Return update rules by optimizer number: the rules that it was loaded with or, if
    `functional`, rules traced now.
    """
    out = {}
    for node in list(tree.nodes):
        if isinstance(node.object, LoadedOptimizer):
            rules = rules_of(node.object)
            if rules is not None:
                out[node.number] = _loaded(rules, tree, library, captures, node)
        elif functional and api.is_optimizer(node.object):
            try:
                out[node.number] = _traced(node, tree, library, captures)
            except SaveError as error:
                tree.report_loss(error, "an optimizer comes without its update rule")
    return out


def _loaded(
    rules: UpdateRules, tree: TreeBuilder, library: ExportLibrary, captures: Captures, node: Node
) -> Any:
    out = schema.OptimizerState(node_id=node.number)
    numbers = {
        old: _number(owner, tree, captures, node)
        for old, owner in {**rules.shared, **rules.others}.items()
    }
    out.shared.extend(numbers[old] for old in rules.shared)
    for dtype, rule in rules.rules.items():
        update = out.updates.add(dtype=dtype, function=library.add(rules.library, rule.function))
        for given in rule.inputs:
            copy = update.inputs.add()
            copy.CopyFrom(given)
            if given.WhichOneof("kind") == "node_id":
                copy.node_id = numbers[given.node_id]
        for name, value in rule.slots.items():
            update.slots.add(name=name).value.MergeFromString(specs.tensor_bytes(value))
    return out


def _number(owner: object, tree: TreeBuilder, captures: Captures, node: Node) -> int:
    number = tree.number_of(owner) if api.is_variable(owner) else captures.owner(owner)
    if number is None:
        name = getattr(owner, "name", type(owner).__name__)
        reason = (
            f"the update rule uses {name}, which cannot be reached from the object that is saved"
        )
        raise SaveError(f"{reason} any more", node=node.path, clause="OPT-07")
    return number


def _traced(node: Node, tree: TreeBuilder, library: ExportLibrary, captures: Captures) -> Any:
    optimizer = node.object
    update_rule_tracing.check_settings(optimizer, node.path)
    out = schema.OptimizerState(node_id=node.number)
    state = api.optimizer_variables(optimizer)
    variables = [item.object for item in tree.nodes if item.is_variable]
    known = [variable for variable, _, _ in api.optimizer_slots(optimizer, variables)]
    known += [one for one in api.trained_variables(optimizer, variables) if one is not None]
    dtypes = sorted({api.variable_components(v)[0].dtype.as_datatype_enum for v in known}) or [
        tf.float32.as_datatype_enum
    ]
    shared: dict[int, None] = {}
    for number in dtypes:
        rule = update_rule_tracing.rule_of(optimizer, tf.dtypes.as_dtype(number), node.path)
        update = out.updates.add(dtype=number, function=update_rule_tracing.add(library, rule))
        for kind, value in rule.inputs:
            if kind in ("gradient", "variable", "slot"):
                update.inputs.add(**{kind: value})
            else:
                owner = state.get(value) if kind == "state" else value
                if owner is None:
                    reason = (
                        f"{type(optimizer).__name__} has not made its variables yet: apply"
                        " gradients once"
                    )
                    raise SaveError(reason, node=node.path, clause="OPT-07")
                update.inputs.add(node_id=_number(owner, tree, captures, node))
                if kind == "state":
                    shared[update.inputs[-1].node_id] = None
        for name, scalar in rule.slots.items():
            update.slots.add(name=name).value.MergeFromString(specs.tensor_bytes(scalar))
    out.shared.extend(shared)
    return out
