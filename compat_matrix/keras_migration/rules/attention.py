"""Attention: shapes that MultiHeadAttention keeps for its restoration, and masks as arguments."""

from __future__ import annotations

from typing import Any

from compat_matrix.keras_migration.rules.rule import Layer, Rule


def _heads(layer: Layer) -> None:
    for name in ("query_shape", "key_shape", "value_shape"):
        layer.config.pop(name, None)
    axes = layer.config.get("attention_axes")
    if isinstance(axes, list):
        layer.config["attention_axes"] = tuple(axes)


def _causal(layer: Layer) -> None:
    """``causal`` was an argument of the layer; now it is one of the call."""
    if layer.config.pop("causal", False):

        def call(first: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
            return first, {**kwargs, "use_causal_mask": True}

        layer.call = call


RULES = (
    Rule("shapes of MultiHeadAttention", "2.4-2.15", _heads, ("MultiHeadAttention",), told=False),
    Rule("causal of Attention", "2.0-2.15", _causal, ("Attention", "AdditiveAttention")),
)
