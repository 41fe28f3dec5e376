"""Find values inside attributes that hold numbers or state and are not in an export.

RFC: PRIM-06
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import types
from collections import UserDict, UserList, deque
from collections.abc import ItemsView, Iterator, KeysView, Sequence, Set, ValuesView
from typing import Any, NamedTuple, Optional

import numpy as np
import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.saving.checks.authorship import FRAMEWORKS, package
from reference_impl.saving.checks.own_attributes import slot_value
from reference_impl.saving.tree import Tree
from reference_impl.saving.values import eager_tensor, of_tensor

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_VIEWS = (KeysView, ValuesView, ItemsView)
_CODE = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.GeneratorType,
)
# Classes of the standard library that hold state of models; its other objects hold none.
_HOLDERS = (UserDict, UserList, types.SimpleNamespace)


class Unsaved(NamedTuple):
    """A value that is not saved: its Python path, its kind ("" if it need not be reported), and its
    numbers.
    """

    place: str
    what: str
    arrays: Sequence[Any] = ()
    value: Any = None


def unsaved_values(tree: Tree, values: Sequence[tuple[str, Any]]) -> Iterator[Unsaved]:
    """Yield the unsaved parts of (path, value) pairs. Every value is visited once."""
    seen: dict[int, Any] = {}
    stack = [(value, place, True) for place, value in reversed(values)]
    while stack:
        value, place, data = (
            stack.pop()
        )  # data: arrays count here, unlike in objects of unknown classes
        if isinstance(value, (*_PLAIN, *_CODE)) or id(value) in seen:
            continue
        seen[id(value)] = value
        is_object = isinstance(value, api.Trackable) and not isinstance(value, (list, tuple, dict))
        if is_object and tree.number_of(value) is not None:
            continue
        found = _found(value, data)
        if found is not None:
            yield Unsaved(place, *found, value=value)
        else:
            inside = [
                (item, f"{place}{step}", data and deeper) for step, item, deeper in _inside(value)
            ]
            stack.extend(reversed(inside))


def _found(value: object, data: bool) -> Optional[tuple[str, list[Any]]]:
    """Return the kind of state or, for `data`, of numbers that a value is, with the arrays that it
    consists of as far as known.

    Return None for any other value. A tensor of a graph has no numbers.
    """
    kind = f"a {type(value).__name__}"
    if isinstance(value, api.Trackable):
        state = (
            "a variable"
            if api.is_variable(value)
            else kind
            if isinstance(value, api.CapturableResource)
            else ""
        )
        return (state, []) if state else None
    if not data:
        return None
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}", [value]
    if isinstance(value, tf.TensorArray):  # perhaps in a wrapper of another class
        return "a TensorArray", []
    if isinstance(value, (api.CompositeTensor, tf.Tensor)):
        arrays = [
            np.asarray(of_tensor(part))
            for part in tf.nest.flatten(value, expand_composites=True)
            if eager_tensor(part)
        ]
        return (
            (
                (
                    kind
                    if isinstance(value, api.CompositeTensor)
                    else f"a tensor of {value.dtype.name}"
                ),
                arrays,
            )
            if arrays
            else None
        )
    foreign = (
        hasattr(type(value), "__array__")
        and not isinstance(value, np.generic)
        and package(type(value)) not in FRAMEWORKS
    )
    return (kind, []) if foreign else None


def _inside(value: object) -> Iterator[tuple[str, Any, bool]]:
    """Yield the parts of a value: the step of the path, the part, and whether arrays in it
    count.
    """
    if isinstance(value, (dict, types.MappingProxyType)):
        for key, item in list(value.items()):
            yield f"[{key!r}]", item, True
    elif isinstance(value, (list, tuple, deque, Set, *_VIEWS)):
        for index, item in enumerate(list(value)):
            yield f"[{index}]", item, True
    elif isinstance(value, functools.partial):
        for name, item in [*enumerate(value.args), *value.keywords.items()]:
            yield f"[{name!r}]", item, True
    elif isinstance(value, api.Trackable):
        yield from _dependencies(value)
    elif isinstance(value, _HOLDERS) or not _is_foreign(type(value)):
        cls = type(value)
        holder = (
            isinstance(value, _HOLDERS)
            or dataclasses.is_dataclass(cls)
            or hasattr(cls, "__attrs_attrs__")
        )
        slots: dict[str, types.MemberDescriptorType] = {}
        for base in cls.__mro__:
            slots.update(item for item in vars(base).items() if _is_slot(item[1], item[0]))
        members = {
            **{name: slot_value(value, slot) for name, slot in slots.items()},
            **getattr(value, "__dict__", {}),
        }
        for name, item in members.items():
            yield f".{name}", item, holder


def _is_slot(member: object, name: str) -> bool:
    return isinstance(member, types.MemberDescriptorType) and not name.startswith("__")


def _dependencies(value: object) -> Iterator[tuple[str, Any, bool]]:
    """Yield the children of a trackable that is not in the export."""
    if isinstance(value, (api.Function, api.ConcreteFunction, tf.data.Dataset)):
        return
    try:
        children = api.trackable_children(value)
    except (ValueError, NotImplementedError):
        return
    for name, child in children.items():
        yield f".{name}", child, False


def _is_foreign(cls: type) -> bool:
    """Return whether a class belongs to a framework or the standard library, so that its objects
    hold no user state.
    """
    standard = getattr(sys, "stdlib_module_names", ("builtins", "threading", "logging"))
    return package(cls) in FRAMEWORKS or package(cls) in standard
