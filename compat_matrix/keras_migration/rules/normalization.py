"""Normalization: the count of what was adapted has no place in Keras 3 and changes no answer."""

from __future__ import annotations

from compat_matrix.keras_migration.rules.rule import Layer, Rule


def _translate(layer: Layer) -> None:
    layer.unused = ("count", "adapt_mean", "adapt_variance")
    axis = layer.config.get("axis")
    if isinstance(axis, list):
        layer.config["axis"] = tuple(axis)
    layer.config.pop("streaming", None)


RULES = (Rule("count of Normalization", "2.3-2.15", _translate, ("Normalization",), told=False),)
