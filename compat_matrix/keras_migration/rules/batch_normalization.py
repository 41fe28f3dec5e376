"""BatchNormalization: an axis in a list, the argument ``fused``, variants under other names."""

from __future__ import annotations

from compat_matrix.keras_migration.refused import Refused
from compat_matrix.keras_migration.rules.rule import Layer, Rule

_VARIANTS = ("BatchNormalizationV1", "BatchNormalizationV2", "SyncBatchNormalization")


def _variant(layer: Layer) -> None:
    if layer.class_name == "SyncBatchNormalization":
        layer.config["synchronized"] = True
    layer.class_name = "BatchNormalization"


def _arguments(layer: Layer) -> None:
    axis = layer.config.get("axis")
    if isinstance(axis, (list, tuple)):
        if len(axis) != 1:
            raise Refused(f"axis={list(axis)}: Keras 3 normalises over one axis only")
        layer.config["axis"] = axis[0]
    layer.config.pop("fused", None)  # how it is computed, not what
    layer.config.pop("virtual_batch_size", None)
    for name in ("renorm", "renorm_clipping", "renorm_momentum", "adjustment"):
        if layer.config.pop(name, None) and name == "renorm":
            raise Refused("renorm=True: Keras 3 has no batch renormalisation")


RULES = (
    Rule("variants of BatchNormalization", "2.0-2.15", _variant, _VARIANTS),
    Rule("axis of BatchNormalization in a list", "2.0-2.15", _arguments, ("BatchNormalization", *_VARIANTS)),
)
