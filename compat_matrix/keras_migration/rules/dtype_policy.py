"""Policies of dtypes: older releases write other classes, and loss scaling beside."""

from __future__ import annotations

from collections.abc import Mapping

from compat_matrix.keras_migration.refused import Refused
from compat_matrix.keras_migration.rules.rule import Layer, Rule

_POLICIES = ("Policy", "PolicyV1", "DTypePolicy", "LossScalePolicy")
_NAMES = ("float16", "bfloat16", "float32", "float64", "mixed_float16", "mixed_bfloat16")


def _translate(layer: Layer) -> None:
    dtype = layer.config.get("dtype")
    if isinstance(dtype, Mapping):
        config = dtype.get("config")
        if dtype.get("class_name") not in _POLICIES or not isinstance(config, Mapping):
            raise Refused(f"the dtype policy {dtype.get('class_name')!r} is not one of Keras")
        dtype = config.get("name")
        if dtype not in _NAMES and dtype != "_infer":
            raise Refused(f"the dtype policy {dtype!r} is not one of Keras")
        layer.config["dtype"] = dtype
    if dtype == "_infer":  # the dtype of the inputs, which the saved layer knows
        layer.config["dtype"] = layer.metadata.get("dtype") or "float32"
    if dtype is None and "dtype" in layer.config:
        del layer.config["dtype"]


RULES = (Rule("dtype policy", "2.1-2.15", _translate),)
