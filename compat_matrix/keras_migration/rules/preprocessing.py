"""Preprocessing of numbers: arguments that were called otherwise, dtypes that Keras 3 asks for."""

from __future__ import annotations

from compat_matrix.keras_migration.refused import Refused
from compat_matrix.keras_migration.rules.rule import Layer, Rule

_MODES = {"binary": "multi_hot"}


def _category_encoding(layer: Layer) -> None:
    config = layer.config
    if "max_tokens" in config:
        config["num_tokens"] = config.pop("max_tokens")
    config["output_mode"] = _MODES.get(config.get("output_mode", ""), config.get("output_mode", "multi_hot"))
    if config.get("num_tokens") is None:
        raise Refused("the number of tokens is not in its configuration")


def _hashing(layer: Layer) -> None:
    config = layer.config
    config["dtype"] = "int64" if config.get("output_mode", "int") == "int" else "float32"


def _discretization(layer: Layer) -> None:
    config = layer.config
    if "bins" in config:
        config["bin_boundaries"] = config.pop("bins")
    if config.get("bin_boundaries") is not None:
        config.pop("num_bins", None)
    config["dtype"] = "int64" if config.get("output_mode", "int") == "int" else "float32"


def _random_crop(layer: Layer) -> None:
    raise Refused("outside of training Keras 2 cuts out the centre, and Keras 3 nothing")


RULES = (
    Rule("arguments of CategoryEncoding", "2.3-2.15", _category_encoding, ("CategoryEncoding",)),
    Rule("dtype of Hashing", "2.3-2.15", _hashing, ("Hashing", "HashedCrossing"), told=False),
    Rule("bins of Discretization", "2.3-2.15", _discretization, ("Discretization",), told=False),
    Rule("RandomCrop", "2.3-2.15", _random_crop, ("RandomCrop",)),
)
