"""Layers that draw at random: how Keras 2 keeps the state of its generators is not an argument."""

from __future__ import annotations

from compat_matrix.keras_migration.rules.rule import Layer, Rule

_STATE = ("rng_type", "force_generator", "auto_vectorize")


def _translate(layer: Layer) -> None:
    for name in _STATE:
        layer.config.pop(name, None)


RULES = (Rule("state of random layers", "2.6-2.15", _translate, told=False),)
