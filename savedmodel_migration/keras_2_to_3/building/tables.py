"""The classes and functions that a configuration may name: public ones of Keras, by the names that
Keras 2 gave them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any

import keras

from savedmodel_migration.keras_2_to_3.rules import keras_2

_RENAMED = {
    "RandomUniformV2": "RandomUniform",
    "RandomNormalV2": "RandomNormal",
    "TruncatedNormalV2": "TruncatedNormal",
}


@functools.cache
def layer_classes() -> dict[str, type]:
    """Return the layers of Keras by name, those that Keras 2 had too: a class of another name is
    the user's own.
    """
    found = vars(keras.layers).items()
    return {
        name: item
        for name, item in found
        if inspect.isclass(item) and issubclass(item, keras.layers.Layer) and name in keras_2.LAYERS
    }


@functools.cache
def parts() -> dict[str, type]:
    """Return initialisers, regularisers and constraints of Keras by name."""
    bases = (
        keras.initializers.Initializer,
        keras.regularizers.Regularizer,
        keras.constraints.Constraint,
    )
    found: dict[str, type] = {}
    for module, base in zip((keras.initializers, keras.regularizers, keras.constraints), bases):
        classes = {
            name: item
            for name, item in vars(module).items()
            if inspect.isclass(item) and issubclass(item, base)
        }
        found.update({name: item for name, item in classes.items() if item is not base})
    return {**found, **{old: found[new] for old, new in _RENAMED.items() if new in found}}


@functools.cache
def functions() -> dict[str, Any]:
    """Return the activation functions of Keras by name."""
    found = vars(keras.activations).items()
    kept = {
        name: item for name, item in found if inspect.isfunction(item) and not name.startswith("_")
    }
    return {
        name: item for name, item in kept.items() if name not in ("get", "serialize", "deserialize")
    }


def public_class(kind: str, name: str) -> type | None:
    """Return a class of ``keras.losses``, ``keras.metrics``, ``keras.optimizers`` or
    ``keras.optimizers.schedules``, or None.
    """
    module: Any = keras
    for part in kind.split("."):
        module = getattr(module, part)
    found = vars(module).get(name)
    return found if inspect.isclass(found) else None


def own(name: str, custom: Mapping[str, Any]) -> str:
    """Return the name of an object without the package that it is registered in, if the user named
    it so.
    """
    short = name.rpartition(">")[2]
    return short if name not in custom and short in custom else name


def arguments(cls: type) -> tuple[set[str], bool]:
    """Return the names of arguments that a class takes, and whether it hands unknown ones on to its
    base.
    """
    found = inspect.signature(cls.__init__).parameters.values()  # type: ignore[misc]
    names = {
        item.name for item in found if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)
    } - {"self"}
    return names, any(item.kind is item.VAR_KEYWORD for item in found)
