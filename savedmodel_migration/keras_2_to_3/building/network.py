"""Sequential and functional models, made of the configurations of Keras 2 and of what its tables
and weights hold.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

import keras

from savedmodel_compat.keras import SavedModelLayer
from savedmodel_migration.keras_2_to_3.building.assign import assign
from savedmodel_migration.keras_2_to_3.building.calls import Calls
from savedmodel_migration.keras_2_to_3.building.cuts import Cuts, input_of
from savedmodel_migration.keras_2_to_3.building.layer_model import layer_model
from savedmodel_migration.keras_2_to_3.building.objects import Maker
from savedmodel_migration.keras_2_to_3.reading.layer_graph import INPUT as GRAPH_INPUT
from savedmodel_migration.keras_2_to_3.reading.layer_graph import LayerGraph, layer_graph
from savedmodel_migration.keras_2_to_3.reading.saved import SavedKeras, SavedObject
from savedmodel_migration.keras_2_to_3.refused import CUSTOM_OBJECTS, OWN_CODE, Refused
from savedmodel_migration.keras_2_to_3.rules import Layer, Options
from savedmodel_migration.keras_2_to_3.rules.rule import Lookup

INPUT, LAMBDA = "InputLayer", "Lambda"
_NUMBERED = 1000  # Keras counts the names that it chooses: they hardly have a larger number
MODELS = ("Sequential", "Functional", "Model")
# Keys and values of the table at a path, None where there is none with these dtypes.
Tables = Callable[[str, tuple[str, str]], Any]


class Networks:
    """Makes the models of one SavedModel, and puts the saved weights into them."""

    def __init__(
        self,
        saved: SavedKeras,
        custom: Mapping[str, Any],
        options: Options,
        tables: Tables | None,
        cuts: Cuts | None = None,
    ) -> None:
        self.saved, self.tables, self.cuts = saved, tables, cuts
        # The layer with a model inside its configuration gets the weights.
        release = saved.meta_graph.meta_info_def.tensorflow_version
        network = functools.partial(self._network, saved={}, item=None)
        self.maker = Maker(custom, options, network, self._vocabulary, release)
        self.variables: dict[str, Any] = {}  # checkpoint key -> Keras 3 variable
        self.lost_states: list[
            tuple[str, ...]
        ] = []  # paths in the object graph, of variables that start from zeros now
        self.refused: dict[
            str, Refused
        ] = {}  # path in the object graph -> why the layer there was cut out of the SavedModel
        # Path in the object graph -> what the graph of the layer there does that the layer of Keras
        # does not.
        self.unlike: dict[str, Refused] = {}
        self._told: list[
            tuple[Any, Layer | None, SavedObject]
        ] = []  # None: it was cut out, and has its values

    def of(self, item: SavedObject, class_name: str, config: Mapping[str, Any]) -> Any:
        """Return the Keras 3 model of a saved model; its weights have no values yet.

        Raises Refused.
        """
        layers = config.get("layers") if isinstance(config, Mapping) else config
        if not isinstance(layers, list) or not all(isinstance(entry, Mapping) for entry in layers):
            raise Refused(
                "its configuration lists no layers",
                f"{class_name} {item.name!r}",
                item.path,
                CUSTOM_OBJECTS,
            )
        return self._network(class_name, config, self.saved.layers_of(item), item)

    def custom_model(self, item: SavedObject, config: Mapping[str, Any]) -> Any:
        """Return a model of a class that the user named; its layers are made by its own code.

        Raises Refused.
        """
        raise Refused(
            f"{OWN_CODE} cannot be rebuilt yet", f"{item.class_name} {item.name!r}", item.path
        )

    def _network(
        self,
        class_name: str,
        config: Mapping[str, Any],
        saved: Mapping[str, SavedObject],
        item: SavedObject | None,
    ) -> Any:
        if class_name == "Sequential":
            return self._sequential(config, saved, item)
        return Calls(self.maker, self.layer, config, saved, item).model()

    def layer(
        self, entry: Mapping[str, Any], saved: Mapping[str, SavedObject]
    ) -> tuple[Any, Layer | None]:
        """Return the Keras 3 layer of an entry in a model's list of layers, with its translated
        configuration.

        The configuration is None for a model, and for a layer that was cut out of the SavedModel.
        Raises Refused.
        """
        name, config = entry.get("class_name"), entry.get("config")
        if not isinstance(name, str) or not isinstance(config, Mapping):
            raise Refused("an entry of the list of layers is not a layer")
        called = str(config.get("name", entry.get("name", "")))
        _reserve(called)
        item = saved.get(called)
        return (
            self._layer(name, config, None)
            if item is None
            else self._layer_or_cut(name, config, item)
        )

    def _layer_or_cut(
        self, name: str, config: Mapping[str, Any], item: SavedObject
    ) -> tuple[Any, Layer | None]:
        told = len(self._told)
        try:
            if item.path in self.refused:
                raise self.refused[item.path]
            return self._layer(name, config, item)
        except Refused as why:
            if self.cuts is None or name == INPUT:
                raise
            del self._told[told:]  # layers of a model that is not used
            try:
                made = self.cuts.layer(item)
            except Refused as problem:
                raise Refused(
                    f"{why.reason}; {problem.reason}", why.layer, why.path, why.fix
                ) from None
            self.refused[item.path] = why.at(f"{name} {item.name!r}", item.path)
            self.maker.applied[why.layer] = ["wrapped in a SavedModelLayer"]
            self._told.append((made, None, item))
            return made, None

    def _layer(
        self, name: str, config: Mapping[str, Any], item: SavedObject | None
    ) -> tuple[Any, Layer | None]:
        if name in MODELS and "layers" in config and name not in self.maker.custom:
            if item is not None:
                return self.of(item, name, config), None
            return self._network(name, config, {}, None), None
        if item is None:
            told = self.maker.translated(name, config, {}, "")
            return self.maker.layer(told), told
        made, told = self._saved_layer(name, config, item)
        self._told.append((made, told, item))
        return made, told

    def _saved_layer(
        self, name: str, config: Mapping[str, Any], item: SavedObject
    ) -> tuple[Any, Layer]:
        if item.path in self.unlike:
            return self._of_graph(name, config, item, self.unlike[item.path])
        if (
            name == LAMBDA
            # the ops of its graph run on every backend and load in safe mode, its Python code does
            # neither
        ):
            with contextlib.suppress(Refused):
                return self._of_graph(name, config, item, Refused(""))
        try:
            ops = functools.partial(self.saved.ops_of, item.node)
            told = self.maker.translated(name, config, item.metadata, item.path, ops)
            return self.maker.layer(told), told
        except Refused as why:
            if name == INPUT:
                raise
            return self._of_graph(name, config, item, why)

    def _of_graph(
        self, name: str, config: Mapping[str, Any], item: SavedObject, why: Refused
    ) -> tuple[Any, Layer]:
        """Return a layer whose activation, or all of it if it has no weights, is made of the ops of
        its graph.

        Raises the refusal that the layer has, if neither can be.
        """
        label, activation = f"{name} {item.name!r}", config.get("activation")
        weights = bool(list(self.saved.weights_of(item.node)))
        known = (
            isinstance(activation, str)
            and self.maker.has_function(activation)
            and item.path not in self.unlike
        )
        if weights and (known or not isinstance(activation, str)):
            raise why
        try:
            with self.maker.at(label, item.path):
                graph = layer_graph(self.saved, item.node)
                if weights:
                    told = self.maker.translated(
                        name, {**config, "activation": "linear"}, item.metadata, item.path
                    )
                    made = self.maker.layer(told)
                    name_of_activation = re.sub(r"\W", "", str(activation))  # a lambda has brackets
                    self.maker.follow(
                        told,
                        layer_model(graph.after_weights(), f"{made.name}_{name_of_activation}"),
                    )
                    self.maker.applied.setdefault(label, []).append(
                        f"activation {activation}: the ops of its graph to keras.ops"
                    )
                else:
                    call = functools.partial(_by_position, graph)
                    told = Layer(name, {"name": item.name}, item.metadata, item.path, call=call)
                    made = layer_model(graph, item.name.replace("/", "_"))
                    self.maker.applied[label] = ["the ops of its graph to keras.ops"]
        except Refused as problem:
            raise Refused(
                f"{why.reason}; not rebuilt from its graph: {problem.reason}",
                why.layer,
                why.path,
                why.fix,
            ) from None
        self.maker.notes += [f"{label}: {note}" for note in graph.notes]
        return made, told

    def _sequential(
        self, config: Mapping[str, Any], saved: Mapping[str, SavedObject], item: SavedObject | None
    ) -> Any:
        model = keras.Sequential(name=str(config.get("name") or "sequential").replace("/", "_"))
        layers = config["layers"]
        skip = bool(layers) and layers[0].get("class_name") == INPUT
        made = [
            None if skip and not number else self.layer(entry, saved)
            for number, entry in enumerate(layers)
        ]
        start = self._start(layers, item, made[0][0] if made and made[0] else None)
        if start is not None:
            model.add(start)
        for entry, pair in zip(layers, made):
            if pair is not None:
                layer, told = pair
                with self.maker.at(
                    told.label if told else str(entry.get("class_name")), told.path if told else ""
                ):
                    model.add(layer)
                    for more in self.maker.followers(told):
                        model.add(more)
        return model

    def _start(self, layers: list[Any], item: SavedObject | None, made: Any) -> Any:
        """Return the InputLayer of a Sequential model whose first layer is `made`, None if nothing
        says its shape.
        """
        first = layers[0] if layers else {}
        config = dict(first.get("config") or {}) if isinstance(first.get("config"), Mapping) else {}
        if first.get("class_name") == INPUT:
            told = self.maker.translated(INPUT, config, {}, "")
            return self.maker.layer(told)
        shape = config.get("batch_input_shape")
        dtype = config.get("dtype")
        if isinstance(made, SavedModelLayer):
            shape, dtype = input_of(made) or (shape, dtype)
        if shape is None and item is not None:
            shape = item.metadata.get("build_input_shape")
        if not isinstance(shape, (tuple, list)) or not all(
            size is None or isinstance(size, int) for size in shape
        ):
            return None
        dtype = dtype if isinstance(dtype, str) and first.get("class_name") != "Embedding" else None
        return keras.layers.InputLayer(batch_shape=tuple(shape), dtype=dtype)

    def _vocabulary(self, told: Layer) -> dict[str, Any]:
        """Return the arguments of a layer that its table and its weights hold. Raises Refused."""
        if told.adapted is not None:
            return told.adapted(lambda name: self.saved.variable_at(told.path, (name,)))
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
            if told is None:
                assert self.cuts is not None
                self.variables.update(self.cuts.variables(self.saved, item, made))
                continue
            with self.maker.at(told.label, item.path):
                self._lose_states(told, item)
                self.variables.update(assign(made, told, self.saved, item.node))

    def _lose_states(self, told: Layer, item: SavedObject) -> None:
        """Note which states of a layer are not zero in the file: no ``.keras`` file holds
        states.
        """
        lost = [number for number, state in self.saved.states_of(item.node) if state.any()]
        self.lost_states += [
            names for names in map(self.saved.paths.names, lost) if names is not None
        ]
        if lost:
            self.maker.notes.append(
                f"{told.label}: the file holds its state after the last call, and a .keras file"
                " holds no states: it starts from zeros, and is compared with the old model after"
                " reset_states()"
            )

    def rebuilt(self) -> list[tuple[Any, Layer, SavedObject]]:
        """Return the layers that are not cut out, each with its configuration and the saved
        layer.
        """
        return [(made, told, item) for made, told, item in self._told if told is not None]

    def of_refusal(self, path: str) -> SavedObject | None:
        """Return the layer that a refusal with this path is about, the innermost one, if it was
        rebuilt.
        """
        known = {item.path: item for _, told, item in self._told if told is not None}
        while path and path not in known:
            path = path.rpartition(".")[0]
        return known.get(path)


def _reserve(name: str) -> None:
    """Keep Keras from choosing the name of a layer for an operation: what computes a mask is an
    operation of the model too.
    """
    stem, _, number = name.rpartition("_")
    stem, count = (stem, int(number)) if stem and number.isdecimal() else (name, 0)
    while count < _NUMBERED and keras.backend.get_uid(stem) <= count:
        pass


def _by_position(
    graph: LayerGraph, first: Any, kwargs: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Return the tensors of a call in the order of the graph's inputs; other arguments went into
    the graph.

    Raises Refused if the call gives other tensors than the trace took, as a mask that Keras 2
    added.
    """
    names = graph.arguments[1:]
    tensors = [*keras.tree.flatten(first)]
    for name in sorted(kwargs, key=lambda name: names.index(name) if name in names else len(names)):
        found = [
            item for item in keras.tree.flatten(kwargs[name]) if isinstance(item, keras.KerasTensor)
        ]
        if found and name not in names:
            raise Refused(
                f"a call gives it a tensor as {name}, an argument that its function does not name"
            )
        tensors += found
    wanted = sum(step.op == GRAPH_INPUT for step in graph.steps)
    if len(tensors) != wanted:
        raise Refused(f"a call gives it {len(tensors)} tensors, and its graph takes {wanted}")
    return tensors if wanted > 1 else tensors[0], {}


