"""Preprocessing of numbers: arguments that were called otherwise, dtypes that Keras 3 asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from savedmodel_migration.keras_2_to_3.refused import Refused
from savedmodel_migration.keras_2_to_3.rules.rule import Layer, Rule

_MODES = {"binary": "multi_hot"}
_DEFAULT_SALT = (
    0xDECAFCAFFE  # TF 2.3 and 2.4 write it where no salt was given, and hash without one
)


def _category_encoding(layer: Layer) -> None:
    config = layer.config
    if "max_tokens" in config:
        config["num_tokens"] = config.pop("max_tokens")
    config["output_mode"] = _MODES.get(
        config.get("output_mode", ""), config.get("output_mode", "multi_hot")
    )
    if config.get("num_tokens") is None:
        raise Refused("the number of tokens is not in its configuration")


def _hashing(layer: Layer) -> None:
    config = layer.config
    if config.get("salt") == [_DEFAULT_SALT, _DEFAULT_SALT]:
        config["salt"] = None
    config["dtype"] = "int64" if config.get("output_mode", "int") == "int" else "float32"


def _discretization(layer: Layer) -> None:
    config = layer.config
    layer.unused = ("summary",)  # of the data it was adapted to
    if "bins" in config:
        config["bin_boundaries"] = config.pop("bins")
    if config.get("bin_boundaries") is not None:
        config.pop("num_bins", None)
    else:
        layer.adapted = _boundaries_of(config.pop("num_bins", None))
    config["dtype"] = (
        # in a graph Keras 3 casts the inputs to it; bins of numbers are integers whatever it is
        "float32"
    )


def _boundaries_of(
    count: Any,
) -> Callable[[Callable[[str], npt.NDArray[Any] | None]], dict[str, Any]]:
    """Return what makes the boundaries of ``count`` bins of the summary of the data."""

    def boundaries(value: Callable[[str], npt.NDArray[Any] | None]) -> dict[str, Any]:
        summary = value("summary")
        if (
            not isinstance(count, int)
            or count < 1
            or summary is None
            or summary.ndim != 2
            or summary.shape[1] == 0
        ):
            raise Refused(
                "it was never adapted, or what it was adapted to is not in the checkpoint"
            )
        found, weights = summary
        if len(found) >= count:
            total = weights.cumsum()
            parts = 1.0 / count + np.arange(0.0, 1.0, 1.0 / count)
            found = np.interp(parts, total / total[-1], found).astype("float32")
        return {"bin_boundaries": [float(item) for item in found[:-1]]}

    return boundaries


def _random_crop(layer: Layer) -> None:
    """Outside of training Keras 3 returns the whole image.

    Keras 2 cuts out its centre and resizes that.

    A crop of training has the right size already, which ``Resizing`` then leaves as it is. Before
    TF 2.9 the whole image was resized and its centre cut out. Only the later graph takes the
    smaller of two sizes.
    """
    if "Minimum" not in layer.ops():
        raise Refused(
            "outside of training it resizes the image and cuts out the centre, and Keras 3 does"
            " neither"
        )
    size: dict[str, object] = {
        name: layer.config.get(name)
        for name in ("height", "width", "data_format")
        if name in layer.config
    }
    name = f"{layer.config.get('name')}_centre"
    layer.after = (
        "Resizing",
        {**size, "crop_to_aspect_ratio": True, "name": name, "dtype": layer.config.get("dtype")},
    )


RULES = (
    Rule("arguments of CategoryEncoding", "2.3-2.15", _category_encoding, ("CategoryEncoding",)),
    Rule("dtype of Hashing", "2.3-2.15", _hashing, ("Hashing", "HashedCrossing"), told=False),
    Rule("bins of Discretization", "2.3-2.15", _discretization, ("Discretization",), told=False),
    Rule("RandomCrop", "2.3-2.15", _random_crop, ("RandomCrop",)),
)
