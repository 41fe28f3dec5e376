"""Resolve the captures of functions to numbers of the object graph.

The last arguments of a FunctionDef are the captured variables, tables, assets and constants. Each
is looked up by the identity of its tensor among the objects of the tree. A tensor without an owner
is stored as a constant; state without an owner is an error, and all such errors are reported at
once.

A variable of a strategy consists of several variables but is one node. The captures record which of
its variables a function uses.

RFC: FN-07, RES-04, GOAL-09
"""

from __future__ import annotations

from typing import Any, Optional, Union

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import UntrackedCaptureError
from reference_impl.functions.captured_tensor import CapturedTensor
from reference_impl.graph.references import nodes_of
from reference_impl.saving.export_library import ExportLibrary
from reference_impl.saving.node import Node
from reference_impl.saving.traces import Trace
from reference_impl.saving.tree import TreeBuilder
from reference_impl.saving.values import eager_tensor

_STATE = (tf.resource, tf.variant)
_ITERATOR = (
    "an iterator, whose position no file keeps: give its elements to the function as arguments, or"
    " make it inside, of a dataset that is an attribute"
)
_FIX = (
    "Make each reachable: assign it, or the trackable object that holds it, to an attribute of the"
    " object that is saved, for example `root.state = variable`."
)


class Captures:
    """Resolves captures against a tree. Constants are added to it."""

    def __init__(self, tree: TreeBuilder, library: ExportLibrary):
        self._tree, self._library = tree, library
        self._replica: dict[int, int] = {}
        self._owners: dict[int, int] = {}
        self._kept: list[Any] = []
        self._problems: list[str] = []
        self._fixable = False
        self._first: Optional[str] = None
        for node in list(tree.nodes):
            for tensor in _tensors_of(node):
                self._owners.setdefault(id(tensor), node.number)
                self._kept.append(tensor)
            for index, part in enumerate(node.parts):
                self._replica.setdefault(id(part.handle), index)

    def resolve(self, trace: Trace, path: str, node: Optional[Node]) -> list[int]:
        """Return the captures of a function.

        Constants and assets become children of its node, as in TensorFlow.

        State without an owner is recorded for `check`.
        """
        bound = []
        for index, capture in enumerate(trace.captures):
            number = self._number(capture, path)
            if number is None:
                number = 0
                self._note(capture, trace, path)
            bound.append(number)
            target = self._tree.nodes[number].object
            if node is not None and (isinstance(target, api.Asset) or eager_tensor(target)):
                node.children[f"capture_{index}"] = number
        return bound

    def replicas(self, trace: Trace) -> dict[int, int]:
        """Return index of a capture -> index of the replica of a distributed variable that it is,
        other than the first.
        """
        found = {}
        for index, capture in enumerate(trace.captures):
            replica = self._replica.get(id(capture), 0)
            if replica:
                found[index] = replica
        return found

    def owner(self, capture: Union[tf.Tensor, tf.Variable, CapturedTensor]) -> Optional[int]:
        """Return the number of the owner of a captured tensor, or None if it is not reachable.

        A constant gets a number.
        """
        return self._number(capture, "the export")

    def _number(
        self, capture: Union[tf.Tensor, tf.Variable, CapturedTensor], path: str
    ) -> Optional[int]:
        if isinstance(capture, CapturedTensor):
            return self._tree.add(capture, path)
        found = self._owners.get(id(capture))
        if not isinstance(capture, tf.Tensor):
            return self._number_of_object(capture) if found is None else found
        if found is None and capture.dtype not in _STATE:
            # A tensor of another function's trace is usable if it is a constant of that function.
            value = api.whole(capture) if eager_tensor(capture) else tf.get_static_value(capture)
            if value is not None:
                value = tf.convert_to_tensor(value, capture.dtype)
                found = self._owners[id(capture)] = self._tree.add(value, f"a constant of {path}")
                self._kept += [capture, value]
        return found

    def _number_of_object(self, capture: Any) -> Optional[int]:
        found = self._tree.number_of(capture)
        parts = api.variable_parts(capture) if found is None else ()
        return self._owners.get(id(parts[0].handle)) if parts else found

    def _note(self, capture: Union[tf.Tensor, tf.Variable], trace: Trace, path: str) -> None:
        self._first = self._first or path
        if (
            isinstance(capture, tf.Tensor)
            and capture.dtype not in _STATE
            and not eager_tensor(capture)
        ):
            what = _computed(capture)
        else:
            what = self._describe(capture, trace)
            if what != _ITERATOR:
                self._fixable = True
                what += ", which is not reachable from root, the object that is saved"
        self._problems.append(f"{path} captures {what}")

    def _describe(self, capture: Union[tf.Tensor, tf.Variable], trace: Trace) -> str:
        """Describe a capture.

        Variables and tables have names; other handles are described by the ops that use them.
        """
        owner: Any = api.resource_of(capture) if isinstance(capture, tf.Tensor) else capture
        if api.is_variable(owner):
            return (
                f"the variable {owner.name!r}"
                f" ({owner.dtype.name}{list(owner.shape) if owner.shape.rank is not None else ''})"
            )
        if owner is not None:
            return f"a {type(owner).__name__}"
        name = self._library.find(trace.source, trace.name)
        called = [] if name is None else self._library.closure(name)
        functions = (self._library.definitions[each] for each in called)
        ops = {node.op for node in nodes_of(functions)}
        if capture.dtype == tf.resource and any("IteratorGetNext" in op for op in ops):
            return _ITERATOR
        if capture.dtype == tf.variant and any("Dataset" in op for op in ops):
            return "a dataset"
        return f"a tensor of {capture.dtype.name}"

    def check(self) -> None:
        """Raise UntrackedCaptureError for all recorded state without an owner (FN-07)."""
        if self._problems:
            problems = list(dict.fromkeys(self._problems))
            text = (
                "Tried to export functions which reference untracked resources: for a captured"
                " tensor there is no Trackable "
            )
            text += (
                f"referencing this tensor in the export. {'; '.join(problems)}."
                f" {_FIX if self._fixable else ''}".strip()
            )
            raise UntrackedCaptureError(text, node=self._first)


def _tensors_of(node: Node) -> list[Any]:
    """Return the tensors by which functions refer to an object."""
    if node.is_variable:
        return [part.handle for part in node.parts]
    if isinstance(node.object, api.CapturableResource):
        handle = api.resource_handle(node.object)
        return [] if handle is None else [handle]
    return [node.object.asset_path] if isinstance(node.object, api.Asset) else []


def _computed(tensor: tf.Tensor) -> str:
    """Describe a tensor of a graph, which has no value to save.

    A function's graph has the name of the traced function.
    """
    graph = getattr(tensor.graph, "name", "")
    where = f"while the function {graph!r} was traced" if graph else "in a graph"
    return (
        f"the tensor {tensor.name!r}, which was computed {where} and has no value outside of it:"
        " give it to the function as an argument, or compute it inside"
    )
