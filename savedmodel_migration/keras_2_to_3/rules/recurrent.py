"""Recurrent layers: arguments that Keras 3 does not have, and the layers of cuDNN."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from savedmodel_migration.keras_2_to_3.refused import Refused
from savedmodel_migration.keras_2_to_3.rules.rule import Layer, Rule

_LAYERS = (
    "LSTM",
    "GRU",
    "SimpleRNN",
    "RNN",
    "ConvLSTM1D",
    "ConvLSTM2D",
    "ConvLSTM3D",
    "Bidirectional",
)
_CELLS = ("LSTMCell", "GRUCell", "SimpleRNNCell")


def _arguments(layer: Layer) -> None:
    layer.config.pop("implementation", None)  # how a step is computed, not what
    layer.config.pop("ragged", None)
    if layer.config.pop("time_major", False):
        raise Refused("time_major=True: recurrent layers of Keras 3 take batches first")
    if layer.class_name == "GRU" and "reset_after" not in layer.config:
        layer.config["reset_after"] = False  # the default of the class in TF 1.x


def _initial_state(layer: Layer) -> None:
    """Keras 2 lists tensors of the initial state behind the input; in Keras 3 they have an argument
    of their own.
    """

    def call(first: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if isinstance(first, list):
            return first[0], {**kwargs, "initial_state": first[1] if len(first) == 2 else first[1:]}
        return first, kwargs

    layer.call = call


def _flavour(layer: Layer) -> None:
    """LSTM and GRU of TF 1.x are written under other names by some releases."""
    layer.class_name = layer.class_name.removesuffix("V1").removesuffix("V2")


def _cudnn(layer: Layer) -> None:
    gru = layer.class_name == "CuDNNGRU"
    layer.class_name = "GRU" if gru else "LSTM"
    layer.config.pop("go_forward", None)
    if gru:
        layer.config["reset_after"] = True
    gates = 3 if gru else 4

    def weights(values: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        bias = values.get("bias")
        if bias is not None and bias.ndim == 1 and bias.size % (2 * gates) == 0:
            halves = bias.reshape(2, -1)
            values = {**values, "bias": halves if gru else np.sum(halves, axis=0, dtype=bias.dtype)}
        return {f"cell.{name}": value for name, value in values.items()}

    layer.weights = weights


RULES = (
    Rule("initial state among the inputs", "2.0-2.15", _initial_state, _LAYERS, told=False),
    Rule("LSTM and GRU of TF 1.x", "2.0-2.15", _flavour, ("LSTMV1", "LSTMV2", "GRUV1", "GRUV2")),
    Rule("arguments of recurrent layers", "2.0-2.15", _arguments, (*_LAYERS, *_CELLS)),
    Rule("layers of cuDNN", "2.0-2.15", _cudnn, ("CuDNNLSTM", "CuDNNGRU")),
)
