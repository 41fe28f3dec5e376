"""LayerNormalization and UnitNormalization: an axis in a list."""

from __future__ import annotations

from compat_matrix.keras_migration.rules.rule import Layer, Rule


def _axis(layer: Layer) -> None:
    axis = layer.config.get("axis")
    if isinstance(axis, (list, tuple)):
        layer.config["axis"] = axis[0] if len(axis) == 1 else list(axis)


RULES = (Rule("axis of LayerNormalization in a list", "2.0-2.15", _axis, ("LayerNormalization", "UnitNormalization")),)
