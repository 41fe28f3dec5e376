"""Sequential and functional models, made of the configurations of Keras 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from compat_matrix.keras_migration.building.assign import assign
from compat_matrix.keras_migration.building.calls import Calls
from compat_matrix.keras_migration.building.objects import Maker
from compat_matrix.keras_migration.building.vocabulary import Tables, vocabulary_of
from compat_matrix.keras_migration.reading.saved import SavedKeras, SavedObject
from compat_matrix.keras_migration.refused import CUSTOM_OBJECTS, Refused
from compat_matrix.keras_migration.rules import Layer, Options

MODELS = ("Sequential", "Functional", "Model")


class Networks:
    """Makes the models of one SavedModel, and puts the saved weights into them.

    Attributes:
      maker: makes the layers; knows what was translated.
      names: checkpoint key -> path of the Keras 3 variable.
    """

    def __init__(self, saved: SavedKeras, custom: Mapping[str, Any], options: Options, tables: Tables | None) -> None:
        self.saved, self.tables = saved, tables
        self.maker = Maker(custom, options, self._unsaved, self._vocabulary)
        self.names: dict[str, str] = {}
        self._told: list[tuple[Any, Layer, SavedObject]] = []

    def of(self, item: SavedObject, class_name: str, config: Mapping[str, Any]) -> Any:
        """Return the Keras 3 model of a saved model; its weights have no values yet. Raises Refused."""
        layers = config.get("layers") if isinstance(config, Mapping) else config
        if not isinstance(layers, list) or not all(isinstance(entry, Mapping) for entry in layers):
            raise Refused("its configuration lists no layers", f"{class_name} {item.name!r}", item.path, CUSTOM_OBJECTS)
        return self._network(class_name, config, self.saved.layers_of(item), item)

    def custom_model(self, item: SavedObject, config: Mapping[str, Any]) -> Any:
        """Return a model of a class that the user named; its layers are made by its own code. Raises Refused."""
        raise Refused("a model with Python code of its own cannot be rebuilt yet", f"{item.class_name} {item.name!r}", item.path)

    def _unsaved(self, class_name: str, config: Mapping[str, Any]) -> Any:
        """Return a model inside the configuration of a layer; that layer gets the weights."""
        return self._network(class_name, config, {}, None)

    def _network(
        self, class_name: str, config: Mapping[str, Any], saved: Mapping[str, SavedObject], item: SavedObject | None
    ) -> Any:
        if class_name == "Sequential":
            return self._sequential(config, saved, item)
        return Calls(self, config, saved, item).model()

    def layer(self, entry: Mapping[str, Any], saved: Mapping[str, SavedObject]) -> tuple[Any, Layer | None]:
        """Return the Keras 3 layer of an entry in a model's list of layers, with its translated configuration. Raises Refused."""
        name, config = entry.get("class_name"), entry.get("config")
        if not isinstance(name, str) or not isinstance(config, Mapping):
            raise Refused("an entry of the list of layers is not a layer")
        item = saved.get(str(config.get("name", entry.get("name", ""))))
        if name in MODELS and "layers" in config and name not in self.maker.custom:
            if item is not None:
                return self.of(item, name, config), None
            return self._network(name, config, {}, None), None
        told = self.maker.translated(name, config, item.metadata if item else {}, item.path if item else "")
        made = self.maker.layer(told)
        if item is not None:
            self._told.append((made, told, item))
        return made, told

    def _sequential(self, config: Mapping[str, Any], saved: Mapping[str, SavedObject], item: SavedObject | None) -> Any:
        model = keras.Sequential(name=str(config.get("name") or "sequential").replace("/", "_"))
        layers = config["layers"]
        start = self._start(layers, item)
        if start is not None:
            model.add(start)
        for number, entry in enumerate(layers):
            if number == 0 and entry.get("class_name") == "InputLayer":
                continue
            made, told = self.layer(entry, saved)
            with self.maker.at(told.label if told else str(entry.get("class_name")), told.path if told else ""):
                model.add(made)
        return model

    def _start(self, layers: list[Any], item: SavedObject | None) -> Any:
        """Return the InputLayer of a Sequential model, None if nothing says its shape."""
        first = layers[0] if layers else {}
        config = dict(first.get("config") or {}) if isinstance(first.get("config"), Mapping) else {}
        if first.get("class_name") == "InputLayer":
            told = self.maker.translated("InputLayer", config, {}, "")
            return self.maker.layer(told)
        shape = config.get("batch_input_shape")
        dtype = config.get("dtype")
        if shape is None and item is not None:
            shape = item.metadata.get("build_input_shape")
        if not isinstance(shape, (tuple, list)) or not all(size is None or isinstance(size, int) for size in shape):
            return None
        dtype = dtype if isinstance(dtype, str) and first.get("class_name") != "Embedding" else None
        return keras.layers.InputLayer(batch_shape=tuple(shape), dtype=dtype)

    def _vocabulary(self, told: Layer) -> dict[str, Any]:
        """Return the arguments of a lookup layer that its table and its weights hold. Raises Refused."""
        if told.lookup is None:
            return {}
        if self.tables is None:
            raise Refused("its vocabulary is in a table, which was not loaded")
        found: dict[str, Any] = {"vocabulary": vocabulary_of(told.lookup, told.path, self.tables)}
        if told.config.get("output_mode") == "tf_idf":
            weights = self.saved.variable_at(told.path, told.lookup.weights)
            if weights is None:
                raise Refused("its inverse document frequencies are not in the checkpoint")
            found["idf_weights"] = weights[told.lookup.start :][: len(found["vocabulary"])].tolist()
        return found

    def fill(self) -> None:
        """Put the saved values into all layers. Raises Refused, SavedModelError."""
        for made, told, item in self._told:
            with self.maker.at(told.label, item.path):
                self.names.update(assign(made, told, self.saved, item.node))
