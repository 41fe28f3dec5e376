"""What functions capture, as numbers of the object graph (FN-07, RES-04, GOAL-09).

The last arguments of a FunctionDef are variables, tables, assets and constants that it was traced over. Each is looked up by
the identity of its tensor among what the tree owns. A tensor that nobody owns is stored as a constant; state that nobody owns
is an error, and all such errors are reported at once.

A variable of a strategy is several, and one node; which of them a capture is, is noted (A11).
"""

from __future__ import annotations

import gc
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import UntrackedCaptureError
from reference_impl.kinds.captured_tensor import CapturedTensor
from reference_impl.kinds.export_library import eager_tensor
from reference_impl.kinds.traces import Trace
from reference_impl.saving import places
from reference_impl.saving.tree import Node, Tree

_STATE = (tf.resource, tf.variant)
_ITERATOR = (
    "an iterator, whose position no file keeps: give its elements to the function as arguments, or make it inside, of a dataset "
    "that is an attribute"
)


class Captures:
    """Resolves captures against a numbered tree; constants are added to it.

    Attributes:
      replicas: number of a function's node -> {index of a capture: index of the replica}, other than the first.
    """

    def __init__(self, tree: Tree):
        self._tree = tree
        self.replicas: dict[int, dict[int, int]] = {}
        self._replica: dict[int, int] = {}
        self._owners: dict[int, int] = {}
        self._kept: list[Any] = []
        self._problems: list[str] = []
        self._fix = ""
        self._first: Optional[str] = None
        for node in list(tree.nodes):
            for tensor in _tensors_of(node.object):
                self._owners.setdefault(id(tensor), node.number)
                self._kept.append(tensor)
            for index, part in enumerate(api.variable_components(node.object) if api.is_variable(node.object) else ()):
                self._replica.setdefault(id(part.handle), index)

    def resolve(self, trace: Trace, path: str, node: Optional[Node]) -> list[int]:
        """The bound inputs of a function. Constants and assets become children of its node, as TensorFlow has it.

        What is not owned is noted for :meth:`check`.
        """
        bound = []
        for index, capture in enumerate(trace.captures):
            number = self._number(capture, path)
            if number is None:
                number = 0
                self._note(capture, path, node)
            bound.append(number)
            target = self._tree.nodes[number].object
            if node is not None and (isinstance(target, api.Asset) or (tf.is_tensor(target) and not api.is_variable(target))):
                node.children[f"capture_{index}"] = number
            if node is not None and self._replica.get(id(capture)):
                self.replicas.setdefault(node.number, {})[index] = self._replica[id(capture)]
        return bound

    def owner(self, capture: Any) -> Optional[int]:
        """The number of what a captured tensor belongs to, None if that cannot be reached. A constant gets one."""
        return self._number(capture, "the export")

    def _number(self, capture: Any, path: str) -> Optional[int]:
        if isinstance(capture, CapturedTensor):
            return self._tree.add(capture, path)
        found = self._owners.get(id(capture))
        if (found is None and not tf.is_tensor(capture)) or api.is_variable(capture):
            found = self._tree.number_of(capture)
            if found is None and api.is_variable(capture):
                found = self._owners.get(id(api.variable_components(capture)[0].handle))
            return found
        if found is None and capture.dtype not in _STATE:
            # What was computed while another function was traced is usable if it is a constant of that function.
            value = capture if eager_tensor(capture) else tf.get_static_value(capture)
            if value is not None:
                value = tf.convert_to_tensor(value, capture.dtype)
                found = self._owners[id(capture)] = self._tree.add(value, f"a constant of {path}")
                self._kept += [capture, value]
        return found

    def _note(self, capture: Any, path: str, node: Optional[Node]) -> None:
        self._first = self._first or path
        live = None if node is None else getattr(node.object, "target", node.object)
        functions = [] if node is None else [n.object for n in self._tree.nodes if isinstance(n.object, api.Function)]
        function = next((f for f in functions if any(concrete is live for concrete in api.traces(f))), None)
        place = places.find(
            lambda value: _stands_for(value, capture), self._tree.root, getattr(function, "python_function", None)
        )
        owner = _owner(capture)
        hopeless = _computed(capture) if _in_graph(capture) else _ITERATOR if isinstance(owner, tf.data.Iterator) else ""
        if hopeless:
            self._problems.append(f"{path} captures {hopeless}")
            return
        where = f" ({place})" if place else ""
        self._problems.append(
            f"{path} captures {_describe(capture, owner)}{where}, which is not reachable from root, the object that is saved"
        )
        if not self._fix:
            line = places.assignment(place)
            self._fix = f"Make each reachable: assign it, or the object that holds it, to an attribute, e.g. `{line}`."

    def check(self) -> None:
        """Raises UntrackedCaptureError for everything that was noted (FN-07)."""
        if self._problems:
            problems = list(dict.fromkeys(self._problems))
            text = "Tried to export functions which reference untracked resources: for a captured tensor there is no Trackable "
            text += f"referencing this tensor in the export. {'; '.join(problems)}. {self._fix}".strip()
            raise UntrackedCaptureError(text, node=self._first)


def _tensors_of(obj: Any) -> list[Any]:
    """The tensors by which functions refer to an object."""
    if api.is_variable(obj):
        return [part.handle for part in api.variable_components(obj)]
    if isinstance(obj, api.CapturableResource):
        handle = api.resource_handle(obj)
        return [] if handle is None else [handle]
    return [obj.asset_path] if isinstance(obj, api.Asset) else []


def _stands_for(value: Any, capture: Any) -> bool:
    if not isinstance(value, api.Trackable):
        return False
    held = getattr(value, "__dict__", {}).values()  # of datasets and iterators
    return value is capture or any(tensor is capture for tensor in [*_tensors_of(value), *held])


def _in_graph(capture: Any) -> bool:
    return tf.is_tensor(capture) and capture.dtype not in _STATE and not eager_tensor(capture)


def _computed(tensor: tf.Tensor) -> str:
    """A tensor of a graph, which has no value to save; functions are known by the name of what was being traced."""
    graph = getattr(tensor.graph, "name", "")
    where = f"while the function {graph!r} was traced" if graph else "in a graph"
    return (
        f"the tensor {tensor.name!r}, which was computed {where} and has no value outside of it: give it to the function as an "
        "argument, or compute it inside"
    )


def _owner(capture: Any) -> Any:
    """The object that a captured tensor is a part of, None for nobody's."""
    if not tf.is_tensor(capture) or isinstance(capture, tf.Variable):
        return capture
    resource = api.resource_of(capture)
    if resource is not None:
        return resource
    found = gc.get_referrers(capture)
    holders = [*found, *(owner for members in found if isinstance(members, dict) for owner in gc.get_referrers(members))]
    return next((owner for owner in holders if isinstance(owner, api.Trackable)), None)


def _describe(capture: Any, owner: Any) -> str:
    if api.is_variable(owner):
        return f"the variable {owner.name!r}"
    if owner is not None:
        return f"a {type(owner).__name__}"
    return f"a {capture.dtype.name} tensor {getattr(capture, 'name', '') if not eager_tensor(capture) else ''}".strip()
