"""Write the optimizer messages of the extension: slots and update rules (OPT-02,
OPT-04..OPT-07).
"""

from __future__ import annotations

from collections.abc import Mapping

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError
from reference_impl.extension import update_rule_tracing
from reference_impl.extension.save_context import SaveContext
from reference_impl.extension.update_rules import UpdateRules
from reference_impl.format import schema
from reference_impl.functions import specs
from reference_impl.kinds import optimizer, variable
from reference_impl.kinds.kind import SavedNode
from reference_impl.kinds.optimizer import LoadedOptimizer, rules_of


def messages(
    save: SaveContext, updates: Mapping[int, schema.OptimizerState]
) -> list[schema.OptimizerState]:
    """Return one OptimizerState message for each optimizer, in node order, even if it has no slots
    or update rules (OPT-01).

    `updates` has the messages with update rules, by the number of the optimizer.
    """
    found = {node.number for node in save.nodes if node.kind is optimizer.KIND}
    numbers = sorted(found | {slot.optimizer for slot in save.slots})
    out = {number: schema.OptimizerState(node_id=number) for number in numbers}
    for number, state in updates.items():
        out[number].MergeFrom(state)
    for slot in save.slots:
        if not slot.listed:
            continue  # the object graph has these slots where shipped writers put them
        out[slot.optimizer].slots.add(variable=slot.variable, name=slot.name, value=slot.value)
    return list(out.values())


def updates(save: SaveContext) -> dict[int, schema.OptimizerState]:
    """Return update rules by optimizer number: the rules that it was loaded with or, with
    ``functional_optimizers``, rules traced now.
    """
    out = {}
    for node in list(save.nodes):
        if isinstance(node.object, LoadedOptimizer):
            rules = rules_of(node.object)
            if rules is not None:
                out[node.number] = _loaded(rules, save, node)
        elif save.functional_optimizers and node.kind is optimizer.KIND:
            try:
                out[node.number] = _traced(node, save)
            except SaveError as error:
                save.report_loss(error, "an optimizer comes without its update rule")
    return out


def _loaded(rules: UpdateRules, save: SaveContext, node: SavedNode) -> schema.OptimizerState:
    out = schema.OptimizerState(node_id=node.number)
    numbers = {
        old: _number(owner, save, node) for old, owner in {**rules.shared, **rules.others}.items()
    }
    out.shared.extend(numbers[old] for old in rules.shared)
    for dtype, rule in rules.rules.items():
        update = out.updates.add(
            dtype=dtype, function=save.add_loaded(rules.library, rule.function)
        )
        for given in rule.inputs:
            copy = update.inputs.add()
            copy.CopyFrom(given)
            if given.WhichOneof("kind") == "node_id":
                copy.node_id = numbers[given.node_id]
        for name, value in rule.slots.items():
            update.slots.add(name=name).value.MergeFromString(specs.tensor_bytes(value))
    return out


def _number(owner: object, save: SaveContext, node: SavedNode) -> int:
    number = save.number_of(owner) if api.is_variable(owner) else save.owner(owner)
    if number is None:
        name = getattr(owner, "name", type(owner).__name__)
        reason = (
            f"the update rule uses {name}, which cannot be reached from the object that is saved"
        )
        raise SaveError(f"{reason} any more", node=node.path, clause="OPT-07")
    return number


def _traced(node: SavedNode, save: SaveContext) -> schema.OptimizerState:
    optimizer = node.object
    update_rule_tracing.check_settings(optimizer, node.path)
    out = schema.OptimizerState(node_id=node.number)
    state = api.optimizer_variables(optimizer)
    variables = [item.object for item in save.nodes if item.kind is variable.KIND]
    known = [variable for variable, _, _ in api.optimizer_slots(optimizer, variables)]
    known += [one for one in api.trained_variables(optimizer, variables) if one is not None]
    dtypes = sorted({api.variable_components(v)[0].dtype.as_datatype_enum for v in known}) or [
        tf.float32.as_datatype_enum
    ]
    shared: dict[int, None] = {}
    for number in dtypes:
        rule = update_rule_tracing.rule_of(save, optimizer, tf.dtypes.as_dtype(number), node.path)
        update = out.updates.add(dtype=number, function=update_rule_tracing.add(save, rule))
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
                update.inputs.add(node_id=_number(owner, save, node))
                if kind == "state":
                    shared[update.inputs[-1].node_id] = None
        for name, scalar in rule.slots.items():
            update.slots.add(name=name).value.MergeFromString(specs.tensor_bytes(scalar))
    out.shared.extend(shared)
    return out
