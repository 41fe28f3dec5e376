"""Wrap a SavedModel as a functional Keras 3 model.

Imports TensorFlow and Keras: for workers only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

import keras
import tensorflow as tf

from savedmodel_compat.keras import SavedModelLayer
from savedmodel_compat.keras.endpoint import ENDPOINTS, Endpoint, variables_of
from savedmodel_compat.keras.layer import holds_numbers
from savedmodel_migration.keras_2_to_3.refused import Refused

LAYER = "saved_model"
NOTE = (
    "to load it, import savedmodel_compat.keras and pass safe_mode=False: the file holds the"
    " SavedModel, which is a program"
)


@dataclass
class Wrapped:
    """A functional Keras 3 model around one `SavedModelLayer`, the function that it calls, and
    (name, old variable, new one).
    """

    model: Any
    endpoint: Endpoint
    pairs: Sequence[tuple[str, Any, Any]]

    @property
    def names(self) -> dict[str, str]:
        """Name of a variable of the SavedModel -> path of the variable of Keras 3."""
        return {f"{number}: {name}": view.path for number, (name, _, view) in enumerate(self.pairs)}

    @property
    def tree(self) -> list[str]:
        """The layers of the new model, a line for each."""
        return [f"{layer.name}: {type(layer).__name__}" for layer in self.model.layers]


def wrap(
    path: Union[str, os.PathLike[str]], old: Any, tags: Optional[Sequence[str]] = None
) -> Wrapped:
    """Return a functional model around the SavedModel at `path`, which `reference_impl.load` loaded
    as `old`.

    Raises Refused: the file does not say what its functions take, or a functional model cannot have
    such inputs.
    """
    endpoint, specs = _choose(old)
    taken: set[str] = set()
    inputs = keras.tree.map_structure(lambda spec: _input(spec, taken), specs)
    layer = SavedModelLayer(path, endpoint.name or None, tags=tags, name=LAYER)
    model = keras.Model(inputs, layer(inputs))
    # Two loads of one file have their variables in one order.
    before = [variable for variable, _ in variables_of(old) if holds_numbers(variable)]
    return Wrapped(
        model,
        endpoint,
        [(item.name, item, view) for item, view in zip(before, layer.saved_variables)],
    )


def _choose(old: Any) -> tuple[Endpoint, Any]:
    """Return the first function whose inputs are known, with their specs: the model itself, else a
    signature.
    """
    problems = []
    named = [name for name in ENDPOINTS if name in old.signatures]
    for name in (None, *dict.fromkeys([*named, *sorted(old.signatures)])):
        try:
            endpoint = Endpoint(old, name)
            return endpoint, specs_of(endpoint)
        except (ValueError, Refused) as error:
            problems.append(str(error))
    raise Refused(problems[0])


def specs_of(endpoint: Endpoint) -> Any:
    """Return the specs of the inputs, nested as the function takes them. Raises Refused."""
    name = (
        f"signature {endpoint.name!r}"
        if endpoint.is_signature
        else f"function {endpoint.name or '__call__'!r}"
    )
    traces = getattr(endpoint.function, "concrete_functions", None) or [endpoint.function]
    positional, keywords = getattr(traces[0], "structured_input_signature", None) or ((), {})
    if endpoint.is_signature:
        specs = dict(keywords) if len(keywords) != 1 else next(iter(keywords.values()))
    else:
        specs, others = positional[0] if positional else None, [*positional[1:], *keywords.values()]
        if any(isinstance(item, tf.TypeSpec) for item in keras.tree.flatten(others)):
            raise Refused(f"{name} takes tensors in several arguments")
    flat = tf.nest.flatten(specs)
    if not flat:
        raise Refused(f"{name} takes no tensors, or the file does not say which")
    for spec in flat:
        _check(name, spec)
    return specs


def _check(name: str, spec: Any) -> None:
    """Raise Refused for an input that a functional model cannot have."""
    if not isinstance(spec, tf.TensorSpec):
        raise Refused(
            f"{name} takes {type(spec).__name__.replace('Spec', '')}, which is not an input of a"
            " functional model"
        )
    if spec.shape.rank is None:
        raise Refused(f"{name} has an input {spec.name!r} of an unknown rank")
    try:
        keras.backend.standardize_dtype(spec.dtype)
    except ValueError:
        raise Refused(
            f"{name} has an input {spec.name!r} of dtype {spec.dtype.name}, which Keras does not"
            " have"
        ) from None


def _input(spec: Any, taken: set[str]) -> Any:
    """Return the Keras input of a spec, with a name that no other input has."""
    name = wanted = re.sub(r"[^\w.-]", "_", spec.name or "input")
    number = 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return keras.Input(
        batch_shape=tuple(spec.shape), dtype=keras.backend.standardize_dtype(spec.dtype), name=name
    )
