"""The first stage of a save: the objects that can be reached from the root, each once.

Children come from TensorFlow's own hook if a class overrides it (Keras, tables, datasets).
Functions of plain modules are found without running properties. Functions with an input signature
that were never called are traced before objects are numbered, since tracing may make variables. No
other code is traced or run.

RFC: FN-01, FN-02, FN-03, FN-04, FN-05, FN-06, FN-10, FN-17, PRIM-06
"""

from __future__ import annotations

import inspect
import itertools
import logging
import warnings
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import NotTrackableError, SaveError, UntracedFunctionError
from reference_impl.format.names import CREATE, DESTROY, INITIALIZE, SIGNATURES_CHILD
from reference_impl.kinds.function import LoadedFunction
from reference_impl.kinds.resource import LoadedResource
from reference_impl.kinds.signature_map import SignatureMap, is_live_map
from reference_impl.saving import traces
from reference_impl.saving.checks import authorship
from reference_impl.saving.export_library import is_function
from reference_impl.saving.options import SaveOptions

_log = logging.getLogger(__name__)


def reach(root: object, options: SaveOptions) -> Reached:
    """Return the objects of an export, after tracing the functions that need it.

    Raises:
      NotTrackableError: the root is not trackable, or is a `tf.function`.
      SaveError, UntracedFunctionError: a function could not be called after loading (with
        ``strict``).
    """
    if not isinstance(root, api.Trackable) or isinstance(
        root, api.Function
    ):  # TensorFlow writes a function and cannot load it
        what = (
            "A tf.function cannot be the root; save a concrete function of it, or put it on"
            if is_function(root)
            else "Give"
        )
        reason = (
            f"Expected an object of type `Trackable` to save, got {type(root).__name__}, which is"
            " not trackable. "
        )
        reason += f"{what} a tf.Module or a tf.train.Checkpoint"
        raise NotTrackableError(reason, node="obj")
    found = Reached(root, options.strict)
    if options.numbers_as_tensors:
        for path, function, _ in list(found.functions()):
            found.add_traces(function, _traces_with_tensors(function, path))
    _trace_signatures(found)
    _check_traced(found)
    return found


