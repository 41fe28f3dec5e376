"""Checks of all functions of an export: their size, the Python code that they call, their ops.

RFC: DR-09, FMT-04
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Collection, Iterator
from typing import Any

from reference_impl.errors import SaveError, listed
from reference_impl.format import limits, schema
from reference_impl.format.names import base_name
from reference_impl.functions.names import ExportName
from reference_impl.graph.edges import input_source
from reference_impl.graph.node_defs import add_controls, clear_op_attributes
from reference_impl.graph.references import bodies
from reference_impl.safety.op_effects import PYTHON_OPS
from reference_impl.saving.exported_functions import ExportedFunctions
from reference_impl.saving.node import Node
from reference_impl.saving.tree import Tree
from reference_impl.saving.values import byte_size, eager_tensor, of_tensor

# Size


def check_size(tree: Tree, functions: ExportedFunctions) -> None:
    """Raise SaveError if functions and constants do not fit into one protobuf message."""
    total = sum(definition.ByteSize() for definition in functions.library.definitions.values())
    total += sum(byte_size(of_tensor(node.object)) for node in _captured(tree))
    if total > limits.SAVED_MODEL_BYTES:
        raise too_large(total, tree, functions)


def too_large(total: int, tree: Tree, functions: ExportedFunctions) -> SaveError:
    """Return the error for a SavedModel of `total` bytes or more, which names the largest
    constants.
    """
    largest = heapq.nlargest(
        5, (item for item in _constants(tree, functions) if item[0] * 100 >= total)
    )
    named = "; ".join(f"{place} ({size:,} bytes)" for size, place in largest)
    reason = (
        f"the export would have {total:,} bytes, protobuf allows {limits.SAVED_MODEL_BYTES:,}. Its"
        f" largest constants: {named}. Make them variables, whose values are in the checkpoint:"
        " `root.name = tf.Variable(value, trainable=False)`. A split file"
        " (experimental_image_format) would be read by no released TensorFlow"
    )
    return SaveError(reason, node="root", clause="DR-09")


def _constants(tree: Tree, functions: ExportedFunctions) -> Iterator[tuple[int, str]]:
    """Yield the size and the position of each constant."""
    paths = tree.paths(functions.names)
    for node in _captured(tree):
        yield byte_size(of_tensor(node.object)), node.path
    for name, definition in functions.library.definitions.items():
        function = f"{paths[name]} ({name})" if name in paths else name
        for item in definition.node_def:
            if item.op == "Const":
                yield item.attr["value"].tensor.ByteSize(), f"node {item.name!r} of {function}"


def _captured(tree: Tree) -> list[Node]:
    return [node for node in tree.nodes if eager_tensor(node.object)]


# Python code


def check_python_calls(tree: Tree, functions: ExportedFunctions) -> None:
    """Report calls of Python code: `tf.py_function`, `tf.numpy_function`,
    `tf.data.Dataset.from_generator`.

    The node has a token under which the process keeps the Python function. In another process the
    token is invalid or stands for another function. Such calls in a loaded model are not reported:
    the copy behaves as the model did.

    Raises:
      SaveError: there are such calls (with ``strict``). The error names all nodes and the functions
        that call them.
    """
    library, paths = functions.library, tree.paths(functions.names)
    calling = {}
    for name, definition in library.definitions.items():
        nodes = [
            f"{node.name} ({node.op})" for node in definition.node_def if node.op in PYTHON_OPS
        ]
        if nodes and library.made_here(name):
            calling[name] = nodes
    if not calling:
        return
    callers: list[tuple[str, ExportName]] = []
    for name, path in paths.items():
        callers += [(path, inner) for inner in library.closure(name) if inner in calling]
    named = {inner for _, inner in callers}
    callers += [
        (base_name(name), name) for name in sorted(calling.keys() - named)
    ]  # of resources, gradients
    found: dict[str, None] = {}
    for caller, inner in callers:
        found.update(dict.fromkeys(f"{caller}: {node}" for node in calling[inner]))
    reason = (
        "functions call Python code of this process, which no file keeps, so no other process can"
        f" run the copy: {listed(found)}. Write the code with TensorFlow operations in place of"
        " tf.py_function, tf.numpy_function or a generator, or save with strict=False, which keeps"
        " the calls"
    )
    error = SaveError(reason, node=callers[0][0], clause="FMT-04")
    tree.report_loss(error, "calls of Python are kept, which only this process can run")


# Ops

_TO_NOTHING = ("Assert", "PrintV2")
_TO_IDENTITY = ("CheckNumerics", "Print")


def _nodes_of(graph_def: schema.GraphDef) -> Iterator[tuple[str, Any]]:
    """Yield the nodes of a graph and of its functions, each with the name of the function."""
    for function, nodes in bodies(graph_def):
        place = "the main graph" if function is None else function.signature.name
        yield from ((place, node) for node in nodes)


def check_namespaces(graph_def: schema.GraphDef, allowed: Collection[str]) -> None:
    """Raise SaveError if an op has a namespace ("Ns" of an op "Ns>Op") that is not allowed."""
    found: dict[str, list[str]] = {}
    for place, node in _nodes_of(graph_def):
        namespace, mark, _ = node.op.partition(">")
        if mark and namespace not in allowed:
            found.setdefault(namespace, []).append(f"{node.op} (node {node.name!r} of {place})")
    if found:
        names = ", ".join(map(repr, sorted(found)))
        places = itertools.chain.from_iterable(found[namespace] for namespace in sorted(found))
        reason = (
            "Attempted to save ops from namespaces that are not allowed:"
            f" {listed(places)}."
            f" Programs that load the model must have these ops. If they will, add {names} to the"
            " option `namespaces` (`namespace_whitelist`)."
        )
        raise SaveError(reason, node=min(found))


def strip_debug_ops(graph_def: schema.GraphDef) -> None:
    """Replace ops that only check or print by ops that do nothing but keep the order of the nodes
    before and after them.
    """
    arguments: dict[str, set[str]] = {}
    for function in graph_def.library.function:
        arguments[function.signature.name] = {
            argument.name for argument in function.signature.input_arg
        }
    for place, node in _nodes_of(graph_def):
        if node.op in _TO_NOTHING:
            _replace(node, "NoOp", 0, arguments.get(place, set()))
        elif node.op in _TO_IDENTITY:
            _replace(node, "Identity", 1, arguments.get(place, set()))


def _replace(node: schema.NodeDef, op: str, kept: int, arguments: Collection[str]) -> None:
    sources = [input_source(text, in_function=True) for text in node.input[kept:]]
    node.op = op
    del node.input[kept:]
    add_controls(node, [name for name in sources if name not in arguments])
    clear_op_attributes(node, ("T",) if kept else ())
