"""Layers that each differ in an argument or two."""

from __future__ import annotations

from typing import Any

from savedmodel_migration.keras_2_to_3.refused import TRUST_LAMBDA, Refused
from savedmodel_migration.keras_2_to_3.rules.rule import Layer, Rule

_OF_LAMBDA = ("function_type", "module", "output_shape_type", "output_shape_module", "mask")


def _leaky_relu(layer: Layer) -> None:
    if "alpha" in layer.config:
        layer.config["negative_slope"] = layer.config.pop("alpha")


def _thresholded_relu(layer: Layer) -> None:
    layer.class_name = "ReLU"
    layer.config["threshold"] = layer.config.pop("theta", 1.0)
    layer.notes.append(
        "ThresholdedReLU is a ReLU now: an input that equals the threshold exactly is kept, not"
        " dropped"
    )


def _multi_head_attention(layer: Layer) -> None:
    for name in ("query_shape", "key_shape", "value_shape"):  # kept for its restoration
        layer.config.pop(name, None)
    axes = layer.config.get("attention_axes")
    if isinstance(axes, list):
        layer.config["attention_axes"] = tuple(axes)


def _causal(layer: Layer) -> None:
    """``causal`` was an argument of the layer; now it is one of the call.

    TF 2.0 and 2.12 to 2.15 do not write it into the configuration. Only its mask is computed with a
    cumulative sum.
    """
    causal = layer.config.pop("causal", None)
    if causal or (causal is None and "Cumsum" in layer.ops()):

        def call(first: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
            return first, {**kwargs, "use_causal_mask": True}

        layer.call = call


def _embedding(layer: Layer) -> None:
    layer.config.pop("input_length", None)
    layer.config.pop("sparse", None)


def _ragged_input(layer: Layer) -> None:
    if layer.config.pop("ragged", False):
        raise Refused(
            "a ragged input: Keras 3's functional models take dense and sparse tensors only"
        )


def _lambda(layer: Layer) -> None:
    """A Lambda is Python code in the file, as bytecode of the Python that saved it.

    It is run only if the user says so.
    """
    if not layer.options.trust_lambda:
        raise Refused("Python code in the file", fix=TRUST_LAMBDA)
    if layer.config.get("function_type") != "lambda":
        raise Refused("a function of a module that the file does not hold: replace the layer")
    if layer.config.get("output_shape_type", "raw") != "raw":
        raise Refused("a function tells its output shape")
    for name in _OF_LAMBDA:
        layer.config.pop(name, None)


RULES = (
    Rule("alpha of LeakyReLU", "2.0-2.15", _leaky_relu, ("LeakyReLU",)),
    Rule("ThresholdedReLU", "2.0-2.15", _thresholded_relu, ("ThresholdedReLU",)),
    Rule(
        "shapes of MultiHeadAttention",
        "2.4-2.15",
        _multi_head_attention,
        ("MultiHeadAttention",),
        told=False,
    ),
    Rule("causal of Attention", "2.0-2.15", _causal, ("Attention", "AdditiveAttention")),
    Rule("input_length of Embedding", "2.0-2.15", _embedding, ("Embedding",), told=False),
    Rule("ragged of InputLayer", "2.1-2.15", _ragged_input, ("InputLayer",), told=False),
    Rule("Lambda", "2.0-2.15", _lambda, ("Lambda",)),
)