@dataclass(frozen=True, eq=False, repr=False)
class Reached:
    """The objects of an export, before they have numbers.

    Children are kept by the identity of their parent, since a library may return new objects for
    each call.
    """

    root: Any
    strict: bool  # whether a loss is an error
    _resources: dict[int, dict[str, Any]] = field(default_factory=dict)
    _cache: dict[Any, Any] = field(default_factory=dict)  # of Keras 2
    _classes: dict[type, tuple[frozenset[str], frozenset[str]]] = field(default_factory=dict)
    _known: dict[int, dict[str, Any]] = field(
        default_factory=dict
    )  # without tracing; Keras traces a model when asked
    _kept: list[Any] = field(default_factory=list)  # by id, so the objects are kept alive
    _made: dict[int, list[Any]] = field(
        default_factory=dict
    )  # further traces of functions, for this export only

    def lose(self, error: SaveError, what: str = "") -> None:
        """Report a loss as an error or, without ``strict``, as a warning, which may begin with
        `what`.
        """
        if self.strict:
            raise error
        warnings.warn(f"{what}: {error}" if what else str(error), stacklevel=2)

    def functions(self) -> Iterator[tuple[str, Any, bool]]:
        """Yield the path of every reachable `tf.function`, the function, and whether a library made
        it for its own use.
        """
        seen, queue = {id(self.root)}, deque([("root", self.root, False)])
        while queue:
            path, obj, made = queue.popleft()
            if isinstance(obj, api.Function):
                yield path, obj, made
                continue
            for name, child in self.children(obj, path).items():
                if id(child) not in seen:
                    seen.add(id(child))
                    queue.append(
                        (step(path, obj, name), child, authorship.is_of_library(obj, name, made))
                    )

    def add_traces(self, function: object, made: list[Any]) -> None:
        """Export a `tf.function` with more traces than it has."""
        self._kept.append(function)
        self._made[id(function)] = made

    def traces(self, function: object) -> list[Any]:
        """Return all traces of a `tf.function` in the export."""
        return [*api.traces(function), *self._made.get(id(function), ())]

    def forget(self) -> None:
        """Forget the children of objects that may have new ones: tracing a function may make
        variables.
        """
        self._known.clear()

    def children(self, obj: Any, path: str) -> dict[str, Any]:
        """Return the children of an object by name.

        `path` is the Python path of the object, for messages.
        """
        if is_live_map(obj):
            return dict(obj.items())
        if isinstance(obj, api.Function):
            own = [
                trace
                for trace in api.traces(obj)
                if self.strict or not traces.unserialisable(trace)
            ]
            found = [*traces.distinct(own), *self._made.get(id(obj), ())]
            return {f"trace_{i}": trace for i, trace in enumerate(found)}
        if not isinstance(obj, api.Trackable) or isinstance(obj, api.ConcreteFunction):
            return {}
        makes = isinstance(obj, (api.CapturableResource, tf.data.Dataset))
        known = (
            self._resources if makes else self._known
        )  # a resource makes new functions for each call
        if id(obj) not in known:
            known[id(obj)] = (
                self._resource_children(obj, path) if makes else self._tracked(obj, path)
            )
            self._kept.append(obj)
        return known[id(obj)]

    def _tracked(self, obj: object, path: str) -> dict[str, Any]:
        try:
            found = (
                _attributes(obj, self._classes)
                if api.tracks_attributes(obj)
                else api.trackable_children(obj, self._cache)
            )
        except (ValueError, NotImplementedError) as error:
            raise SaveError(str(error), node=path, clause="PRIM-06") from error
        signatures = vars(obj).get(SIGNATURES_CHILD) if hasattr(obj, "__dict__") else None
        if obj is self.root:
            found.pop(SIGNATURES_CHILD, None)
        elif isinstance(signatures, SignatureMap):
            found[SIGNATURES_CHILD] = (
                signatures  # of a model that became a part of another one (ATTR-08)
            )
        return {
            name: _trackable(child)
            for name, child in found.items()
            if child is not None and not holds_python_values(child)
        }

    def _resource_children(self, obj: object, path: str) -> dict[str, Any]:
        if isinstance(obj, LoadedResource):
            functions = {
                name: obj.functions[name]
                for name in (CREATE, INITIALIZE, DESTROY)
                if name in obj.functions
            }
            if obj.fails:  # a session fills it on first use, every loader of the copy would fail
                reason = (
                    f"{obj.fails}. Loading the copy would fail, since it fills iterators at once."
                    " Make what this one needs available and load the model again, or save with"
                    " strict=False, which leaves it empty"
                )
                self.lose(
                    SaveError(reason, node=path, clause="V1-17"), "saved without what fills it"
                )
                functions.pop(INITIALIZE)
            return {**functions, **api.trackable_children(obj)}
        return api.trackable_children(obj, self._cache)


def _traces_with_tensors(function: tf.types.experimental.GenericFunction, path: str) -> list[Any]:
    """Trace a copy of a `tf.function` for each call with Python numbers, with tensors in their
    place.

    A number is a constant of its trace. A loaded function accepts another number only if it has a
    trace that takes a tensor, which must be made while the Python code exists. Floats become
    float32 scalars, integers int32 or int64 ones. Traces whose arguments match an existing one are
    left out. The warning about code that does not accept tensors names `path`.

    RFC: PY-02
    """
    if isinstance(function, LoadedFunction) or function.input_signature is not None:
        return []
    known, copy = api.traces(function), api.untraced_copy(function)
    made: list[Any] = []
    for trace in known:
        if traces.unserialisable(trace):
            continue
        given = api.traced_arguments(trace)
        args, kwargs = tf.nest.map_structure(_general, given)
        if any(
            spec is not value
            for spec, value in zip(tf.nest.flatten((args, kwargs)), tf.nest.flatten(given))
        ):
            try:
                general = copy.get_concrete_function(*args, **kwargs)
            except Exception as error:  # it is the user's code that runs
                reason = (
                    f"{type(error).__name__}:"
                    f" {str(error).strip().splitlines()[-1] if str(error).strip() else ''}"
                )
                warnings.warn(
                    f"{path}: cannot be traced with tensors in place of numbers [PY-02]: {reason}",
                    stacklevel=2,
                )
            else:
                if not any(traces.same_signature(general, other) for other in [*known, *made]):
                    made.append(general)
    return made


def _general(value: object) -> Any:
    if isinstance(value, float):
        return tf.TensorSpec([], tf.float32)
    if isinstance(value, int) and not isinstance(value, bool):
        return tf.TensorSpec([], tf.int32 if -(2**31) <= value < 2**31 else tf.int64)
    return value


