"""Layers of activation functions: ``alpha`` of LeakyReLU is ``negative_slope``; ThresholdedReLU is a ReLU with a threshold."""

from __future__ import annotations

from compat_matrix.keras_migration.rules.rule import Layer, Rule


def _leaky(layer: Layer) -> None:
    if "alpha" in layer.config:
        layer.config["negative_slope"] = layer.config.pop("alpha")


def _thresholded(layer: Layer) -> None:
    layer.class_name = "ReLU"
    layer.config["threshold"] = layer.config.pop("theta", 1.0)
    layer.notes.append("ThresholdedReLU is a ReLU now: an input that equals the threshold exactly is kept, not dropped")


RULES = (
    Rule("alpha of LeakyReLU", "2.0-2.15", _leaky, ("LeakyReLU",)),
    Rule("ThresholdedReLU", "2.0-2.15", _thresholded, ("ThresholdedReLU",)),
)
