"""Names of activation functions that TensorFlow gave, and functions that became other ones in Keras 3."""

from __future__ import annotations

from collections.abc import Mapping

from compat_matrix.keras_migration.rules.rule import Layer, Rule

_NAMES = {"softmax_v2": "softmax", "swish": "silu"}
HARD_SIGMOID = "hard_sigmoid of Keras 2"  # clip(0.2 x + 0.5, 0, 1); that of Keras 3 is relu6(x + 3) / 6


def _translate(layer: Layer) -> None:
    for key in [key for key in layer.config if key.endswith("activation")]:
        value = layer.config[key]
        if isinstance(value, Mapping) and value.get("class_name") == "function":  # of Keras 2.13 and later
            value = layer.config[key] = value.get("config")
        if isinstance(value, str) and value in layer.options.custom_objects:
            continue
        if isinstance(value, str):
            if value == "hard_sigmoid":
                layer.config[key] = HARD_SIGMOID
                continue
            layer.config[key] = _NAMES.get(value, value)


RULES = (Rule("names of functions", "2.0-2.15", _translate),)
