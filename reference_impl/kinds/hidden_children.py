"""Children whose names are those of attributes that Python or TensorFlow use: they are kept beside the attributes.

An attribute of an object takes the place of a method of its class. A child called ``_trackable_children`` would be called by
every save, one called ``_lookup_dependency`` by the load itself.

RFC: PRIM-02
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any

from reference_impl import tensorflow_api as api
from reference_impl.format.names import PRIVATE
from reference_impl.graph import called_names

_HIDDEN = f"{PRIVATE}hidden"  # attribute of an object: {name: child}
_ABSENT = object()


class Computed:
    """A property that an attribute of the same name overrides: a model may have a child with the name `variables`."""

    def __init__(self, get: Callable[[Any], Any]):
        self._get = get

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else self._get(instance)


def taken(parent: Any) -> frozenset[str]:
    """Return the attributes that an object has before it gets its children."""
    api.initialise_tracking(parent)
    return frozenset(vars(parent))


def shadows(parent: Any, name: str, taken: Collection[str]) -> bool:
    """Return whether a child of this name would take the place of something else if it were an attribute."""
    if name.startswith("__") and name.endswith("__"):
        return name != "__call__"
    if name.startswith("_self_") or name in taken or name in called_names.LOOKED_UP:
        return True
    known = inspect.getattr_static(type(parent), name, _ABSENT)
    return known is not _ABSENT and not isinstance(known, Computed)


def hide(parent: Any, name: str, child: Any) -> None:
    """Make a child a dependency of an object without making it an attribute."""
    vars(parent).setdefault(_HIDDEN, {})[name] = child
    api.track(parent, name, child)


def of(obj: Any) -> dict[str, Any]:
    """Return the hidden children of an object by name."""
    return dict(vars(obj).get(_HIDDEN, ()))
