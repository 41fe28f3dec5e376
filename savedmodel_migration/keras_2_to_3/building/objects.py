"""Layers and their parts, made of translated configurations."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras

from savedmodel_migration.keras_2_to_3.building import tables
from savedmodel_migration.keras_2_to_3.building.lambda_code import function_of
from savedmodel_migration.keras_2_to_3.refused import CUSTOM_OBJECTS, Refused
from savedmodel_migration.keras_2_to_3.rules import (
    Layer,
    Options,
    every_layer,
    keras_2,
    translate,
)

_NESTED = ("layer", "cell", "cells", "backward_layer")  # arguments that hold layers
_PARTS = ("initializer", "regularizer", "constraint")
_ADDED = ("Exception encountered when calling", "Could not automatically infer the output shape")


def original(error: BaseException) -> BaseException:
    """Return the error that Keras copied, with a longer message, into this one: the call, its
    arguments, advice to an author.
    """
    while error.__context__ is not None and any(text in str(error)[:100] for text in _ADDED):
        error = error.__context__
    return error


def hard_sigmoid() -> Any:
    """Return Keras 2's ``clip(0.2 x + 0.5, 0, 1)`` as layers, which any Keras 3 can load; its own
    function is another one.
    """
    return keras.Sequential(
        [keras.layers.Rescaling(0.2, 0.5), keras.layers.ReLU(max_value=1.0)], name="hard_sigmoid"
    )


class Maker:
    """Makes layers; ``vocabulary`` returns the arguments of a lookup layer that are not in its
    configuration.

    ``release``: the TensorFlow that saved the model.
    """

    def __init__(
        self,
        custom: Mapping[str, Any],
        options: Options,
        network: Callable[[str, Mapping[str, Any]], Any],
        vocabulary: Callable[[Layer], dict[str, Any]],
        release: str = "",
    ) -> None:
        self.custom, self.options, self._network, self.vocabulary = (
            custom,
            options,
            network,
            vocabulary,
        )
        self.release = release
        self.applied: dict[str, list[str]] = {}  # what rules did, by layer
        self._followers: dict[str, Any] = {}
        self.notes: list[str] = []  # what the user should know

    def translated(
        self,
        class_name: str,
        config: Mapping[str, Any],
        metadata: Mapping[str, Any],
        path: str,
        ops: Callable[[], frozenset[str]] = frozenset,
    ) -> Layer:
        """Return the configuration of a layer with all rules applied. Raises Refused."""
        layer = Layer(class_name, dict(config), metadata, path, self.options, ops=ops)
        label = layer.label
        layer.class_name = tables.own(class_name, self.custom)
        with self.at(label, path):
            if layer.class_name not in self.custom:
                if isinstance(vars(keras.layers).get(layer.class_name), type) and not keras_2.had(
                    layer.class_name, self.release
                ):
                    reason = (
                        f"Keras 2 of TensorFlow {self.release} had no layer {layer.class_name!r}:"
                        " it is a class of its own"
                    )
                    raise Refused(reason, fix=CUSTOM_OBJECTS)
                applied = translate(layer)
                if applied:
                    self.applied[label] = applied
        self.notes += layer.notes
        return layer

    @contextlib.contextmanager
    def at(self, label: str, path: str) -> Iterator[None]:
        """Give refusals, and errors of Keras, the layer they are about."""
        try:
            yield
        except Refused as error:
            raise error.at(label, path) from None
        except (
            ValueError,
            TypeError,
            NotImplementedError,
            KeyError,
            IndexError,
            AttributeError,
            OverflowError,
        ) as error:
            first = (str(original(error)).strip().splitlines() or [type(error).__name__])[0]
            raise Refused(f"Keras 3 refuses it: {first[:300]}", label, path) from error

    def layer(self, told: Layer) -> Any:
        """Make the layer of a translated configuration. Raises Refused."""
        with self.at(told.label, told.path):
            if told.class_name in self.custom:
                return self._custom(told)
            if told.class_name == "Lambda":  # its rule has asked whether the file is trusted
                return self._lambda(told)
            cls = tables.layer_classes().get(told.class_name)
            if cls is None:
                raise Refused(f"Keras 3 has no layer {told.class_name!r}", fix=CUSTOM_OBJECTS)
            arguments = {**self._arguments(cls, told), **self.vocabulary(told)}
            trainable = arguments.pop(
                "trainable", told.config.get("trainable")
            )  # not every class has the argument
            made = cls(**arguments)
            if trainable is False:
                made.trainable = False
            return made

    def follow(self, told: Layer, made: Any) -> None:
        """Put a model behind each call of a layer."""
        self._followers[made.name], told.after = made, (type(made).__name__, {"name": made.name})

    def has_function(self, name: str) -> bool:
        """Return whether an activation function is one of Keras 3, or of the user."""
        return (
            tables.own(name, self.custom) in self.custom
            or name == every_layer.HARD_SIGMOID
            or name in tables.functions()
        )

    def followers(self, told: Layer | None) -> list[Any]:
        """Return the layers that must take what the layer of a configuration returns: one or none,
        the same in each call.
        """
        if told is None or told.after is None:
            return []
        name, config = told.after
        if config["name"] not in self._followers:
            self._followers[config["name"]] = self.layer(Layer(name, dict(config)))
        return [self._followers[config["name"]]]

    def followed(self, answer: Any, told: Layer | None) -> Any:
        """Return what a layer returned, after the layer that must follow it."""
        for more in self.followers(told):
            answer = more(answer)
        return answer

    def _lambda(self, told: Layer) -> Any:
        shape = told.config.get("output_shape")
        function = function_of(told.config.get("function"), told.path)
        self.notes.append(f"{told.label} holds Python code: load the file with safe_mode=False")
        return keras.layers.Lambda(
            function,
            output_shape=tuple(shape) if shape else None,
            arguments=dict(told.config.get("arguments") or {}),
            name=told.config.get("name"),
            dtype=told.config.get("dtype"),
        )

    def _custom(self, told: Layer) -> Any:
        cls = self.custom[told.class_name]
        config = {key: self._value(key, value, told) for key, value in told.config.items()}
        for name in ("batch_input_shape",):
            config.pop(name, None)
        return cls.from_config(config) if hasattr(cls, "from_config") else cls(**config)

    def _arguments(self, cls: type, told: Layer) -> dict[str, Any]:
        names, more = tables.arguments(cls)
        names |= {"name", "dtype", "trainable", "activity_regularizer"} if more else set()
        found = {}
        for key, value in told.config.items():
            if key in names:
                found[key] = self._value(key, value, told)
            elif value is not None and value is not False and key != "trainable":
                raise Refused(f"Keras 3 has no argument {key}={value!r}"[:300])
        return found

    def _value(self, key: str, value: Any, told: Layer) -> Any:
        if key.endswith("activation"):
            return self._function(value)
        if isinstance(value, list) and key in _NESTED:
            return [self._value(key, item, told) for item in value]
        if isinstance(value, str) and key.endswith(_PARTS):
            return self._part_by_name(value)
        if not isinstance(value, Mapping) or "class_name" not in value:
            return value
        name, config = value["class_name"], value.get("config")
        if not isinstance(name, str) or not isinstance(config, Mapping):
            raise Refused(f"the argument {key} is not an object of Keras")
        if key in _NESTED:
            return self._nested(key, name, config, told)
        return self._part(key, name, config)

    def _nested(self, key: str, name: str, config: Mapping[str, Any], told: Layer) -> Any:
        if "layers" in config and name not in self.custom:
            return self._network(name, config)
        return self.layer(self.translated(name, config, {}, f"{told.path}.{key}"))

    def _function(self, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, Mapping):
            name, config = value.get("class_name"), value.get("config")
            cls = tables.layer_classes().get(str(name))
            if cls is not None and isinstance(config, Mapping):  # a layer as an activation
                return self.layer(self.translated(str(name), config, {}, ""))
        else:
            name = value
        if (own := tables.own(str(name), self.custom)) in self.custom:
            return self.custom[own]
        if name == every_layer.HARD_SIGMOID:
            return hard_sigmoid()
        if str(name) not in tables.functions():
            raise Refused(f"Keras 3 has no activation function {name!r}"[:200], fix=CUSTOM_OBJECTS)
        return tables.functions()[str(name)]

    def _part(self, key: str, name: str, config: Mapping[str, Any]) -> Any:
        if (own := tables.own(name, self.custom)) in self.custom:
            cls = self.custom[own]
            return cls.from_config(dict(config)) if hasattr(cls, "from_config") else cls(**config)
        found = tables.parts().get(name)
        if found is None:
            raise Refused(f"Keras 3 has no {key} {name!r}"[:200], fix=CUSTOM_OBJECTS)
        names, _ = tables.arguments(found)
        config = {
            key: value for key, value in config.items() if key in names
        }  # dtype and partitions of TF 1.x
        return found(
            **{
                key: self._function(value) if key == "fn" else value
                for key, value in config.items()
            }
        )

    def _part_by_name(self, name: str) -> Any:
        if (own := tables.own(name, self.custom)) in self.custom:
            return self.custom[own]
        for module in (keras.initializers, keras.regularizers, keras.constraints):
            found = vars(module).get(name)
            if found is not None and found in tables.parts().values():
                return found()
        camel = "".join(word.capitalize() for word in name.split("_"))
        if camel in tables.parts():
            return tables.parts()[camel]()
        raise Refused(f"Keras 3 knows no {name!r}"[:200], fix=CUSTOM_OBJECTS)
