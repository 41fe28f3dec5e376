"""Values of the checkpoint, put into the weights of Keras 3 layers, bit by bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from savedmodel_migration.keras_2_to_3.reading.saved import SavedKeras, Weights
from savedmodel_migration.keras_2_to_3.refused import Refused
from savedmodel_migration.keras_2_to_3.rules import Layer


def plain(name: str) -> str:
    """Return the name of an attribute as both releases would write it: private or not is not the
    same in both.
    """
    return name.lstrip("_")


def flat(weights: Weights, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path of each saved value below its layer, as ``cell.kernel``, and its checkpoint
    key.
    """
    for name, key in weights.keys.items():
        yield prefix + plain(name), key
    for name, part in weights.parts.items():
        yield from flat(part, f"{prefix}{plain(name)}.")


def variables_of(
    layer: Any, prefix: str = "", seen: set[int] | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield the path of each weight of a Keras 3 layer below it, and the weight; each one once."""
    seen = set() if seen is None else seen
    weights = {id(item) for item in layer.weights}
    own = [
        *getattr(layer, "_trainable_variables", ()),
        *getattr(layer, "_non_trainable_variables", ()),
    ]
    for variable in own:
        if id(variable) in weights and id(variable) not in seen:
            seen.add(id(variable))
            yield prefix + plain(variable.name), variable
    for name, value in list(vars(layer).items()):
        items = {"": value} if isinstance(value, keras.layers.Layer) else {}
        if isinstance(value, (list, tuple)) and name != "_layers":
            items = {
                f".{number}": item
                for number, item in enumerate(value)
                if isinstance(item, keras.layers.Layer)
            }
        for place, item in items.items():
            if id(item) not in seen:
                seen.add(id(item))
                yield from variables_of(item, f"{prefix}{plain(name)}{place}.", seen)


def assign(layer: Any, told: Layer, saved: SavedKeras, node: int) -> dict[str, Any]:
    """Put the saved values of one layer into the weights of its Keras 3 layer; return checkpoint
    key -> variable.

    Raises Refused: a weight has no saved value, a value has no weight, or shapes or dtypes are
    different.
    """
    keys = dict(flat(saved.weights_of(node)))
    wanted = dict(variables_of(layer))
    keys = {
        name: key
        for name, key in keys.items()
        if name.rpartition(".")[2] not in told.unused or name in wanted
    }
    keys = {name: key for name, key in keys.items() if not _is_state(name)}
    placed = {
        key for name, key in keys.items() if name in wanted
    }  # a variable may be in several attributes
    keys = {name: key for name, key in keys.items() if name in wanted or key not in placed}
    values = {name: saved.value(key) for name, key in keys.items()}
    if told.weights is not None:
        values = told.weights(values)
    pairs = _paired(values, wanted)
    for name, place in pairs.items():
        _set(wanted[place], values[name], place)
    if isinstance(layer, keras.layers.Normalization):
        layer.finalize_state()
    return {keys[name]: wanted[place] for name, place in pairs.items() if name in keys}


def _is_state(name: str) -> bool:
    """Whether a saved value is the state of a random generator, which Keras 3 keeps otherwise."""
    return "random_generator" in name or "state_var" in name.split(".")


def _paired(values: dict[str, npt.NDArray[Any]], wanted: dict[str, Any]) -> dict[str, str]:
    if set(values) == set(wanted):
        return {name: name for name in values}
    # Attributes of one layer may be called otherwise: then the order in which it made them tells,
    # if the shapes agree.
    if len(values) == len(wanted):
        pairs = dict(zip(values, wanted))
        if all(
            tuple(values[name].shape) == tuple(wanted[place].shape) for name, place in pairs.items()
        ):
            return pairs
    lacking, left = sorted(set(wanted) - set(values)), sorted(set(values) - set(wanted))
    theirs, ours = (", ".join(names) or "nothing more" for names in (left, lacking))
    raise Refused(f"the checkpoint holds {theirs} where Keras 3 has {ours}")


def _set(variable: Any, value: npt.NDArray[Any], place: str) -> None:
    if tuple(value.shape) != tuple(variable.shape):
        raise Refused(
            f"{place} has the shape {tuple(value.shape)} in the checkpoint and"
            f" {tuple(variable.shape)} in Keras 3"
        )
    dtype = keras.backend.standardize_dtype(variable.dtype)
    if value.dtype.name != dtype:
        raise Refused(f"{place} is {value.dtype.name} in the checkpoint and {dtype} in Keras 3")
    variable.assign(np.array(value))
