"""A MetaGraph rewritten for an older release, as far as no answer depends on it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Optional

from reference_impl.format import schema
from reference_impl.graph.edges import parse_input
from reference_impl.graph.function_builder import remove_nodes
from reference_impl.graph.references import all_nodes, bodies
from savedmodel_tools.downgrade import attrs
from savedmodel_tools.downgrade.attrs import Change
from savedmodel_tools.downgrade.replace import Scope, replace
from savedmodel_tools.edits.objects import keep_only
from savedmodel_tools.returned_handles import FIRST, FIXED, ReturnedHandles
from savedmodel_tools.skew import advice
from savedmodel_tools.skew.history import History


def rewrite(
    graph: schema.MetaGraphDef, index: int, table: History
) -> tuple[list[Change], dict[str, str]]:
    """Rewrite a MetaGraph in place.

    Return what was done, each change as often as it was made; and for ops that could have been
    replaced what kept them from it.
    """
    changes: list[Change] = []
    needed: dict[str, str] = {}
    for scope in [Scope(nodes, function) for function, nodes in bodies(graph.graph_def)]:
        for node in list(scope.nodes):
            change, why = replace(node, scope, index, table)
            changes += [change] if change else []
            if why:
                needed.setdefault(node.op, why)
            changes += attrs.fit(node, index, table)
        changes += _without_idle(scope, index, table)
    changes += _handles(graph, index, table)
    _stripped_ops(graph)
    return changes, needed


def _without_idle(scope: Scope, index: int, table: History) -> Iterator[Change]:
    """Drop the nodes that the release does not know and that have no result."""
    gone = {}
    for node in scope.nodes:
        known = table.op(node.op) if node.op in advice.IDLE_OPS else None
        if known is not None and known.definition(index) is None:
            gone[node.name] = node.op
    if not gone:
        return
    remove(scope.nodes, gone, scope.function)
    for op in gone.values():
        yield Change("drop_node", op, f"node '{op}' dropped: {advice.IDLE_OPS[op]}")


def _handles(graph: schema.MetaGraphDef, index: int, table: History) -> Iterator[Change]:
    """Let the main graph itself make handles that a function returns together with pointers to
    freed shapes.
    """
    if not (table.index(FIRST) or 0) <= index < (table.index(FIXED) or 0):
        return
    handles = ReturnedHandles(graph.graph_def.library)
    for call, made in list(handles.used(graph.graph_def.node)):
        if not handles.instead(call, made):
            continue
        before, kept = call.op, schema.NodeDef()
        kept.CopyFrom(call)
        call.ClearField("attr")
        call.op, call.device = made.node.op, made.node.device or call.device
        shapes = [(name, value) for name, value in kept.attr.items() if name == "_output_shapes"]
        for name, value in (*made.node.attr.items(), *shapes):
            call.attr[name].CopyFrom(value)
        why = "the releases before 2.3 read freed memory of handles that a function hands out"
        yield Change(
            "replace_op",
            before,
            f"'{before}' of a function that only makes a '{call.op}' replaced by that: {why}",
        )


def _stripped_ops(graph: schema.MetaGraphDef) -> None:
    """Loaders strip default attrs by the OpDefs that the model brings along: those of ops that are
    gone go too.
    """
    used = {node.op for node in all_nodes(graph.graph_def)}
    keep_only(
        graph.meta_info_def.stripped_op_list.op,
        lambda item: item.name in used or item.name not in advice.IDLE_OPS,
    )


def remove(nodes: Any, gone: Collection[str], function: Optional[schema.FunctionDef]) -> None:
    """Take the nodes of these names, which give no tensors, out of a main graph, or of a function
    and what it promises to run.
    """
    waits = {}
    for node in nodes:
        if node.name in gone:
            waits[node.name] = [f"^{parse_input(text).source}" for text in node.input]
    present = {node.name for node in nodes} - set(gone)
    for node in nodes:
        if any(text[1:] in gone for text in node.input if text.startswith("^")):
            _replace_inputs(node, waits, present)
    if function is None:
        keep_only(nodes, lambda node: node.name not in gone)
    else:
        remove_nodes(function, gone)


def _replace_inputs(
    node: schema.NodeDef, waits: dict[str, list[str]], present: Collection[str]
) -> None:
    """Drop control inputs from arguments of a function: they are not nodes and are available from
    the start.
    """
    data = [text for text in node.input if not text.startswith("^")]
    controls: dict[str, None] = {}
    pending = [text for text in reversed(node.input) if text.startswith("^")]
    seen = set()
    while pending:
        text = pending.pop()
        if text[1:] in present:
            controls[text] = None
        elif text[1:] in waits and text not in seen:  # a circle would be waited for forever
            seen.add(text)
            pending.extend(reversed(waits[text[1:]]))
    node.input[:] = [*data, *controls]
