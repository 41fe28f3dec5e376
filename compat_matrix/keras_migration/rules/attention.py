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
    """``causal`` was an argument of the layer; now it is one of the call.

    TF 2.0 and 2.12 to 2.15 do not write it into the configuration. Only its mask is computed with a cumulative sum.
    """
    causal = layer.config.pop("causal", None)
    if causal or (causal is None and "Cumsum" in layer.ops()):

        def call(first: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
            return first, {**kwargs, "use_causal_mask": True}

        layer.call = call


RULES = (
    Rule("shapes of MultiHeadAttention", "2.4-2.15", _heads, ("MultiHeadAttention",), told=False),
    Rule("causal of Attention", "2.0-2.15", _causal, ("Attention", "AdditiveAttention")),
)
