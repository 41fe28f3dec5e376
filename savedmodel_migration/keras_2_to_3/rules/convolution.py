"""Convolutions: arguments that a class inherits and does not use."""

from __future__ import annotations

from savedmodel_migration.keras_2_to_3.refused import Refused
from savedmodel_migration.keras_2_to_3.rules.rule import Layer, Rule

_OF_KERNELS = ("SeparableConv1D", "SeparableConv2D", "DepthwiseConv1D", "DepthwiseConv2D")
_UNGROUPED = (
    *(f"Conv{rank}DTranspose" for rank in (1, 2, 3)),
    *_OF_KERNELS,
    *(f"ConvLSTM{rank}D" for rank in (1, 2, 3)),
)
_ALIASES = {
    f"Convolution{kind}": f"Conv{kind}"
    for kind in ("1D", "1DTranspose", "2D", "2DTranspose", "3D", "3DTranspose")
}


def _groups(layer: Layer) -> None:
    if layer.config.pop("groups", 1) not in (1, None):
        raise Refused("groups of a layer that computes none")


def _kernels(layer: Layer) -> None:
    """A separable convolution has a depthwise and a pointwise kernel; arguments about ``kernel`` do
    nothing.
    """
    for what in ("initializer", "regularizer", "constraint"):
        layer.config.pop(f"kernel_{what}", None)
    if layer.class_name.startswith("Depthwise"):
        layer.config.pop("filters", None)


def _name(layer: Layer) -> None:
    layer.class_name = _ALIASES[layer.class_name]


RULES = (
    Rule("groups of convolutions without groups", "2.3-2.15", _groups, _UNGROUPED, told=False),
    Rule("kernel of separable convolutions", "2.0-2.15", _kernels, _OF_KERNELS, told=False),
    Rule("names of convolutions", "2.0-2.15", _name, tuple(_ALIASES)),
)
