"""Normalization: the count of what was adapted has no place in Keras 3 and changes no answer."""

from __future__ import annotations

from compat_matrix.keras_migration.rules.rule import Layer, Rule


def _translate(layer: Layer) -> None:
    layer.unused = ("count", "adapt_mean", "adapt_variance")
    axis = layer.config.get("axis")
    if isinstance(axis, list):
        layer.config["axis"] = tuple(axis)
    layer.config.pop("streaming", None)


def _invert(layer: Layer) -> None:
    """Read ``invert``, which TF 2.12 does not write, from the graph: only the way back multiplies, only the other one divides."""
    ops = frozenset() if "invert" in layer.config else layer.ops()
    if "Mul" in ops and "RealDiv" not in ops:
        layer.config["invert"] = True


RULES = (
    Rule("count of Normalization", "2.3-2.15", _translate, ("Normalization",), told=False),
    Rule("invert of Normalization", "2.9-2.13", _invert, ("Normalization",)),
)