def vocabulary_of(lookup: Lookup, path: str, tables: Tables) -> list[Any]:
    """Return the tokens of a layer in the order of their numbers, without those that Keras adds
    itself.

    Raises Refused: there is no such table, or its numbers leave gaps.
    """
    for below in lookup.tables:
        rows = tables(f"{path}.{below}" if path else below, lookup.dtypes)
        if rows is not None:
            return _ordered(lookup, *rows)
    raise Refused("its vocabulary is in none of the tables that Keras 2 kept one in")


def _ordered(lookup: Lookup, keys: Any, values: Any) -> list[Any]:
    tokens, numbers = (values, keys) if lookup.inverted else (keys, values)
    found: Mapping[int, Any] = {
        int(number): _plain(token) for token, number in zip(tokens.tolist(), numbers.tolist())
    }
    found = {
        number: token
        for number, token in found.items()
        if number >= lookup.start and token not in lookup.special
    }
    if sorted(found) != list(range(lookup.start, lookup.start + len(found))):
        raise Refused("the numbers of its vocabulary leave gaps")
    if not found:
        raise Refused("its vocabulary is empty: it was never adapted")
    return [found[number] for number in sorted(found)]


def _plain(token: Any) -> Any:
    return token.decode("utf-8", "surrogateescape") if isinstance(token, bytes) else token
