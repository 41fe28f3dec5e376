"""The walk of a save: all objects to which the root leads, each once.

Functions with an input signature that were never called are traced here, before objects are
numbered, since tracing may make variables. No other code is traced or run.

RFC: FN-01, FN-04, FN-05, FN-06, FN-10, FN-17
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reference_impl import tensorflow_api as api
from reference_impl.errors import NotTrackableError, SaveError, UntracedFunctionError
from reference_impl.saving import traces
from reference_impl.saving.checks import authorship
from reference_impl.saving.children import ChildFinder, step
from reference_impl.saving.general_traces import traces_with_tensors
from reference_impl.saving.losses import report_loss
from reference_impl.saving.options import SaveOptions
from reference_impl.saving.traces import is_function

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False, repr=False)
class FoundObject:
    """An object to which the root leads.

    Attributes:
      path: its Python path, for messages: ``root.layers[0].w``.
      children: its children by name; those of a `tf.function` are its traces.
      of_library: whether a library, not the user, made it while the children of its parent were
        listed.
    """

    object: Any
    path: str
    children: Mapping[str, Any]
    of_library: bool


@dataclass(frozen=True, eq=False, repr=False)
class ObjectGraphWalk:
    """The objects of an export, in the order of discovery, before they have numbers.

    Attributes:
      strict: whether a loss is an error.
      new_traces: id of a `tf.function` -> the function, and traces that it has in this export only.
    """

    root: Any
    strict: bool
    objects: Mapping[int, FoundObject]  # by the identity of the object
    new_traces: Mapping[int, tuple[Any, Sequence[Any]]]

    def children(self, obj: object) -> Mapping[str, Any]:
        """Return the children of an object by name; none for an object beside the walk."""
        found = self.objects.get(id(obj))
        return {} if found is None else found.children

    def of_library(self, obj: object) -> bool:
        """Return whether a library made an object; see `FoundObject`."""
        found = self.objects.get(id(obj))
        return found is not None and found.of_library

    def traces(self, function: object) -> list[Any]:
        """Return all traces of a `tf.function` in the export."""
        return [*api.traces(function), *_new_traces(function, self.new_traces)]


def walk(root: object, options: SaveOptions) -> ObjectGraphWalk:
    """Return the objects of an export, after tracing the functions that need it.

    Raises:
      NotTrackableError: the root is not trackable, or is a `tf.function`.
      SaveError, UntracedFunctionError: a function could not be called after loading (with
        ``strict``).
    """
    _check_root(root)
    finder = ChildFinder(root, options.strict)
    new_traces: dict[int, tuple[Any, Sequence[Any]]] = {}
    if options.numbers_as_tensors:
        for item in _functions(_reachable(root, finder)):
            made = traces_with_tensors(item.object, item.path)
            new_traces[id(item.object)] = item.object, made
    found = _with_signatures_traced(root, finder)
    traced = {id(item.object): api.traces(item.object) for item in _functions(found)}
    _check_traced(_functions(found), traced, options.strict)
    objects = {
        id(item.object): _with_traces(item, traced[id(item.object)], options.strict, new_traces)
        if id(item.object) in traced
        else item
        for item in found
    }
    return ObjectGraphWalk(root, options.strict, objects, new_traces)


def _check_root(root: object) -> None:
    # TensorFlow writes a function and cannot load it.
    if isinstance(root, api.Trackable) and not isinstance(root, api.Function):
        return
    what = (
        "A tf.function cannot be the root; save a concrete function of it, or put it on"
        if is_function(root)
        else "Give"
    )
    reason = (
        f"Expected an object of type `Trackable` to save, got {type(root).__name__}, which is"
        f" not trackable. {what} a tf.Module or a tf.train.Checkpoint"
    )
    raise NotTrackableError(reason, node="obj")


def _reachable(root: object, finder: ChildFinder) -> list[FoundObject]:
    """Return all objects to which the root leads, breadth first; functions have no children yet."""
    found = []
    seen, queue = {id(root)}, deque([("root", root, False)])
    while queue:
        path, obj, of_library = queue.popleft()
        children = finder.children(obj, path)
        found.append(FoundObject(obj, path, children, of_library))
        for name, child in children.items():
            if id(child) not in seen:
                seen.add(id(child))
                made = authorship.is_of_library(obj, name, of_library)
                queue.append((step(path, obj, name), child, made))
    return found


def _functions(found: Iterable[FoundObject]) -> list[FoundObject]:
    return [item for item in found if isinstance(item.object, api.Function)]


def _with_signatures_traced(root: object, finder: ChildFinder) -> list[FoundObject]:
    """Return all objects, after every function with an input signature was traced.

    Tracing may make objects with further functions, so the walk starts again until none is left.
    """
    done: dict[int, Any] = {}
    while True:
        finder.forget()
        found = _reachable(root, finder)
        untraced = [
            item.object
            for item in _functions(found)
            if item.object.input_signature is not None
            and id(item.object) not in done
            and not api.traces(item.object)
        ]
        if not untraced:
            return found
        for function in untraced:
            done[id(function)] = function
            function.get_concrete_function()


def _with_traces(
    item: FoundObject,
    traced: Sequence[Any],
    strict: bool,
    new_traces: Mapping[int, tuple[Any, Sequence[Any]]],
) -> FoundObject:
    """Return a `tf.function` with its traces as children."""
    own = [trace for trace in traced if strict or not traces.unserialisable(trace)]
    saved = [*traces.distinct_traces(own), *_new_traces(item.object, new_traces)]
    children = {f"trace_{index}": trace for index, trace in enumerate(saved)}
    return replace(item, children=children)


def _new_traces(
    function: object, new_traces: Mapping[int, tuple[Any, Sequence[Any]]]
) -> Sequence[Any]:
    return new_traces[id(function)][1] if id(function) in new_traces else ()


def _check_traced(
    functions: Sequence[FoundObject], traced: Mapping[int, Sequence[Any]], strict: bool
) -> None:
    """Report functions that could not be called after loading, and traces that cannot be
    written. `traced` are the traces by the identity of the function.
    """
    # A loaded function without traces had none in its file either.
    live = [item for item in functions if not hasattr(item.object, "concrete_functions")]
    empty = [item for item in live if not traced[id(item.object)]]
    helpers: list[str] = []
    untraced: list[str] = []
    for item in empty:
        is_helper = item.of_library or authorship.is_private_helper(item.object)
        (helpers if is_helper else untraced).append(item.path)
    if helpers:
        _log.info(
            "functions that a library made and never traced are saved without a trace: %s",
            ", ".join(helpers),
        )
    if untraced:
        reason = (
            "functions that were never called would be saved without a trace, and nobody could"
            " call them. Call them once, give them an input_signature, or save with strict=False:"
            f" {', '.join(untraced)}"
        )
        report_loss(UntracedFunctionError(reason, node=untraced[0]), "", strict)
    for item in functions:
        for trace in traced[id(item.object)]:
            for name, why in traces.unserialisable(trace).items():
                reason = (
                    f"the value of argument {name!r} in a call of the function cannot be stored:"
                    f" {why}. Numbers, strings, None, dtypes, shapes and nests of them can"
                )
                report_loss(SaveError(reason, node=item.path, clause="FN-09"), "", strict)
