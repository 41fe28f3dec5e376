"""Attacks in the configuration of a Keras 2 model, for `migrate --to keras`.

Needs neither Keras nor TensorFlow.

The model under attack is functional: an input of 4 numbers, ``Dense(3)`` with the name ``dense``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reference_impl.format import schema

Change = Callable[
    [dict[str, Any], dict[str, Any]], None
]  # of the metadata of the model, the entry of its Dense layer


@dataclass(frozen=True)
class Attack:
    """A change of the configuration.

    Attributes:
      told: what it tries, for the page.
      change: do it.
      refused: a part of the reason that the record must give.
    """

    told: str
    change: Change
    refused: str


def _layer(class_name: str, **config: Any) -> Change:
    """Put another layer in place of the Dense layer."""
    return lambda model, entry: entry.update(
        class_name=class_name, config={"name": "dense", **config}
    )


def _config(**config: Any) -> Change:
    """Give the Dense layer other arguments."""
    return lambda model, entry: entry["config"].update(config)


def _nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {"class_name": "Dense", "config": {"name": "last", "units": 3}}
    for number in range(depth):
        found = {
            "class_name": "TimeDistributed",
            "config": {"name": f"nested_{number}", "layer": found},
        }
    return found


def _nested_wrappers(model: dict[str, Any], entry: dict[str, Any]) -> None:
    entry.update(class_name="TimeDistributed", config={"name": "dense", "layer": _nested(200)})


def _nested_lists(model: dict[str, Any], entry: dict[str, Any]) -> None:
    found: list[Any] = []
    for _ in range(200):
        found = [found]
    entry["config"]["units"] = found


def _its_own_input(model: dict[str, Any], entry: dict[str, Any]) -> None:
    entry["inbound_nodes"] = [[["dense", 0, 0, {}]]]


def _input_of(*shape: Any) -> Change:
    def change(model: dict[str, Any], entry: dict[str, Any]) -> None:
        for layer in model["config"]["layers"]:
            if layer["class_name"] == "InputLayer":
                layer["config"]["batch_input_shape"] = list(shape)

    return change


_CODE = ["4wEA", None, None]
_SYSTEM = {"class_name": "system", "module": "os", "config": {"command": "touch {place}"}}
_LAMBDA = {
    "class_name": "Lambda",
    "config": {"name": "code", "function": _CODE, "function_type": "lambda"},
}

ATTACKS: Mapping[str, Attack] = {
    "a_saved_model_elsewhere": Attack(
        "a layer that loads a SavedModel of the machine",
        _layer("TFSMLayer", filepath="/etc"),
        "Keras 3 has no layer 'TFSMLayer'",
    ),
    "a_layer_of_hub": Attack(
        "a layer of TensorFlow Hub that downloads a model",
        _layer("KerasLayer", handle="https://h.example/m"),
        "no layer 'KerasLayer'",
    ),
    "a_class_of_a_module": Attack(
        "a class with the name of a function of a module",
        _layer("os>system", module="os", command="touch {place}"),
        "os>system",
    ),
    "a_dotted_class": Attack(
        "a class by its dotted name",
        _layer("keras.src.utils.io_utils.print_msg"),
        "Keras 3 has no layer",
    ),
    "a_private_class": Attack(
        "a name with underscores", _layer("__builtins__"), "Keras 3 has no layer"
    ),
    "an_activation_of_a_module": Attack(
        "an activation function of a module",
        _config(activation={"class_name": "function", "module": "os", "config": "system"}),
        "no activation function",
    ),
    "an_initializer_of_a_module": Attack(
        "an initializer that is a function of a module",
        _config(kernel_initializer=_SYSTEM),
        "Keras 3 has no kernel_initializer",
    ),
    "a_constraint_of_a_module": Attack(
        "a constraint that is a function of a module",
        _config(kernel_constraint=_SYSTEM),
        "Keras 3 has no kernel_constraint",
    ),
    "a_dtype_policy_of_a_module": Attack(
        "a dtype policy of a module",
        _config(dtype={**_SYSTEM, "config": {"name": "touch {place}"}}),
        "dtype",
    ),
    "code_in_a_lambda": Attack(
        "bytecode in a Lambda layer",
        _layer("Lambda", function=_CODE, function_type="lambda"),
        "Python code",
    ),
    "code_in_a_wrapper": Attack(
        "bytecode in a Lambda layer in a wrapper",
        _layer("TimeDistributed", layer=_LAMBDA),
        "Python code",
    ),
    "code_by_name": Attack(
        "a Lambda layer that names a function of a module",
        _layer(
            "Lambda",
            function="system",
            function_type="function",
            module="os",
            arguments={"command": "touch {place}"},
        ),
        "Python code",
    ),
    "an_op_that_writes": Attack(
        "an operation that writes a file",
        _layer("TFOpLambda", function="io.write_file", contents="x"),
        "tf.io.write_file has no counterpart",
    ),
    "an_op_that_runs_python": Attack(
        "an operation that runs Python",
        _layer("TFOpLambda", function="py_function"),
        "tf.py_function has no counterpart",
    ),
    "a_node_that_writes": Attack(
        "a node of a graph that writes a file",
        _layer(
            "TensorFlowOpLayer",
            node_def=json.dumps({"name": "x", "op": "WriteFile", "input": ["a", "b"]}),
            constants={},
        ),
        "WriteFile has no counterpart",
    ),
    "a_vocabulary_of_the_machine": Attack(
        "a vocabulary file of the machine",
        _layer("StringLookup", vocabulary="/etc/passwd"),
        "vocabulary",
    ),
    "a_matrix_larger_than_memory": Attack(
        "more weights than memory holds",
        _config(units=10**13),
        "more weights than the checkpoint holds",
    ),
    "a_vector_repeated_for_ever": Attack(
        "an answer larger than memory, without weights",
        _layer("RepeatVector", n=10**12),
        "more than memory holds",
    ),
    "numbers_from_nothing": Attack(
        "another number of elements",
        _layer("Reshape", target_shape=[2**20, 2**20]),
        "must be unchanged",
    ),
    "a_code_of_many_tokens": Attack(
        "one-hot tokens larger than memory",
        _layer("CategoryEncoding", num_tokens=10**12, output_mode="multi_hot"),
        "more than memory holds",
    ),
    "an_input_larger_than_memory": Attack(
        "an input larger than memory", _input_of(None, 10**12), "checkpoint holds"
    ),
    "a_shape_of_words": Attack(
        "an input whose shape is not of numbers", _input_of("../../etc", {}), "entry"
    ),
    "a_negative_shape": Attack(
        "an input of negative size", _input_of(None, -4), "Negative dimensions"
    ),
    "wrappers_in_wrappers": Attack("wrappers of layers, 200 deep", _nested_wrappers, "dense"),
    "lists_in_lists": Attack("an argument of lists, 200 deep", _nested_lists, "dense"),
    "brackets_without_an_end": Attack(
        "100,000 brackets", _config(units="{brackets}"), "nested too deeply"
    ),
    "a_layer_that_waits_for_itself": Attack(
        "a layer that is its own input", _its_own_input, "wait for each other"
    ),
    "a_number_of_another_type": Attack(
        "a layer in place of a number",
        _config(units={"class_name": "Dense", "config": {}}),
        "dense",
    ),
}


def attack(folder: Path, name: str, place: Path) -> None:
    """Change the configuration of the model in ``folder``; ``place`` is a file that an attack would
    make.
    """
    path = folder / "keras_metadata.pb"
    metadata = schema.parse(schema.KerasMetadata, path.read_bytes())
    root = next(item for item in metadata.nodes if item.node_id == 0)
    found = json.loads(root.metadata)
    for model in _models(found):
        entry = next(item for item in model["config"]["layers"] if item["name"] == "dense")
        ATTACKS[name].change(model, entry)
    text = json.dumps(found).replace("{place}", str(place))
    root.metadata = text.replace('"{brackets}"', "[" * 100_000 + "]" * 100_000)
    path.write_bytes(metadata.SerializeToString())


def _models(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the places where the metadata of a model has its configuration."""
    yield found
    yield found["model_config"]
