"""The values that the hooks of an object give to a checkpoint, without a function that could be
saved.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from reference_impl.tensorflow_api.trackables import content_factories, content_hooks, content_name
from reference_impl.tensorflow_api.variables import is_variable


def checkpointed(obj: object) -> dict[str, dict[str, tf.Tensor]]:
    """Return what the object itself gives to a checkpoint: attribute -> name in the checkpoint ->
    tensor.

    Raises whatever the hooks raise, which are code of users; TypeError: a value is not made of
    tensors.
    """
    hooks, legacy = content_hooks(obj), content_name(obj)
    if hooks is not None:
        found = {f"{legacy}{name}": _current(value) for name, value in hooks[0]().items()}
        return (
            {legacy: found} if legacy else {name: {name: tensor} for name, tensor in found.items()}
        )
    return {name: dict(_made_by(factory, name)) for name, factory in content_factories(obj).items()}


def _made_by(factory: Any, name: str) -> Iterator[tuple[str, tf.Tensor]]:
    """Yield name and tensor of the saveables that a factory makes, or of the saveables or the
    variable in its place.
    """
    if is_variable(factory):
        yield name, factory.read_value()
        return
    made = factory(name=name) if callable(factory) else factory
    for saveable in made if isinstance(made, (list, tuple)) else [made]:
        yield from ((spec.name, spec.tensor) for spec in saveable.specs)


def _current(value: object) -> tf.Tensor:
    """Return a value of the newer hook as a tensor: it may be a SaveSpec, a Python value, or a
    function of no arguments.
    """
    if isinstance(value, dict):
        raise TypeError("its state is a tensor in slices")
    return tf.convert_to_tensor(value() if callable(value) else getattr(value, "tensor", value))
