"""Layers that normalize: axes in a list, arguments about how it is computed, variants under other
names.
"""

from __future__ import annotations

from savedmodel_migration.keras_2_to_3.refused import Refused
from savedmodel_migration.keras_2_to_3.rules.rule import Layer, Rule

_VARIANTS = ("BatchNormalizationV1", "BatchNormalizationV2", "SyncBatchNormalization")


def _variant(layer: Layer) -> None:
    if layer.class_name == "SyncBatchNormalization":
        layer.config["synchronized"] = True
    layer.class_name = "BatchNormalization"


def _batch_normalization(layer: Layer) -> None:
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


def _layer_normalization(layer: Layer) -> None:
    axis = layer.config.get("axis")
    if isinstance(axis, (list, tuple)):
        layer.config["axis"] = axis[0] if len(axis) == 1 else list(axis)


def _normalization(layer: Layer) -> None:
    layer.unused = (
        "count",
        "adapt_mean",
        "adapt_variance",
    )  # of what was adapted: they change no answer
    axis = layer.config.get("axis")
    if isinstance(axis, list):
        layer.config["axis"] = tuple(axis)
    layer.config.pop("streaming", None)


def _invert(layer: Layer) -> None:
    """Read ``invert``, which TF 2.12 does not write, from the graph: only the way back multiplies,
    only the other one divides.
    """
    ops = frozenset() if "invert" in layer.config else layer.ops()
    if "Mul" in ops and "RealDiv" not in ops:
        layer.config["invert"] = True


RULES = (
    Rule("variants of BatchNormalization", "2.0-2.15", _variant, _VARIANTS),
    Rule(
        "axis of BatchNormalization in a list",
        "2.0-2.15",
        _batch_normalization,
        ("BatchNormalization", *_VARIANTS),
    ),
    Rule(
        "axis of LayerNormalization in a list",
        "2.0-2.15",
        _layer_normalization,
        ("LayerNormalization", "UnitNormalization"),
    ),
    Rule("count of Normalization", "2.3-2.15", _normalization, ("Normalization",), told=False),
    Rule("invert of Normalization", "2.9-2.13", _invert, ("Normalization",)),
)
