"""Registered classes, which a model's objects have again after loading.

A SavedModel holds no Python code. An object of a registered class is written with the name of its
registration. A program with the same registration loads an object of that class, with the model's
functions and variables as its attributes. Other programs, and shipped TensorFlow, load a generic
object. A file can only name a class; it cannot bring one.

RFC: REV-04, REV-05, RP-02
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Optional

from reference_impl.format.names import OWN_NAME, PACKAGES_OF_TENSORFLOW

_lock = threading.Lock()
by_name: dict[str, Registration] = {}
by_class: dict[type, Registration] = {}


@dataclass(frozen=True)
class Registration:
    """A class and the functions that write and make its objects; see `register`."""

    name: str
    cls: type
    serialize: Optional[Callable[[Any], Mapping[str, Any]]] = None
    revive: Optional[Callable[[type, dict[str, Any]], Any]] = None


def register(
    name: str,
    cls: Optional[type] = None,
    *,
    serialize: Optional[Callable[[Any], Mapping[str, Any]]] = None,
    revive: Optional[Callable[[type, dict[str, Any]], Any]] = None,
) -> Any:
    """Register a class under a unique string: ``@register("Package.Name")``, or
    ``register("Package.Name", cls)``.

    Loading makes the object first. It then attaches the loaded functions, variables and children,
    replacing attributes of the same names. Python methods, properties and `__call__` come from the
    class; only a `__call__` that was exported as a function is replaced.

    Args:
      name: your own package and a name, with a dot between them.
      cls: the class; left out when used as a decorator.
      serialize: returns the state of an object that is not in its children: a dict with string
        keys. Values are None, bools, ints, floats, strings and nests of these in lists, tuples and
        dicts, or bytes of any size.
      revive: makes the object from the class and that dict. The dict comes from a file and must not
        be trusted. Without `revive` the object is made without running `__init__` and gets the
        entries of the dict as attributes.

    Returns:
      The class, or as a decorator a function that takes and returns it.

    Raises:
      ValueError: the name has no package, is in a package of TensorFlow, or is already registered;
        or the class already has a name.
      TypeError: the argument is not a class.

    RFC: REV-04
    """
    if not isinstance(name, str) or not OWN_NAME.match(name):
        raise ValueError(
            f"a registered name is a package and a name, as in 'my_package.Name'; got {name!r}"
            " (REV-04)"
        )
    if name.partition(".")[0] in PACKAGES_OF_TENSORFLOW:
        raise ValueError(
            f"{name!r}: names of {name.partition('.')[0]} belong to TensorFlow; use a package of"
            " your own (REV-04)"
        )
    if cls is None:
        return lambda given: register(name, given, serialize=serialize, revive=revive)
    if not isinstance(cls, type):
        raise TypeError(f"only a class can be registered, got {type(cls).__name__} (REV-04)")
    with _lock:
        if name in by_name:
            raise ValueError(
                f"the name {name!r} is taken by {by_name[name].cls.__qualname__} (REV-04)"
            )
        if cls in by_class:
            raise ValueError(
                f"{cls.__qualname__} is registered already, as {by_class[cls].name!r} (REV-04)"
            )
        by_name[name] = by_class[cls] = Registration(name, cls, serialize, revive)
    return cls


def unregister(name: str) -> None:
    """Remove a registration, for tests and reloaded modules.

    Raises KeyError if the name is not registered.
    """
    with _lock:
        del by_class[by_name.pop(name).cls]
