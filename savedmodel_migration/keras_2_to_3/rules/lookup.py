"""Lookup layers: arguments that were called otherwise, and the vocabulary, which Keras 2 keeps in a
table.
"""

from __future__ import annotations

import itertools

from savedmodel_migration.keras_2_to_3.refused import Refused
from savedmodel_migration.keras_2_to_3.rules.rule import Layer, Lookup, Rule

_LAYERS = ("StringLookup", "IntegerLookup", "TextVectorization")
_OLD = {"max_values": "max_tokens", "mask_value": "mask_token", "oov_value": "oov_token"}
_MODES = {"binary": "multi_hot", "tf-idf": "tf_idf"}
_OWN = ("lookup_table", "_table")
_ENCODER = "_vectorize_layer."  # of TextVectorization in TF 2.3 and 2.4
_IDF = ("idf_weights", "tf_idf_weights")
_COUNTS = (
    "one_hot",
    "multi_hot",
    "count",
)  # Keras 2 makes floats of them, Keras 3 integers, whatever the dtype of the layer
_BELOW = ("_lookup_layer", "_index_lookup_layer")


def _translate(layer: Layer) -> None:
    config = layer.config
    for old, new in _OLD.items():
        if old in config:
            config[new] = config.pop(old)
    for name in ("vocabulary_size", "has_input_vocabulary", "batch_input_shape"):
        config.pop(name, None)
    if config.pop("ragged", False):
        raise Refused("ragged=True: Keras 3 makes dense tensors of texts")
    layer.unused = (
        *_IDF,
        "idf",
        "num_documents",
        "num_elements",
    )  # in the configuration, or read with the vocabulary
    config["output_mode"] = _MODES.get(
        config.get("output_mode", "int"), config.get("output_mode", "int")
    )
    if config.get("max_tokens") is None:
        config["pad_to_max_tokens"] = False
    if layer.class_name == "TextVectorization":
        config.pop("dtype", None)
        if not isinstance(config.get("standardize", ""), (str, type(None))) or not isinstance(
            config.get("split", ""), (str, type(None))
        ):
            raise Refused("a function of its own standardizes or splits the texts")
    elif config["output_mode"] == "int":
        config["dtype"] = "string" if config.get("invert") else "int64"
    else:
        config["dtype"] = "float32"
    if config["output_mode"] in _COUNTS:
        layer.after = (
            "Rescaling",
            {"scale": 1.0, "name": f"{config.get('name')}_float", "dtype": "float32"},
        )
    if isinstance(config.get("ngrams"), list):
        config["ngrams"] = tuple(config["ngrams"])
    vocabulary = config.get("vocabulary")
    if isinstance(vocabulary, (list, tuple)) and vocabulary:
        return
    for name in (
        "vocabulary",
        "idf_weights",
    ):  # a path of a file on the machine of its author, if anything
        config.pop(name, None)
    layer.lookup = _lookup(layer)


def _lookup(layer: Layer) -> Lookup:
    config, text = layer.config, layer.class_name == "TextVectorization"
    below = tuple(f"{part}." for part in _BELOW) if text else ("",)
    mask = "" if text else config.get("mask_token")
    oov = "[UNK]" if text else config.get("oov_token")
    count = 1 if text else config.get("num_oov_indices", 1)
    if not isinstance(count, int):
        raise Refused("num_oov_indices is not a number")
    start = count + (mask is not None and config["output_mode"] == "int")
    token = "int64" if layer.class_name == "IntegerLookup" else "string"
    inverted = bool(config.get("invert"))
    return Lookup(
        tuple(map("".join, itertools.product(below, _OWN))),
        tuple(map("".join, itertools.product((*below, _ENCODER), _IDF))),
        ("int64", token) if inverted else (token, "int64"),
        inverted,
        tuple(item for item in (mask, oov) if item is not None),
        start,
    )


RULES = (
    Rule("arguments and vocabulary of lookup layers", "2.2-2.15", _translate, _LAYERS, told=False),
)
