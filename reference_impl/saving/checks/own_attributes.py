"""The attributes that the author of an object gave to it or its class, without those of a
framework.

RFC: PRIM-06
"""

from __future__ import annotations

import dis
import inspect
import itertools
import sys
import types
import weakref
from collections.abc import Iterator
from typing import Any

from reference_impl import tensorflow_api as api
from reference_impl.saving.checks.authorship import FRAMEWORKS, is_installed_file, package

_KERAS = frozenset({"keras", "tf_keras"})


def own_attributes(obj: object) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that the author of a trackable gave to it or its class, without those of
    a framework.
    """
    cls = type(obj)
    if package(cls) in FRAMEWORKS and not api.tracks_attributes(obj):
        return
    private = not any(package(base) in _KERAS for base in cls.__mro__) and not _is_installed(cls)
    theirs = _stored_by_frameworks(cls) | api.unsearched(cls)
    own = [
        vars(base) for base in cls.__mro__ if package(base) not in FRAMEWORKS and base is not object
    ]
    for members in (getattr(obj, "__dict__", {}), *own):
        for name, value in list(members.items()):
            known = name in theirs or name.startswith(("_self_", "__"))
            if not known and (private or not name.startswith("_")):
                yield (
                    name,
                    (
                        slot_value(obj, value)
                        if isinstance(value, types.MemberDescriptorType)
                        else value
                    ),
                )


def slot_value(obj: object, slot: types.MemberDescriptorType) -> Any:
    """Return the value of a slot, or None if it has none."""
    try:
        return slot.__get__(obj, type(obj))
    except AttributeError:
        return None


_stored: weakref.WeakKeyDictionary[type, frozenset[str]] = weakref.WeakKeyDictionary()


def _stored_by_frameworks(cls: type) -> frozenset[str]:
    """Return the attributes that methods of framework base classes assign, according to their byte
    code.

    For example, the mean in a subclass of Keras' Normalization, which Keras itself saves.
    """
    found: frozenset[str] = frozenset()
    for base in cls.__mro__:
        if package(base) in FRAMEWORKS:
            if base not in _stored:
                members = list(vars(base).values())
                _stored[base] = frozenset(itertools.chain.from_iterable(map(_stores, members)))
            found |= _stored[base]
    return found


def _stores(member: object) -> Iterator[str]:
    if isinstance(member, property):
        for part in (member.fget, member.fset):
            yield from _stores(part)
    if isinstance(member, (staticmethod, classmethod)):
        member = member.__func__
    codes = (
        [getattr(inspect.unwrap(member), "__code__", None)]
        if callable(member) and not isinstance(member, type)
        else []
    )
    while codes:
        code = codes.pop()
        if isinstance(code, types.CodeType):
            yield from (
                item.argval for item in dis.get_instructions(code) if item.opname == "STORE_ATTR"
            )
            codes.extend(
                constant for constant in code.co_consts if isinstance(constant, types.CodeType)
            )


def _is_installed(cls: type) -> bool:
    """Return whether a class is from an installed package, which users cannot change."""
    return is_installed_file(getattr(sys.modules.get(cls.__module__), "__file__", None) or "")
