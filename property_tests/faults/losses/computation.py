"""Nodes of graphs and of functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from property_tests.faults.losses.registry import each, loss, set_field
from reference_impl.format import schema


def nodes_of(graph: Any) -> Iterator[Any]:
    for function in graph.graph_def.library.function:
        yield from function.node_def
    yield from graph.graph_def.node


@loss
def devices(graph: Any, model: Path) -> bool:
    """Functions name no devices."""
    inside = [node for function in graph.graph_def.library.function for node in function.node_def]
    return each(inside, lambda node: set_field(node, "device", ""))


OTHER = {
    "AddV2": "Mul", "Add": "Mul", "Mul": "AddV2", "Sub": "Mul", "RealDiv": "Mul", "MatMul": "",
    "Relu": "Elu", "Softsign": "Tanh", "StringUpper": "StringLower", "Neg": "Abs", "Sum": "Max",
    "Max": "Sum", "GatherV2": "", "Greater": "Less", "Less": "Greater", "Sigmoid": "Tanh",
    "Exp": "Log", "AddN": "", "AdjustContrastv2": "", "Maximum": "Minimum", "Square": "Neg",
}  # fmt: skip


@loss
def arithmetic(graph: Any, model: Path) -> bool:
    """Operations compute something else: sums are products."""
    return each(
        [node for node in nodes_of(graph) if OTHER.get(node.op)],
        lambda node: set_field(node, "op", OTHER[node.op]),
    )


@loss
def branches(graph: Any, model: Path) -> bool:
    """The branches of conditions are in another order."""

    def change(node: Any) -> bool:
        if node.op in ("If", "StatelessIf"):
            then, other = node.attr["then_branch"].func.name, node.attr["else_branch"].func.name
            node.attr["then_branch"].func.name, node.attr["else_branch"].func.name = other, then
            return True
        if node.op in ("Case", "StatelessCase"):
            names = [item.name for item in node.attr["branches"].list.func]
            for item, name in zip(node.attr["branches"].list.func, reversed(names)):
                item.name = name
            return len(names) > 1
        return False

    return each(nodes_of(graph), change)


def _each_constant(graph: Any, change: Callable[[Any], bool]) -> bool:
    """Change the values of constants, but not the names of files and tensors that a Saver
    writes.
    """
    saver = ("save", "Save", "Restore")
    found = [
        node
        for node in nodes_of(graph)
        if node.op == "Const" and "value" in node.attr and not node.name.startswith(saver)
    ]
    return each([node.attr["value"].tensor for node in found], change)


def _raise_first(*fields: str) -> Callable[[Any], bool]:
    """Return a change of a TensorProto: the first number of these fields is one more."""

    def change(tensor: Any) -> bool:
        field = next((name for name in fields if len(getattr(tensor, name))), "")
        if field:
            getattr(tensor, field)[0] += 1
        return bool(field)

    return change


@loss
def constants(graph: Any, model: Path) -> bool:
    """Numbers in constants are others."""
    return _each_constant(graph, _raise_first("float_val", "double_val"))


@loss
def integers(graph: Any, model: Path) -> bool:
    """Whole numbers in constants are others."""
    return _each_constant(graph, _raise_first("int_val", "int64_val"))


@loss
def content(graph: Any, model: Path) -> bool:
    """Bytes of constants with many numbers or texts are others."""
    floats = (schema.DT_FLOAT, schema.DT_DOUBLE, schema.DT_FLOAT8_E5M2, schema.DT_FLOAT8_E4M3FN)

    def change(tensor: Any) -> bool:
        if tensor.dtype == schema.DT_STRING and tensor.string_val:
            tensor.string_val[0] = b"lost" + tensor.string_val[0]
            return True
        field = next(
            (name for name in ("tensor_content", "float8_val") if getattr(tensor, name)), ""
        )
        if not field or tensor.dtype not in floats:
            return False
        held = getattr(tensor, field)
        setattr(tensor, field, bytes([held[0] ^ 1]) + held[1:])
        return True

    return _each_constant(graph, change)


@loss
def assignments(graph: Any, model: Path) -> bool:
    """The ops that change variables do not run."""

    def change(node: Any) -> bool:
        if not re.fullmatch(r"Assign(Add|Sub)?VariableOp|LookupTableInsertV2", node.op):
            return False
        node.op = "NoOp"
        node.attr.clear()
        node.input[:] = [
            f"^{name.split(':')[0].lstrip('^')}" for name in node.input if name.startswith("^")
        ]
        return True

    return each([n for f in graph.graph_def.library.function for n in f.node_def], change)


@loss
def module(graph: Any, model: Path) -> bool:
    """The StableHLO module is another."""

    def change(node: Any) -> bool:
        if node.op != "XlaCallModule":
            return False
        node.attr["module"].s = node.attr["module"].s.replace(
            b"stablehlo.multiply", b"stablehlo.add"
        )
        return True

    return each(nodes_of(graph), change)


@loss
def attributes(graph: Any, model: Path) -> bool:
    """An attribute of an operation falls back to another value: compression, reduction, pattern,
    unit, cast.
    """

    def change(node: Any) -> bool:
        for name in (
            "unit",
            "encoding",
            "rewrite",
            "channels",
            "output_encoding",
            "half_pixel_centers",
            "separator",
            "algorithm",
        ):
            if name in node.attr and node.attr[name].WhichOneof("value") == "s":
                node.attr[name].s = {b"BYTE": b"UTF8_CHAR", b"UTF8_CHAR": b"BYTE"}.get(
                    node.attr[name].s, b"lost"
                )
                return True
        return False

    return each(nodes_of(graph), change)


@loss
def harmless(graph: Any, model: Path) -> bool:
    """The op that kills or hangs the reader is missing."""

    def change(node: Any) -> bool:
        if node.op == "Abort":
            node.op = "NoOp"
            node.attr.clear()
            return True
        if node.op in ("While", "StatelessWhile"):
            node.op = "StatelessPartitionedCall"
            function = node.attr["body"].func.name
            types = list(node.attr["T"].list.type)
            node.attr.clear()
            node.attr["f"].func.name = function
            for side in ("Tin", "Tout"):
                node.attr[side].list.type.extend(types)
            return True
        return False

    return each(nodes_of(graph), change)


def _sequences(graph: Any) -> Iterator[tuple[Any, Any]]:
    """A function's node that reads a variable, and the one that changes it before."""
    for function in graph.graph_def.library.function:
        known = {node.name: node for node in function.node_def}
        for node in function.node_def:
            before = [known.get(name[1:]) for name in node.input if name.startswith("^")]
            changes = [
                one
                for one in before
                if one is not None and re.fullmatch(r"Assign\w*VariableOp", one.op)
            ]
            if node.op == "ReadVariableOp" and changes:
                yield node, changes[0]


@loss
def control_edges(graph: Any, model: Path) -> bool:
    """Control edges from the writer to the reader of a variable are missing."""
    found = list(_sequences(graph))
    for read, change in found:
        read.input.remove(f"^{change.name}")
    return bool(found)


@loss
def read_too_early(graph: Any, model: Path) -> bool:
    """A variable is read before it is changed, where it was read after."""
    found = list(_sequences(graph))
    for read, change in found:
        read.input.remove(f"^{change.name}")
        read.input[:] = [name for name in read.input if not name.startswith("^")]
        change.input.append(f"^{read.name}")
    return bool(found)
