"""Compile a rebuilt model as the saved one was, and give its optimizer the saved state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from reference_impl.errors import SavedModelError
from reference_impl.format.names import VALUE
from savedmodel_migration.keras_2_to_3.building import tables
from savedmodel_migration.keras_2_to_3.building.cuts import variables_by_key
from savedmodel_migration.keras_2_to_3.reading.saved import NotKeras, SavedKeras
from savedmodel_migration.keras_2_to_3.refused import CUSTOM_OBJECTS, Refused
from savedmodel_migration.keras_2_to_3.rules import training

_SCALED = ("LossScaleOptimizer", "LossScaleOptimizerV3")


def compile_as_saved(
    model: Any, saved: SavedKeras, custom: Mapping[str, Any], variables: Mapping[str, Any]
) -> list[str]:
    """Compile a model that has its weights, and return notes about what Keras 3 has no place for.

    ``custom``: classes and functions that the user named; ``variables``: checkpoint key -> Keras 3
    variable.
    """
    config = saved.root.metadata.get("training_config")
    if not isinstance(config, Mapping):
        return []
    compiler = _Compiler(custom)
    try:
        optimizer = compiler.optimizer(config.get("optimizer_config"))
        model.compile(
            optimizer=optimizer,
            loss=compiler.losses(config.get("loss")),
            metrics=compiler.metrics(
                training.metrics_of(config.get("metrics"), len(model.outputs))
            ),
            weighted_metrics=compiler.metrics(
                training.metrics_of(config.get("weighted_metrics"), len(model.outputs))
            ),
            loss_weights=config.get("loss_weights"),
        )
    except (Refused, ValueError, TypeError, KeyError, AttributeError) as error:
        fix = getattr(error, "fix", "") or "compile it yourself"
        return [f"the model is not compiled: {str(error).splitlines()[0][:300]}; {fix}"]
    return compiler.notes + _said_of_embeddings(model) + _restore(model, saved, variables)


def compile_wrapped(
    model: Any,
    path: str,
    old: Any,
    pairs: Sequence[tuple[str, Any, Any]],
    custom: Mapping[str, Any],
) -> list[str]:
    """Compile a model around a SavedModel as `compile_as_saved` does a rebuilt one, and return
    notes.

    Args:
      model: the new model.
      path: the SavedModel; one that is not of Keras 2 is not compiled.
      old: what `reference_impl.load` returned for it.
      pairs: name, old variable and new variable of each weight.
      custom: classes and functions that the user named, by name.
    """
    try:
        with SavedKeras(path) as saved:
            config = saved.root.metadata.get("training_config")
            if not isinstance(config, Mapping):
                return []
            if isinstance(model.output, Mapping) or any(
                _by_name(config.get(name)) for name in ("loss", "metrics", "loss_weights")
            ):
                return [
                    "the model is not compiled: its outputs have other names now; compile it"
                    " yourself"
                ]
            keys = {id(variable): key for key, variable in variables_by_key(saved, old)}
            views = {keys[id(before)]: view for _, before, view in pairs if id(before) in keys}
            return compile_as_saved(model, saved, custom, views)
    except (NotKeras, SavedModelError):
        return []


def _by_name(told: Any) -> bool:
    """Return whether a configuration has something for each output, by its name."""
    return isinstance(told, Mapping) and "class_name" not in told


def _said_of_embeddings(model: Any) -> list[str]:
    """Say that rows of an Embedding that a batch uses several times train otherwise: no argument
    changes that.
    """
    name = type(model.optimizer).__name__
    embeds = any(
        isinstance(layer, keras.layers.Embedding) and layer.trainable
        for layer in model._flatten_layers()
    )
    if name not in training.SQUARING or not embeds:
        return []
    which = (
        "rows of an Embedding that a batch uses more than once train otherwise in Keras 3 on"
        " TensorFlow"
    )
    return [f"{which}: {name} squares the gradient of each use, that of Keras 2 their sum"]


class _Compiler:
    """Makes optimizers, losses and metrics of Keras 3. Its methods raise Refused."""

    def __init__(self, custom: Mapping[str, Any]) -> None:
        self.custom = custom
        self.notes: list[str] = []

    def optimizer(self, told: Any) -> Any:
        name, config = _object(told, "optimizer")
        if name in _SCALED:  # Keras 3 scales the loss by itself where the policy asks for it
            return self.optimizer(config.get("inner_optimizer", config.get("optimizer")))
        name = name.removeprefix(
            "Custom>"
        )  # Keras 2.11 registered its own there; a class of another package is not Keras'
        cls = tables.public_class("optimizers", name)
        if cls is None or not issubclass(cls, keras.optimizers.Optimizer):
            raise Refused(f"Keras 3 has no optimizer {name!r}")
        arguments, decay, notes = training.optimizer_config(name, config)
        self.notes += notes
        rate = arguments.get("learning_rate", 0.001)
        if isinstance(rate, Mapping):
            arguments["learning_rate"] = self._schedule(rate)
        elif decay:
            arguments["learning_rate"] = keras.optimizers.schedules.InverseTimeDecay(
                rate, decay_steps=1, decay_rate=decay
            )
        return cls(**arguments)

    def _schedule(self, told: Any) -> Any:
        name, config = _object(told, "learning rate")
        cls = tables.public_class("optimizers.schedules", name)
        if cls is None or not issubclass(cls, keras.optimizers.schedules.LearningRateSchedule):
            raise Refused(f"Keras 3 has no schedule {name!r}")
        return cls(**{key: value for key, value in config.items() if value is not None})

    def losses(self, told: Any) -> Any:
        return _each(
            told,
            lambda one: self._loss_or_metric(
                "losses", keras.losses.Loss, one, training.loss_config
            ),
        )

    def metrics(self, told: Any) -> Any:
        return _each(told, self._metric)

    def _metric(self, told: Any) -> Any:
        if isinstance(told, Mapping) and told.get("class_name") == "MeanMetricWrapper":
            function, name = (
                self._function("metrics", told["config"].get("fn")),
                told["config"].get("name"),
            )
            if name in self.custom:  # Keras takes a name in a file for the object of that name
                return function
            return keras.metrics.MeanMetricWrapper(function, name=name)
        return self._loss_or_metric("metrics", keras.metrics.Metric, told, dict)

    def _loss_or_metric(self, kind: str, base: type, told: Any, translate: Any) -> Any:
        if isinstance(told, str):
            return (
                told
                if told in ("accuracy", "acc", "crossentropy", "ce")
                else self._function(kind, told)
            )
        name, config = _object(told, kind)
        name = tables.own(name, self.custom)
        if name == "function":
            return self._function(kind, told.get("config"))
        cls = self.custom.get(name) or tables.public_class(kind, name)
        if cls is None or not (name in self.custom or issubclass(cls, base)):
            raise Refused(f"Keras 3 has no {name!r} among its {kind}", fix=CUSTOM_OBJECTS)
        known, _ = tables.arguments(cls)
        return cls(
            **{
                key: value
                for key, value in translate(config).items()
                if key in known and key != "dtype"
            }
        )

    def _function(self, kind: str, name: Any) -> Any:
        if isinstance(name, Mapping):
            name = name.get("config")
        if not isinstance(name, str):
            raise Refused(f"one of its {kind} is not a function of Keras")
        name = tables.own(name, self.custom)
        name = name if name in self.custom else training.ALIASES.get(name.lower(), name)
        if name in self.custom:
            return self.custom[name]
        for module in (getattr(keras, kind), keras.losses, keras.metrics):
            found = vars(module).get(name)
            if (
                callable(found)
                and not name.startswith("_")
                and name not in ("get", "serialize", "deserialize")
            ):
                return found() if isinstance(found, type) else found
        raise Refused(f"Keras 3 has no function {name!r} among its {kind}", fix=CUSTOM_OBJECTS)


def _each(told: Any, make: Callable[[Any], Any]) -> Any:
    """Return a nest of losses or metrics with what is made of each; None stays."""
    if _by_name(told):
        return {name: _each(item, make) for name, item in told.items()}
    if isinstance(told, (list, tuple)):
        return [_each(item, make) for item in told]
    return None if told is None else make(told)


def _object(told: Any, what: str) -> tuple[str, Mapping[str, Any]]:
    if not isinstance(told, Mapping) or not isinstance(told.get("config"), (Mapping, str)):
        raise Refused(f"its {what} is not an object of Keras")
    return str(told.get("class_name")), told["config"]


def _restore(model: Any, saved: SavedKeras, variables: Mapping[str, Any]) -> list[str]:
    """Give the optimizer the saved state, and return a note where that cannot be done."""
    children = saved.children(0)
    if "optimizer" not in children:
        return []
    node, optimizer = (
        children["optimizer"],
        getattr(model.optimizer, "inner_optimizer", model.optimizer),
    )
    optimizer.build(model.trainable_variables)
    places = {id(variable): place for place, variable in enumerate(model.trainable_variables)}
    slots = training.slots_of(type(optimizer).__name__)
    left = 0
    for slot, key, value in [*_slots(saved, node), *_listed(saved, node)]:
        place, array = places.get(id(variables.get(key))), saved.value(value)
        targets = getattr(optimizer, slots.get(slot, "-"), None)
        if place is not None and targets and tuple(targets[place].shape) == tuple(array.shape):
            targets[place].assign(np.array(array))
        elif (
            targets != []
        ):  # an empty list: without momentum SGD keeps gradients in Keras 2, which it never reads
            left += 1
    for name in ("_u_product",):
        product = saved.variable_at("optimizer", (name,))
        if product is not None and isinstance(getattr(optimizer, name, None), keras.Variable):
            getattr(optimizer, name).assign(np.array(product))
    step = saved.variable_at("optimizer", ("iter", "_iterations"))
    if step is not None:
        optimizer.iterations.assign(int(step))
    rate = saved.variable_at(
        "optimizer", ("learning_rate", "_learning_rate", "_current_learning_rate")
    )
    if rate is not None and isinstance(optimizer._learning_rate, keras.Variable):
        optimizer.learning_rate = float(rate)
    return (
        [f"{left} values of the optimizer's state are not kept: Keras 3 has no place for them"]
        if left
        else []
    )


def _slots(saved: SavedKeras, node: int) -> Iterator[tuple[str, str, str]]:
    """Yield slot, checkpoint key of its variable, and checkpoint key of its value, for optimizers
    before 2.11.
    """
    for slot in saved.nodes[node].slot_variables:
        key = saved.keys.get(slot.original_variable_node_id, {}).get(VALUE)
        value = saved.keys.get(slot.slot_variable_node_id, {}).get(VALUE)
        if key is not None and value is not None:
            yield slot.slot_name, key, value


def _listed(saved: SavedKeras, node: int) -> Iterator[tuple[str, str, str]]:
    """Yield the same for optimizers since 2.11, which list all variables: ``SGD/m/dense/bias`` is a
    slot of ``dense/bias``.
    """
    children = saved.children(node)
    if "_variables" not in children:
        return
    keys: dict[
        str, list[str]
    ] = {}  # of the variables with a name, as the optimizer has them in order
    for number in dict.fromkeys(
        [*_items(saved, 0, "trainable_variables"), *_items(saved, 0, "variables")]
    ):
        key = saved.keys.get(number, {}).get(VALUE)
        if key is not None:
            keys.setdefault(saved.nodes[number].variable.name, []).append(key)
    seen = Counter[str]()
    for number in _items(saved, node, "_variables"):
        value, name = saved.keys.get(number, {}).get(VALUE), saved.nodes[number].variable.name
        parts = name.split("/")
        at = next((at for at, part in enumerate(parts[:2]) if part in training.SLOT_NAMES), None)
        if value is None or at is None:
            continue
        known = keys.get("/".join(parts[at + 1 :]), [])
        yield parts[at], known[seen[name]] if seen[name] < len(known) else "", value
        seen[name] += 1


def _items(saved: SavedKeras, node: int, attribute: str) -> list[int]:
    """Return the numbers of the nodes in the list that a node has as an attribute."""
    found = saved.children(node).get(attribute)
    children = saved.children(found) if found is not None else {}
    return [number for name, number in sorted(children.items(), key=_place) if name.isdigit()]


def _place(item: tuple[str, int]) -> int:
    return int(item[0]) if item[0].isdigit() else -1
