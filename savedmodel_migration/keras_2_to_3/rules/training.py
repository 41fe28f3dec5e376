"""Compile information: optimizers, losses and metrics whose arguments or slots had other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_STATE_OF_SAVING = ("is_legacy_optimizer", "jit_compile", "name_scope")
# Slot of Keras 2 -> the optimizer's list of variables in Keras 3.
SLOTS: Mapping[str, Mapping[str, str]] = {
    "Adam": {"m": "_momentums", "v": "_velocities", "vhat": "_velocity_hats"},
    "AdamW": {"m": "_momentums", "v": "_velocities", "vhat": "_velocity_hats"},
    "Nadam": {"m": "_momentums", "v": "_velocities"},
    "Adamax": {"m": "_m", "v": "_u", "u": "_u"},
    "SGD": {"momentum": "momentums", "m": "momentums"},
    "RMSprop": {
        "rms": "_velocities",
        "velocity": "_velocities",
        "momentum": "_momentums",
        "mg": "_average_gradients",
    }
    | {"average_gradient": "_average_gradients"},
    "Adagrad": {"accumulator": "_accumulators"},
    "Adadelta": (
        {"accum_grad": "_accumulated_grads", "accum_var": "_accumulated_delta_vars"}
        | {
            "accumulated_grad": "_accumulated_grads",
            "accumulated_delta_var": "_accumulated_delta_vars",
        }
    ),
    "Ftrl": {"accumulator": "_accumulators", "linear": "_linears"},
    "Lion": {"m": "_momentums"},
    "Adafactor": {"r": "_r", "c": "_c", "v": "_v"},
}
_AVERAGE = {"average": "_model_variables_moving_average"}  # of an optimizer with use_ema
SLOT_NAMES = frozenset(_AVERAGE).union(*SLOTS.values())
# Short and former names of losses and metrics.
ALIASES: Mapping[str, str] = {
    "mse": "mean_squared_error",
    "mae": "mean_absolute_error",
    "mape": "mean_absolute_percentage_error",
    "msle": "mean_squared_logarithmic_error",
    "kld": "kl_divergence",
    "kullback_leibler_divergence": "kl_divergence",
    "bce": "binary_crossentropy",
    "logcosh": "log_cosh",
}
# Optimizers whose class before 2.11 divides by sqrt(v) + epsilon. Keras 3 divides by sqrt(v +
# epsilon), which is the same with the square of epsilon, but for gradients of its size. With
# momentum, RMSprop has always added it below the root.
_EPSILON = ("RMSprop", "Adagrad")
# They square gradients, and on TensorFlow Keras 3 squares that of each use of a row of an
# Embedding, not their sum.
SQUARING = (
    "Adam",
    "AdamW",
    "Nadam",
    "Adamax",
    "RMSprop",
    "Adagrad",
    "Adadelta",
    "Ftrl",
    "Adafactor",
)


def slots_of(name: str) -> Mapping[str, str]:
    """Return slot of Keras 2 -> the optimizer's list of variables in Keras 3, for the optimizer of
    a name.
    """
    return {**SLOTS.get(name, {}), **_AVERAGE}


def optimizer_config(
    name: str, config: Mapping[str, Any]
) -> tuple[dict[str, Any], float, list[str]]:
    """Return the arguments of the optimizer of Keras 3, the decay that needs a schedule, and
    notes.
    """
    found = {key: value for key, value in config.items() if key not in _STATE_OF_SAVING}
    decay = found.pop("decay", 0.0) or 0.0
    if found.get("ema_overwrite_frequency", 0) in (None, 0):
        found.pop("ema_overwrite_frequency", None)
    notes = []
    before_2_11 = "decay" in config
    epsilon = found.get("epsilon")
    if (
        before_2_11
        and name in _EPSILON
        and isinstance(epsilon, (int, float))
        and not found.get("momentum")
    ):
        found["epsilon"] = float(epsilon) ** 2
        notes.append(f"epsilon of {name} is squared: Keras 3 adds it below the root")
    if before_2_11 and name == "Nadam":
        decay = 0.0  # of its momentum, not of the learning rate
        notes.append(
            "Nadam of Keras 3 raises its momentum in another schedule: the first steps differ from"
            " those of Keras 2"
        )
    return found, float(decay), notes


def loss_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a loss: ``auto`` has a name of its own in Keras 3."""
    found = {key: value for key, value in config.items() if key != "fn"}
    if found.get("reduction") == "auto":
        found["reduction"] = "sum_over_batch_size"
    return found


def metrics_of(metrics: Any, outputs: int) -> Any:
    """Return metrics in the nest that Keras 3 takes.

    Keras 2 writes a list in a list for a single output, and ``[None]`` for an output without
    metrics.
    """
    if not isinstance(metrics, list):
        return metrics
    if outputs == 1 and len(metrics) == 1 and isinstance(metrics[0], list):
        return metrics[0]
    return [None if item == [None] else item for item in metrics]
