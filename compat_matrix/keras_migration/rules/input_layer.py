"""InputLayer: ``sparse`` stays; inputs with ragged rows do not exist in Keras 3."""

from __future__ import annotations

from compat_matrix.keras_migration.refused import Refused
from compat_matrix.keras_migration.rules.rule import Layer, Rule


def _translate(layer: Layer) -> None:
    if layer.config.pop("ragged", False):
        raise Refused("a ragged input: Keras 3's functional models take dense and sparse tensors only")


RULES = (Rule("ragged of InputLayer", "2.1-2.15", _translate, ("InputLayer",), told=False),)
