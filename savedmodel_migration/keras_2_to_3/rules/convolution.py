"""Convolutions: arguments that a class inherits and does not use."""

from __future__ import annotations

from savedmodel_migration.keras_2_to_3.refused import Refused
from savedmodel_migration.keras_2_to_3.rules.rule import Layer, Rule

_UNGROUPED = tuple(
    [f"Conv{rank}DTranspose" for rank in (1, 2, 3)]
    + [f"{kind}Conv{rank}D" for kind in ("Separable", "Depthwise") for rank in (1, 2)]
    + [f"ConvLSTM{rank}D" for rank in (1, 2, 3)]
)
_OF_KERNELS = tuple(f"{kind}Conv{rank}D" for kind in ("Separable", "Depthwise") for rank in (1, 2))
_ALIASES = {
    f"Convolution{rank}D{end}": f"Conv{rank}D{end}"
    for rank in (1, 2, 3)
    for end in ("", "Transpose")
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
