"""Specs of nested tensors as JSON, for the configuration of a layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras


def to_json(value: Any) -> Any:
    """Return the JSON of nested tensors: their shapes, dtypes and containers."""
    if isinstance(value, Mapping):
        return {"dict": {str(key): to_json(item) for key, item in value.items()}}
    if isinstance(value, (list, tuple)):
        return {"tuple" if isinstance(value, tuple) else "list": [to_json(item) for item in value]}
    if value is None:
        return None
    return {"shape": list(value.shape), "dtype": keras.backend.standardize_dtype(value.dtype)}


def from_json(value: Any) -> Any:
    """Return the nested structure of `keras.KerasTensor` that `to_json` described.

    Raises:
      ValueError: the JSON does not describe such a structure.
    """
    if value is None:
        return None
    if isinstance(value, Mapping):
        if isinstance(value.get("dict"), Mapping):
            return {key: from_json(item) for key, item in value["dict"].items()}
        if isinstance(value.get("list"), (list, tuple)):
            return [from_json(item) for item in value["list"]]
        if isinstance(value.get("tuple"), (list, tuple)):
            return tuple(from_json(item) for item in value["tuple"])
        if "shape" in value and "dtype" in value:
            return keras.KerasTensor(tuple(value["shape"]), dtype=value["dtype"])
    raise ValueError(f"not the spec of a tensor: {value!r}")


def same(one: Any, other: Any) -> bool:
    """Return whether two specs have the same containers and dtypes, and compatible shapes.

    A list counts as a tuple: Keras writes the inputs of a functional model as a list.
    """
    if (
        isinstance(one, Mapping)
        and isinstance(other, Mapping)
        and "shape" in one
        and "shape" in other
    ):
        shapes = one["shape"], other["shape"]
        fits = len(shapes[0]) == len(shapes[1]) and all(
            a == b or None in (a, b) for a, b in zip(*shapes)
        )
        return bool(fits and one["dtype"] == other["dtype"])
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        one, other = _as_list(one), _as_list(other)
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _as_list(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"list": spec["tuple"]} if "tuple" in spec else spec
