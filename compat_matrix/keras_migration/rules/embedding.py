"""Embedding: ``input_length`` is not an argument of Keras 3."""

from __future__ import annotations

from compat_matrix.keras_migration.rules.rule import Layer, Rule


def _translate(layer: Layer) -> None:
    layer.config.pop("input_length", None)
    layer.config.pop("sparse", None)


RULES = (Rule("input_length of Embedding", "2.0-2.15", _translate, ("Embedding",), told=False),)
