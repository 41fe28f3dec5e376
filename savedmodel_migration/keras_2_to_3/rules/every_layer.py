"""Arguments of layers of any class: names, shapes, dtypes, activation functions, the state of
random generators.
"""

from __future__ import annotations

from collections.abc import Mapping

from savedmodel_migration.keras_2_to_3.refused import Refused
from savedmodel_migration.keras_2_to_3.rules.rule import Layer, Rule

_POLICIES = ("Policy", "PolicyV1", "DTypePolicy", "LossScalePolicy")
_DTYPES = ("float16", "bfloat16", "float32", "float64", "mixed_float16", "mixed_bfloat16")
_FUNCTIONS = {"softmax_v2": "softmax", "swish": "silu"}
HARD_SIGMOID = (
    "hard_sigmoid of Keras 2"  # clip(0.2 x + 0.5, 0, 1); that of Keras 3 is relu6(x + 3) / 6
)


def _input_shape(layer: Layer) -> None:
    """An InputLayer has ``batch_shape``, other layers get their shape from what they are called
    on.
    """
    shape = layer.config.pop("batch_input_shape", None)
    layer.config.pop("build_input_shape", None)
    if layer.class_name == "InputLayer":
        layer.config.setdefault("batch_shape", shape)
        layer.config.pop("type_spec", None)  # repeats shape and dtype
    elif layer.config.get("batch_shape") is not None:
        del layer.config["batch_shape"]


def _dtype_policy(layer: Layer) -> None:
    """Older releases write other classes of policies, and loss scaling beside."""
    dtype = layer.config.get("dtype")
    if isinstance(dtype, Mapping):
        config = dtype.get("config")
        if dtype.get("class_name") not in _POLICIES or not isinstance(config, Mapping):
            raise Refused(f"the dtype policy {dtype.get('class_name')!r} is not one of Keras")
        dtype = config.get("name")
        if dtype not in _DTYPES and dtype != "_infer":
            raise Refused(f"the dtype policy {dtype!r} is not one of Keras")
        layer.config["dtype"] = dtype
    if dtype == "_infer":  # the dtype of the inputs, which the saved layer knows
        layer.config["dtype"] = layer.metadata.get("dtype") or "float32"
    if dtype is None and "dtype" in layer.config:
        del layer.config["dtype"]


def _activation_functions(layer: Layer) -> None:
    """TensorFlow gave some functions other names; some are other functions in Keras 3."""
    for key in [key for key in layer.config if key.endswith("activation")]:
        value = layer.config[key]
        if (
            isinstance(value, Mapping) and value.get("class_name") == "function"
        ):  # of Keras 2.13 and later
            value = layer.config[key] = value.get("config")
        if isinstance(value, str) and value not in layer.options.custom_objects:
            layer.config[key] = (
                HARD_SIGMOID if value == "hard_sigmoid" else _FUNCTIONS.get(value, value)
            )


def _slashes(layer: Layer) -> None:
    name = layer.config.get("name")
    if isinstance(name, str) and "/" in name:
        layer.config["name"] = name.replace("/", "_")
        layer.notes.append(
            f"the layer {name!r} is called {layer.config['name']!r} now: Keras 3 allows no slash"
        )


def _random_state(layer: Layer) -> None:
    """How Keras 2 keeps the state of its generators is not an argument."""
    for name in ("rng_type", "force_generator", "auto_vectorize"):
        layer.config.pop(name, None)


RULES = (
    Rule("batch_input_shape", "2.0-2.15", _input_shape, told=False),
    Rule("dtype policy", "2.1-2.15", _dtype_policy),
    Rule("names of functions", "2.0-2.15", _activation_functions),
    Rule("slashes in names", "2.0-2.15", _slashes),
    Rule("state of random layers", "2.6-2.15", _random_state, told=False),
)
