"""Optimizers: pair their variables with the variables of a model.

There is no public API for this. Optimizers of Keras 2.11 and later have lists of slots as
attributes; older ones, and those of `tf.compat.v1`, have `get_slot`.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from typing import Any, Optional, Union

import tensorflow as tf

from reference_impl.tensorflow_api.variables import is_variable, variable_components


def is_optimizer(obj: object) -> bool:
    """Return whether an object is an optimizer of Keras 2 or 3 or of `tf.compat.v1.train`."""
    return callable(getattr(obj, "apply_gradients", None)) and (
        isinstance(obj, tf.compat.v1.train.Optimizer) or callable(getattr(obj, "from_config", None))
    )


def optimizer_slots(
    optimizer: Union[tf.keras.optimizers.Optimizer, tf.compat.v1.train.Optimizer],
    variables: Sequence[Any],
) -> list[tuple[Any, str, Any]]:
    """Return (variable, slot name, slot) for every slot of the optimizer for one of `variables`."""
    if hasattr(optimizer, "get_slot_names") and hasattr(optimizer, "get_slot"):
        asked = itertools.product(optimizer.get_slot_names(), variables)
        found = [(variable, name, _get_slot(optimizer, variable, name)) for name, variable in asked]
        return [item for item in found if item[2] is not None]
    known = trained_variables(optimizer, variables)
    own = {
        id(variable_components(variable)[0].handle) for variable in known if variable is not None
    }
    out = []
    for name, value in sorted(vars(optimizer).items()):
        if (
            not isinstance(value, (list, tuple))
            or len(value) != len(known)
            or not all(map(is_variable, value))
        ):
            continue
        if (
            own.isdisjoint(id(variable_components(slot)[0].handle) for slot in value)
            and name != "_variables"
        ):
            out += [
                (variable, name.strip("_"), slot)
                for variable, slot in zip(known, value)
                if variable is not None
            ]
    return out


def trained_variables(
    optimizer: tf.keras.optimizers.Optimizer, variables: Sequence[Any]
) -> list[Optional[Any]]:
    """Return the variables with slots in a Keras optimizer, in the order of its lists; None for
    those not in `variables`.

    Listed by `_trainable_variables` in Keras 3.0-3.15, numbered by `_index_dict` in Keras
    2.11-2.15.
    """
    listed = getattr(optimizer, "_trainable_variables", None)
    if listed is not None:
        return list(listed)
    numbers = getattr(optimizer, "_index_dict", None) or {}
    found = (
        {
            numbers.get(optimizer._var_key(one)): one
            for one in variables
            if hasattr(one, "_unique_id")
        }
        if numbers
        else {}
    )
    return [found.get(number) for number in range(len(numbers))]


def _get_slot(optimizer: tf.keras.optimizers.Optimizer, variable: tf.Variable, name: str) -> Any:
    try:
        return optimizer.get_slot(variable, name)
    except KeyError:  # Keras optimizers have slots for some variables only
        return None


def optimizer_variables(optimizer: tf.keras.optimizers.Optimizer) -> dict[str, Any]:
    """Return the variables of an optimizer that are not slots, by the attribute that holds them."""
    found = {}
    for name, value in vars(optimizer).items():
        if name.startswith("_self_"):  # where TensorFlow records dependencies
            continue
        if isinstance(value, dict):
            found.update(
                {f"{name}[{key!r}]": item for key, item in value.items() if is_variable(item)}
            )
        elif is_variable(value):
            found[name] = value
    return found


def optimizer_twin(optimizer: tf.keras.optimizers.Optimizer) -> Any:
    """Return an optimizer with the same settings, without slots and without shared variables."""
    if not isinstance(optimizer, tf.compat.v1.train.Optimizer):
        return type(optimizer).from_config(optimizer.get_config())
    twin = copy.copy(optimizer)  # its settings are attributes; it has no get_config
    twin._slots, twin._deferred_slot_restorations = {}, {}
    twin._non_slot_dict = {
        key: tf.Variable(value, trainable=False)
        for key, value in optimizer._non_slot_dict.items()
        if is_variable(value)
    }
    return twin
