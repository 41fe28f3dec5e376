"""Tell whether an exported function has the numbers of an array because its code reads the array.

Two things must hold: the graph of the function, or a function that it calls, has a constant with
these numbers; and the Python code of the same function may read this very array (`TracedCode`).
Equal numbers alone mean nothing, since ``axis=[1]`` is a constant too.

RFC: PRIM-06
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from reference_impl import tensorflow_api as api
from reference_impl.format.values import tensor_proto
from reference_impl.functions.names import ExportName
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.graph.references import nodes_of
from reference_impl.kinds.function import LoadedFunction
from reference_impl.saving.checks.traced_code import TracedCode
from reference_impl.saving.exported_functions import ExportedFunctions
from reference_impl.saving.node import Node
from reference_impl.saving.traces import is_function
from reference_impl.saving.tree import Tree
from reference_impl.saving.values import eager_tensor, of_tensor


def exported_code(tree: Tree, functions: ExportedFunctions) -> list[ExportedCode]:
    """Return the functions of an export that were traced in this process."""
    return [ExportedCode(tree, functions, node) for node in _with_code(tree)]


def _with_code(tree: Tree) -> Iterator[Node]:
    """Yield the functions that were traced in this process.

    The traces of a `tf.function` are not listed by themselves.
    """
    functions = [node for node in tree.nodes if isinstance(node.object, api.Function)]
    traces: set[int] = set()
    for node in functions:
        traces.update(id(tree.nodes[number].object) for number in node.children.values())
    for node in tree.nodes:
        function = getattr(node.object, "target", node.object)  # of a signature
        known = isinstance(function, (LoadedFunction, RegisteredFunction)) or id(function) in traces
        if not known and is_function(function):
            yield node


class ExportedCode:
    """A function of the export: the constants of its graphs, and what its Python code reads."""

    def __init__(self, tree: Tree, functions: ExportedFunctions, node: Node):
        self._tree, self._functions, self._node = tree, functions, node

    def has(self, value: object, arrays: Sequence[np.ndarray[Any, Any]]) -> bool:
        """Return whether the function has all arrays of a value because it reads the value."""
        return bool(arrays) and all(map(self._has_constant, arrays)) and self._code.reads(value)

    def _has_constant(self, array: np.ndarray[Any, Any]) -> bool:
        return any(_same(array, constant()) for constant in self._constants.get(array.shape, ()))

    @functools.cached_property
    def _constants(self) -> dict[tuple[int, ...], list[Callable[[], Any]]]:
        """The constants of the traces of the function and of the functions that they call, by
        shape; also captured ones.
        """
        found: dict[tuple[int, ...], list[Callable[[], Any]]] = {}
        library, numbers = (
            self._functions.library,
            (self._node.number, *self._node.children.values()),
        )
        by_number = self._functions.by_number
        traces = [by_number[number] for number in numbers if number in by_number]
        names: dict[ExportName, None] = {}
        for trace in traces:
            names.update(dict.fromkeys(library.closure(trace.name)))
        bound = itertools.chain.from_iterable(trace.captures for trace in traces)
        for captured in (self._tree.nodes[number].object for number in bound):
            if eager_tensor(captured) and not api.is_variable(captured):
                found.setdefault(tuple(captured.shape), []).append(
                    functools.partial(of_tensor, captured)
                )
        for node in nodes_of(library.definitions[name] for name in names):
            if node.op != "Const":
                continue
            proto = node.attr["value"].tensor
            shape = tuple(dim.size for dim in proto.tensor_shape.dim)
            found.setdefault(shape, []).append(functools.partial(tensor_proto.decode, proto))
        return found

    @functools.cached_property
    def _code(self) -> TracedCode:
        function, nodes = getattr(self._node.object, "target", self._node.object), self._tree.nodes
        of_function = isinstance(function, api.Function)
        owners = [
            node.object
            for node in nodes
            if not of_function or self._node.number in node.children.values()
        ]
        return TracedCode(function, owners, self._inside)

    def _inside(self, obj: object) -> list[Any]:
        number = self._tree.number_of(obj)
        return (
            []
            if number is None
            else [
                self._tree.nodes[child].object
                for child in self._tree.nodes[number].children.values()
            ]
        )


def _same(array: np.ndarray[Any, Any], constant: object) -> bool:
    """Return whether a constant has the numbers of an array, of any dtype that can hold them."""
    constant = np.asarray(constant)
    if array.dtype.kind == "U":
        array = np.char.encode(array, "utf-8").astype(object)
    if array.dtype.kind in "fc" and constant.dtype.kind not in "fcV":  # V: of ml_dtypes
        return np.array_equal(array, constant)
    try:
        return np.array_equal(
            array.astype(constant.dtype), constant, equal_nan=constant.dtype.kind in "fc"
        )
    except (TypeError, ValueError):
        return False
