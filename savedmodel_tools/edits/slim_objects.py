"""The part of an object graph that only training needs: optimizers with their variables, functions
that change them, traces for training.

`slim_optimizers` says which objects are optimizers. A function is for training when it captures a
variable that only optimizers lead to: captures are written in the file, nothing is guessed from
names. A trace is for training when its parameter `training` is True and the function has the same
trace without.
"""

from __future__ import annotations

import itertools

from reference_impl.format import schema
from reference_impl.graph.closure import reachable
from reference_impl.views.text import bound_arguments, parameter_names
from savedmodel_tools.edits.objects import Objects, children_and_slots

_TRAINING = "training"  # the parameter that Keras gives to every layer, and what is written for it


def cut_optimizers(
    objects: Objects, optimizers: dict[int, str], training: bool
) -> tuple[list[str], list[str]]:
    """Cut all edges to optimizers (by number, with the evidence) and to the functions that capture
    their variables.

    ``training``: whether such functions may go; else an optimizer with one stays. Return what was
    cut, and what was kept and why.
    """
    kept: list[str] = []
    saved = objects.saved
    found = dict(optimizers)
    while True:  # an optimizer that stays keeps its variables, which may be another one's
        state = _state(saved, set(found))
        users = _users(objects, state)
        reasons = _reasons(objects, found, users, training)
        if not reasons:
            break
        for number, reason in reasons.items():
            kept.append(f"{objects.paths.label(number)}, an optimizer: {reason}")
            del found[number]
    names = set(itertools.chain.from_iterable(users.values()))
    traces: set[int] = set()
    for number in users:
        if saved.nodes[number].HasField("function"):
            traces.update(child.node_id for child in saved.nodes[number].children)
    why = "changes or reads what optimizers remember"
    changes = [_cut_traces(objects, number, names, why) for number in sorted(users.keys() - traces)]
    for number, why in sorted(found.items()):
        changes.append(f"optimizer {objects.paths.label(number)} ({why}) is dropped")
        objects.cut_slots(number)
        objects.cut_node(number)
    return changes, kept


def _state(saved: schema.SavedObjectGraph, found: set[int]) -> set[int]:
    """Variables that the root's tree has only by way of optimizers."""

    def children(number: int) -> list[int]:
        return [
            child.node_id for child in saved.nodes[number].children if child.node_id not in found
        ]

    seen = reachable([0], children)
    return {
        number
        for number, node in enumerate(saved.nodes)
        if node.HasField("variable") and number not in seen
    }


def _users(objects: Objects, state: set[int]) -> dict[int, list[str]]:
    """Nodes of functions that capture some of these variables, with the traces that do."""
    described = objects.saved.concrete_functions
    capturing = {
        name for name, item in described.items() if not state.isdisjoint(item.bound_inputs)
    }
    users: dict[int, list[str]] = {}
    for number in range(len(objects.saved.nodes)):
        names = [name for name in objects.functions_of(number) if name in capturing]
        if names:
            users[number] = names
    return users


def _reasons(
    objects: Objects, found: dict[int, str], users: dict[int, list[str]], training: bool
) -> dict[int, str]:
    """Return the optimizers that must stay because a remaining part needs their variables, with the
    reasons.
    """
    saved, holder = objects.saved, objects.signature_map()
    served = (
        {child.node_id: child.local_name for child in saved.nodes[holder].children}
        if holder is not None
        else {}
    )
    resources = objects.resource_functions()
    needed: dict[int, str] = {}
    for number, names in users.items():
        if number in served:
            reason = f"the signature {served[number]} needs its variables"
        elif number in resources:
            reason = f"{objects.paths.label(number)} makes or fills a resource with its variables"
        elif not training:
            reason = f"the function {objects.paths.label(number)} needs its variables"
        else:
            continue
        for name in names:
            for variable in saved.concrete_functions[name].bound_inputs:
                needed.setdefault(variable, reason)
    reasons = {}
    state = _state(saved, set(found))
    for number in found:
        owned = set(reachable([number], lambda node: children_and_slots(saved.nodes[node])))
        why = [needed[variable] for variable in sorted(owned & state) if variable in needed]
        if why:
            reasons[number] = why[0]
    return reasons


def cut_training_traces(objects: Objects) -> list[str]:
    """Take away the traces that were made with ``training=True`` where the same trace was also made
    without.
    """
    changes = []
    resources = objects.resource_functions()
    for number, node in enumerate(objects.saved.nodes):
        if not node.HasField("function") or number in resources:
            continue
        names = _training_traces(objects.saved, node)
        if names:
            changes.append(_cut_traces(objects, number, names, "training=True"))
    return changes


def _training_traces(saved: schema.SavedObjectGraph, node: schema.SavedObject) -> set[str]:
    """Return the traces with True for the parameter ``training`` that have a twin with another
    value in the same function.
    """
    training: dict[str, tuple[tuple[str, bytes], ...]] = {}
    serving = set()
    for name in node.function.concrete_functions:
        trace = saved.concrete_functions.get(name)
        arguments = (
            bound_arguments(parameter_names(node.function.function_spec), trace)
            if trace is not None
            else []
        )
        rest = tuple(
            (parameter, schema.serialize(value))
            for parameter, value in arguments
            if parameter != _TRAINING
        )
        given = [value for parameter, value in arguments if parameter == _TRAINING]
        if len(given) == 1 and given[0].WhichOneof("kind") == "bool_value" and given[0].bool_value:
            training[name] = rest
        elif given:
            serving.add(rest)
    return {name for name, rest in training.items() if rest in serving}


def _cut_traces(objects: Objects, number: int, names: set[str], why: str) -> str:
    """Take some traces of a function away, or all of it."""
    node = objects.saved.nodes[number]
    label = objects.paths.label(number)
    traces = list(node.function.concrete_functions)
    left = [name for name in traces if name not in names]
    if not left:
        objects.cut_node(number)
        return f"function {label} ({why}) is dropped"
    node.function.concrete_functions[:] = left
    for child in [
        child for child in node.children if set(objects.functions_of(child.node_id)) & names
    ]:
        objects.cut(number, child.local_name)
    return f"{len(traces) - len(left)} of {len(traces)} traces of function {label} ({why}) dropped"


def cut_functions(objects: Objects) -> list[str]:
    """Take all functions away but signatures and those that resources need: what only Python could
    call.
    """
    holder = objects.signature_map()
    kept = (
        {child.node_id for child in objects.saved.nodes[holder].children}
        if holder is not None
        else set()
    )
    kept |= {0, *objects.resource_functions()}
    changes = []
    for number, node in enumerate(objects.saved.nodes):
        if node.WhichOneof("kind") not in ("function", "bare_concrete_function") or number in kept:
            continue
        parents = [objects.saved.nodes[parent] for parent, _ in objects.parents.get(number, ())]
        if all(item.WhichOneof("kind") == "function" for item in parents):
            continue  # a trace goes with its function
        objects.cut_node(number)
        changes.append(f"function {objects.paths.label(number)} is dropped")
    return changes
