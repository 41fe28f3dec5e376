"""The children of an object in an export.

Children come from TensorFlow's own hook if a class overrides it (Keras, tables, datasets).
Functions of plain modules are found without running properties.

RFC: FN-01, FN-02, FN-03, FN-14, PRIM-06
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Mapping
from typing import Any, cast

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError
from reference_impl.format.names import CREATE, DESTROY, INITIALIZE, SIGNATURES_CHILD
from reference_impl.kinds.resource import LoadedResource
from reference_impl.kinds.signature_map import SignatureMap, is_live_map
from reference_impl.kinds.user_object import LoadedObject
from reference_impl.saving.losses import report_loss
from reference_impl.saving.traces import is_function

ClassAttributes = tuple[frozenset[str], frozenset[str]]  # functions, what instances cannot replace


class ChildFinder:
    """Finds the children of the objects of one export.

    The children of an object are found once, since a library may return new objects for each call.
    """

    def __init__(self, root: object, strict: bool):
        self._root, self._strict = root, strict
        self._resources: dict[int, dict[str, Any]] = {}
        self._cache: dict[Any, Any] = {}  # of Keras 2
        self._classes: dict[type, ClassAttributes] = {}
        # Without tracing; Keras traces a model when asked.
        self._known: dict[int, dict[str, Any]] = {}
        self._kept: list[Any] = []  # by id, so the objects are kept alive

    def forget(self) -> None:
        """Forget the children of objects that may have new ones: tracing a function may make
        variables.
        """
        self._known.clear()

    def children(self, obj: Any, path: str) -> dict[str, Any]:
        """Return the children of an object by name, none for a function.

        `path` is the Python path of the object, for messages.
        """
        if is_live_map(obj):
            return dict(cast("Mapping[str, Any]", obj).items())
        if not isinstance(obj, api.Trackable) or is_function(obj):
            return {}
        makes = isinstance(obj, (api.CapturableResource, tf.data.Dataset))
        # A resource makes new functions for each call.
        known = self._resources if makes else self._known
        if id(obj) not in known:
            find = self._resource_children if makes else self._tracked
            known[id(obj)] = find(obj, path)
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
        if obj is self._root:
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
                report_loss(
                    SaveError(reason, node=path, clause="V1-17"),
                    "saved without what fills it",
                    self._strict,
                )
                functions.pop(INITIALIZE)
            return {**functions, **api.trackable_children(obj)}
        return api.trackable_children(obj, self._cache)


def _attributes(obj: object, classes: dict[type, ClassAttributes]) -> dict[str, Any]:
    """Return the children of a plain module and its functions, which are looked up in `classes` so
    that no property runs.
    """
    found = api.trackable_children(obj)
    cls, members = type(obj), getattr(obj, "__dict__", {})
    functions, descriptors = _class_attributes(cls, classes)
    own = {
        name for name, value in members.items() if is_function(value) and name not in descriptors
    }
    for name in sorted(own | (functions - members.keys())):
        found[name] = getattr(obj, name)
    return found


def _class_attributes(cls: type, known: dict[type, ClassAttributes]) -> ClassAttributes:
    """Return the names of the functions of a class, and of attributes that instances cannot replace
    (properties, slots).

    Every loaded object has a class of its own, so the names of its base are looked up once for all.
    """
    if cls in known:
        return known[cls]
    if len(cls.__bases__) == 1:
        names = set(vars(cls))
        inherited = _class_attributes(cls.__bases__[0], known)
        functions, descriptors = (set(found - names) for found in inherited)
    else:
        names = set(itertools.chain.from_iterable(map(vars, cls.__mro__)))
        functions, descriptors = set(), set()
    for name in names:
        static = inspect.getattr_static(cls, name, None)
        if isinstance(static, (staticmethod, classmethod)):
            static = static.__func__
        if is_function(static):
            functions.add(name)
        if hasattr(type(static), "__set__"):
            descriptors.add(name)
    known[cls] = (frozenset(functions), frozenset(descriptors))
    return known[cls]


def is_mapping(obj: object) -> bool:
    """Return whether an object is a `Mapping`.

    A loaded object is not. Its class is not asked: every loaded object has a class of its own, and
    an abstract class asks all its subclasses about each class that it meets, and keeps the answers.
    """
    return not isinstance(obj, LoadedObject) and isinstance(obj, Mapping)


def holds_python_values(item: object) -> bool:
    """Return whether a container holds only Python values. Like a number, it is not saved (FN-14).

    Shipped TensorFlow leaves an empty list or dict in its place.
    """
    if not (isinstance(item, (list, tuple)) or is_mapping(item)) or is_live_map(item):
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
    if is_mapping(parent):
        return f"{path}[{name!r}]"
    return f"{path}[{name}]" if name.isdecimal() else f"{path}.{name}"
