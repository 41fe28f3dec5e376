"""Children named like attributes that Python or TensorFlow use: they are kept beside the
attributes.

An attribute of an object takes the place of a method of its class. A child called
``_trackable_children`` would be called by every save, one called ``_lookup_dependency`` by the load
itself.

RFC: PRIM-02
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.format.names import PRIVATE
from reference_impl.graph import called_names

_HIDDEN = f"{PRIVATE}hidden"  # attribute of an object: {name: child}
_OF_CLASSES = frozenset(
    {"__call__", "__init__"}
)  # Python looks them up in the class; ours find the child in the object
_OF_MODULES = frozenset({"_name", "_scope_name", "_name_scope"})  # attributes of every `tf.Module`
_FRAMEWORKS = frozenset({"builtins", "keras", "reference_impl", "tensorflow", "tf_keras"})


def taken(parent: object) -> frozenset[str]:
    """Return the attributes that TensorFlow gave an object before it gets its children.

    Children may replace what an object of a registered class got from its own code.
    """
    api.initialise_tracking(parent)
    return frozenset(vars(parent)) if _is_of_framework(type(parent)) else _OF_MODULES


def shadows(parent: object, name: str, taken: Collection[str]) -> bool:
    """Return whether a child of this name would take the place of something else if it were an
    attribute.

    A module may have children with all public names: neither TensorFlow nor Python calls a public
    method of a module.
    """
    if isinstance(parent, (tf.Module, api.Searchable)) and not name.startswith("_"):
        return False
    if name.startswith("__") and name.endswith("__"):
        return name not in _OF_CLASSES
    if name.startswith("_self_") or name in taken or name in called_names.LOOKED_UP:
        return True
    defining = next((cls for cls in type(parent).__mro__ if name in vars(cls)), None)
    return defining is not None and _is_of_framework(defining)


def _is_of_framework(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in _FRAMEWORKS


def hide(parent: object, name: str, child: object) -> None:
    """Make a child a dependency of an object without making it an attribute."""
    vars(parent).setdefault(_HIDDEN, {})[name] = child
    api.track(parent, name, child)


def of(obj: object) -> dict[str, Any]:
    """Return the hidden children of an object by name."""
    return dict(vars(obj).get(_HIDDEN, ()))
