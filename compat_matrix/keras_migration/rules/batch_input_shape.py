"""``batch_input_shape``: an InputLayer has ``batch_shape``, other layers get their shape from what they are called on."""

from __future__ import annotations

from compat_matrix.keras_migration.rules.rule import Layer, Rule


def _translate(layer: Layer) -> None:
    shape = layer.config.pop("batch_input_shape", None)
    layer.config.pop("build_input_shape", None)
    if layer.class_name == "InputLayer":
        layer.config.setdefault("batch_shape", shape)
        layer.config.pop("type_spec", None)  # repeats shape and dtype
    elif layer.config.get("batch_shape") is not None:
        del layer.config["batch_shape"]


RULES = (Rule("batch_input_shape", "2.0-2.15", _translate, told=False),)
