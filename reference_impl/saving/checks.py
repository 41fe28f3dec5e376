"""Checks of all functions of an export: their size, the Python code that they call, the namespaces of their ops.

RFC: DR-09, FMT-04
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError, listed
from reference_impl.format import limits
from reference_impl.format.names import stem
from reference_impl.inspection.op_effects import PYTHON_OPS
from reference_impl.saving.collect import Functions
from reference_impl.saving.debug_ops import nodes_of
from reference_impl.saving.tree import Node, Tree
from reference_impl.saving.values import byte_size, of_tensor

# Size


def check_size(tree: Tree, functions: Functions) -> None:
    """Raise SaveError if functions and constants do not fit into one protobuf message."""
    total = sum(definition.ByteSize() for definition in functions.library.definitions.values())
    total += sum(byte_size(of_tensor(node.object)) for node in _captured(tree))
    if total > limits.SAVED_MODEL_BYTES:
        raise too_large(total, tree, functions)


def too_large(total: int, tree: Tree, functions: Functions) -> SaveError:
    """Return the error for a SavedModel of `total` bytes or more, which names the largest constants."""
    largest = heapq.nlargest(5, (item for item in _constants(tree, functions) if item[0] * 100 >= total))
    named = "; ".join(f"{place} ({size:,} bytes)" for size, place in largest)
    reason = (
        f"the export would have {total:,} bytes, protobuf allows {limits.SAVED_MODEL_BYTES:,}. Its largest constants: {named}. "
        "Make them variables, whose values are in the checkpoint: `root.name = tf.Variable(value, trainable=False)`. "
        "A split file (experimental_image_format) would be read by no released TensorFlow"
    )
    return SaveError(reason, node="root", clause="DR-09")


def _constants(tree: Tree, functions: Functions) -> Iterator[tuple[int, str]]:
    """Yield the size and the position of each constant."""
    paths = tree.paths(functions.names)
    for node in _captured(tree):
        yield byte_size(of_tensor(node.object)), node.path
    for name, definition in functions.library.definitions.items():
        function = f"{paths[name]} ({name})" if name in paths else name
        for node in definition.node_def:
            if node.op == "Const":
                yield node.attr["value"].tensor.ByteSize(), f"node {node.name!r} of {function}"


def _captured(tree: Tree) -> list[Node]:
    return [node for node in tree.nodes if tf.is_tensor(node.object) and not api.is_variable(node.object)]


# Python code


def check_python_calls(tree: Tree, functions: Functions) -> None:
    """Report calls of Python code: `tf.py_function`, `tf.numpy_function`, `tf.data.Dataset.from_generator`.

    The node has a token under which the process keeps the Python function. In another process the token is invalid or stands for
    another function. Such calls in a loaded model are not reported: the copy behaves as the model did.

    Raises:
      SaveError: there are such calls (with ``strict``). The error names all nodes and the functions that call them.
    """
    library, paths = functions.library, tree.paths(functions.names)
    calling = {}
    for name, definition in library.definitions.items():
        nodes = [f"{node.name} ({node.op})" for node in definition.node_def if node.op in PYTHON_OPS]
        if nodes and library.made_here(name):
            calling[name] = nodes
    if not calling:
        return
    callers = [(path, inner) for name, path in paths.items() for inner in library.closure(name) if inner in calling]
    named = {inner for _, inner in callers}
    callers += [(stem(name), name) for name in sorted(calling.keys() - named)]  # of resources, gradients
    found = list(dict.fromkeys(f"{caller}: {node}" for caller, inner in callers for node in calling[inner]))
    reason = (
        "functions call Python code of this process, which no file keeps, so no other process can run the copy: "
        f"{listed(found)}. Write the code with TensorFlow operations in place of tf.py_function, tf.numpy_function or a "
        "generator, or save with strict=False, which keeps the calls"
    )
    error = SaveError(reason, node=callers[0][0], clause="FMT-04")
    tree.lose(error, "calls of Python are kept, which only this process can run")


# Namespaces


def check_namespaces(graph_def: Any, allowed: Collection[str]) -> None:
    """Raise SaveError if an op has a namespace ("Ns" of an op "Ns>Op") that is not allowed."""
    found: dict[str, list[str]] = {}
    for place, node in nodes_of(graph_def):
        namespace, mark, _ = node.op.partition(">")
        if mark and namespace not in allowed:
            found.setdefault(namespace, []).append(f"{node.op} (node {node.name!r} of {place})")
    if found:
        names = ", ".join(map(repr, sorted(found)))
        reason = (
            f"Attempted to save ops from namespaces that are not allowed: "
            f"{listed(place for namespace in sorted(found) for place in found[namespace])}. Programs that load the model must "
            f"have these ops. If they will, add {names} to the option `namespaces` (`namespace_whitelist`)."
        )
        raise SaveError(reason, node=min(found))