def _trace_signatures(reached: Reached) -> None:
    """Trace every function with an input signature that has not been called, until there are none
    left.
    """
    done: dict[int, Any] = {}
    while True:
        reached.forget()
        found = [
            function
            for _, function, _ in reached.functions()
            if function.input_signature is not None
            and id(function) not in done
            and not api.traces(function)
        ]
        for function in found:
            done[id(function)] = function
            function.get_concrete_function()
        if not found:
            return


def _check_traced(reached: Reached) -> None:
    """Report functions that could not be called after loading, and traces that cannot be
    written.
    """
    functions = list(reached.functions())
    live = [
        item for item in functions if not hasattr(item[1], "concrete_functions")
    ]  # loaded: the file had no traces either
    empty = [
        (path, made or authorship.is_private_helper(f))
        for path, f, made in live
        if not api.traces(f)
    ]
    helpers = [path for path, made in empty if made]
    if helpers:
        _log.info(
            "functions that a library made and never traced are saved without a trace: %s",
            ", ".join(helpers),
        )
    untraced = [path for path, made in empty if not made]
    if untraced:
        reason = (
            "functions that were never called would be saved without a trace, and nobody could"
            " call them. Call them once, give them an input_signature, or save with strict=False:"
            f" {', '.join(untraced)}"
        )
        reached.lose(UntracedFunctionError(reason, node=untraced[0]))
    for path, function, _ in functions:
        for trace in api.traces(function):
            for name, why in traces.unserialisable(trace).items():
                reason = (
                    f"the value of argument {name!r} in a call of the function cannot be stored:"
                    f" {why}. "
                )
                reason += "Numbers, strings, None, dtypes, shapes and nests of them can"
                reached.lose(SaveError(reason, node=path, clause="FN-09"))


def _attributes(
    obj: object, classes: dict[type, tuple[frozenset[str], frozenset[str]]]
) -> dict[str, Any]:
    """Return the children of a plain module and its functions, which are looked up in `classes` so
    that no property runs.
    """
    found = api.trackable_children(obj)
    cls, members = type(obj), getattr(obj, "__dict__", {})
    if cls not in classes:
        classes[cls] = _class_attributes(cls)
    functions, descriptors = classes[cls]
    own = {
        name for name, value in members.items() if is_function(value) and name not in descriptors
    }
    for name in sorted(own | (functions - members.keys())):
        found[name] = getattr(obj, name)
    return found


def _class_attributes(cls: type) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of the functions of a class, and of attributes that instances cannot replace
    (properties, slots).
    """
    functions, descriptors = set(), set()
    for name in set(itertools.chain.from_iterable(map(vars, cls.__mro__))):
        static = inspect.getattr_static(cls, name, None)
        if isinstance(static, (staticmethod, classmethod)):
            static = static.__func__
        if is_function(static):
            functions.add(name)
        if hasattr(type(static), "__set__"):
            descriptors.add(name)
    return frozenset(functions), frozenset(descriptors)


def holds_python_values(item: object) -> bool:
    """Return whether a container holds only Python values. Like a number, it is not saved (FN-14).

    Shipped TensorFlow leaves an empty list or dict in its place.
    """
    if not isinstance(item, (list, tuple, Mapping)) or is_live_map(item):
        return False
    left, seen, found = [item], set(), False
    while left:
        value = left.pop()
        if isinstance(value, (list, tuple, Mapping)):
            if id(value) not in seen:
                seen.add(id(value))
                left.extend(value.values() if isinstance(value, Mapping) else value)
        elif isinstance(value, api.Trackable) or is_function(value):
            return False
        else:
            found = found or value is not None
    return found


def _trackable(child: object) -> Any:
    """Return a child as a trackable.

    Keras 3 (at least 3.13) has its own containers, and returns the outermost as plain ones.
    """
    return (
        api.wrap(_plain(child))
        if isinstance(child, (list, dict, tuple)) and not isinstance(child, api.Trackable)
        else child
    )


def _plain(value: object) -> Any:
    if isinstance(value, api.Trackable) or not isinstance(value, (list, dict)):
        return value
    return (
        {key: _plain(item) for key, item in value.items()}
        if isinstance(value, dict)
        else [_plain(item) for item in value]
    )


def step(path: str, parent: object, name: str) -> str:
    """Return the Python path of the child `name` of an object."""
    if isinstance(parent, api.Function):
        return path  # its traces have no names
    if isinstance(parent, Mapping):
        return f"{path}[{name!r}]"
    return f"{path}[{name}]" if name.isdecimal() else f"{path}.{name}"
