"""The graph of a functional model: layers called on tensors, as the configuration lists their
calls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import keras

from savedmodel_migration.keras_2_to_3.building.operations import (
    METRIC_LAYER,
    Operation,
    is_operation,
)
from savedmodel_migration.keras_2_to_3.refused import Refused
from savedmodel_migration.keras_2_to_3.rules import Layer

if TYPE_CHECKING:
    from savedmodel_migration.keras_2_to_3.building.objects import Maker
    from savedmodel_migration.keras_2_to_3.reading.saved import SavedObject

CONSTANT = "_CONSTANT_VALUE"


class _NotYet(Exception):
    """A call needs a tensor that no call has made yet."""


class Calls:
    """Makes one functional model of its configuration.

    Args:
      maker: follows what is called.
      layer: makes the layer of an entry in the list of layers, see `Networks.layer`.
      saved: its saved layers by name.
      item: the saved model, None for one inside the configuration of a layer.
    """

    def __init__(
        self,
        maker: Maker,
        layer: Callable[[Mapping[str, Any], Mapping[str, SavedObject]], tuple[Any, Layer | None]],
        config: Mapping[str, Any],
        saved: Mapping[str, SavedObject],
        item: SavedObject | None,
    ) -> None:
        self.maker, self.layer, self.config, self.saved, self.item = (
            maker,
            layer,
            config,
            saved,
            item,
        )
        self.made: dict[str, tuple[Any, Layer | None]] = {}
        self.tensors: dict[str, list[Any]] = {}  # name -> what each call of the layer returned
        self.entries: dict[str, Mapping[str, Any]] = {}
        for entry in config["layers"]:
            name = entry.get("name") or (entry.get("config") or {}).get("name")
            if not isinstance(name, str) or name in self.entries:
                raise Refused(
                    f"two layers have the name {name!r}"
                    if name in self.entries
                    else "a layer has no name"
                )
            self.entries[name] = entry
        self.names = set(self.entries)  # no two operations of a Keras 3 model have one name
        self._ranks = self._indices()

    def model(self) -> Any:
        """Return the model. Raises Refused."""
        for name, entry in self.entries.items():
            self.made[name] = self._operation(entry) or self.layer(entry, self.saved)
            self.tensors[name] = (
                [self.made[name][0].output] if entry.get("class_name") == "InputLayer" else []
            )
        waiting: deque[tuple[str, int]] = deque()
        for name, entry in self.entries.items():
            if entry.get("class_name") != "InputLayer":
                waiting.extend((name, number) for number in range(len(_nodes(entry))))
        idle = 0
        while waiting:
            name, number = waiting.popleft()
            try:
                if len(self.tensors[name]) < number:
                    raise _NotYet  # calls of one layer keep their order
                self._call(name, _nodes(self.entries[name])[number])
                idle = 0
            except _NotYet:
                waiting.append((name, number))
                idle += 1
                if idle > len(waiting):
                    raise Refused(f"the calls of layer {name!r} wait for each other") from None
        inputs = self._ends(self.config.get("input_layers"))
        outputs = self._ends(self.config.get("output_layers"))
        name = str(self.config.get("name") or "model").replace("/", "_")
        with self.maker.at(f"model {name!r}", self.item.path if self.item else ""):
            return keras.Model(inputs, outputs, name=name)

    def _operation(self, entry: Mapping[str, Any]) -> tuple[Any, Layer] | None:
        """Return what stands for an operation between layers, None for a layer."""
        name, config = str(entry.get("class_name")), entry.get("config")
        if not is_operation(name) or not isinstance(config, Mapping):
            return None
        told = Layer(name, dict(config))
        with self.maker.at(told.label, ""):
            made = Operation(name, config, self.names)
        if name == METRIC_LAYER:
            metric = config.get("metric_name") or config.get("name")
            self.maker.notes.append(
                f"the metric {metric!r} of a tensor inside the model is not kept: Keras 3 has none"
            )
        else:
            self.maker.applied[told.label] = ["operation of TensorFlow to keras.ops"]
        return made, told

    def _call(self, name: str, node: Any) -> None:
        layer, told = self.made[name]
        first, kwargs = self._inputs(node)
        kwargs = {key: self._argument(value) for key, value in kwargs.items()}
        if told is None or not isinstance(layer, Operation):
            kwargs = {key: value for key, value in kwargs.items() if value is not None}
        label, path = (told.label, told.path) if told else (f"{type(layer).__name__} {name!r}", "")
        if isinstance(kwargs.get("training"), bool):
            self._fixed(label, layer, kwargs["training"])
        with self.maker.at(label, path):
            if told is not None and told.call is not None:
                first, kwargs = told.call(first, kwargs)
            self.tensors[name].append(self.maker.followed(layer(first, **kwargs), told))

    def _fixed(self, label: str, layer: Any, training: bool) -> None:
        """Note that a layer was called with ``training`` whatever its model is called with.

        Raises Refused if that is lost.

        The refusal is about the model: its graph has the call as it was.
        """
        always = (
            f"{label} is always called with training={training}, and Keras 3 calls it as its model"
            " is called"
        )
        inside = layer._flatten_layers() if isinstance(layer, keras.layers.Layer) else ()
        if any(
            isinstance(item, keras.layers.BatchNormalization) and item.trainable for item in inside
        ):
            raise Refused(f"{always}: a BatchNormalization would train")
        self.maker.notes.append(
            f"{always}: in training it drops out and draws what it did not"
            if not training
            else always
        )

    def _inputs(self, node: Any) -> tuple[Any, dict[str, Any]]:
        """Return the first argument of a call and its keyword arguments."""
        kwargs: dict[str, Any] = {}

        def found(data: Any) -> Any:
            if isinstance(data, Mapping):
                return {key: found(value) for key, value in data.items()}
            if not isinstance(data, (list, tuple)):
                raise Refused("a call has an argument that is not a tensor")
            if data and isinstance(data[0], str):
                if len(data) == 4 and isinstance(data[3], Mapping):
                    kwargs.update(data[3])
                return data[2] if data[0] == CONSTANT and len(data) > 2 else self._tensor(data)
            return [found(item) for item in data]

        first = found(node)
        if (
            isinstance(first, list) and len(first) == 1 and not isinstance(node[0], str)
        ):  # not a constant, which is a list too
            first = first[0]
        return first, kwargs

    def _argument(self, value: Any) -> Any:
        """Return a keyword argument with tensors in place of their names."""
        if isinstance(value, (list, tuple)):
            if (
                len(value) in (3, 4)
                and isinstance(value[0], str)
                and all(isinstance(item, int) for item in value[1:3])
            ):
                if value[0] == CONSTANT:
                    return value[2]
                if value[0] in self.entries:
                    return self._tensor(value)
            return type(value)([self._argument(item) for item in value])
        if isinstance(value, Mapping):
            return {key: self._argument(item) for key, item in value.items()}
        return value

    def _tensor(self, data: Any) -> Any:
        name, node, index = data[:3]
        if name not in self.entries or not isinstance(node, int) or not isinstance(index, int):
            raise Refused(
                f"a call takes a tensor of {str(name)!r}, which is not a layer of the model"[:200]
            )
        rank = self._ranks[name].get(node)
        if rank is None or rank >= max(len(_nodes(self.entries[name])), 1):
            raise Refused(
                f"a call takes a tensor of call {node} of layer {name!r}, which does not exist"[
                    :200
                ]
            )
        if rank >= len(self.tensors[name]):
            raise _NotYet
        flat = keras.tree.flatten(self.tensors[name][rank])
        if not 0 <= index < len(flat):
            raise Refused(
                f"a call takes output {index} of layer {name!r}, which does not exist"[:200]
            )
        return flat[index]

    def _ends(self, data: Any) -> Any:
        """Return the inputs or outputs of the model, in the structure of the configuration."""
        if isinstance(data, Mapping):
            return {key: self._ends(value) for key, value in data.items()}
        if not isinstance(data, (list, tuple)) or not data:
            raise Refused("the model names no inputs or no outputs")
        if isinstance(data[0], str):
            return self._end(data)
        found = [self._ends(item) for item in data]
        return found[0] if len(found) == 1 else found

    def _end(self, data: Any) -> Any:
        try:
            return self._tensor(data)
        except _NotYet:
            raise Refused(
                f"an output of the model, layer {data[0]!r}, is never computed"[:200]
            ) from None

    def _indices(self) -> dict[str, dict[int, int]]:
        """Return for each layer: the number of a call in the configuration -> its place among the
        calls listed.

        A nested model counts from 1, since its own construction was its first call; calls outside
        of the model are not listed.
        """
        used: dict[str, set[int]] = {name: set() for name in self.entries}

        def visit(data: Any) -> None:
            if isinstance(data, Mapping):
                for value in data.values():
                    visit(value)
            elif isinstance(data, (list, tuple)):
                if (
                    len(data) in (3, 4)
                    and isinstance(data[0], str)
                    and data[0] in used
                    and isinstance(data[1], int)
                ):
                    used[data[0]].add(data[1])
                for item in data:
                    visit(item)

        for entry in self.entries.values():
            visit(entry.get("inbound_nodes"))
        visit(self.config.get("output_layers"))
        visit(self.config.get("input_layers"))
        found = {}
        for name, entry in self.entries.items():
            calls = max(len(_nodes(entry)), 1)
            numbers = sorted(used[name])
            start = max(numbers[-1] - calls + 1, 0) if numbers else 0
            ranked = len(numbers) == calls
            found[name] = {
                number: rank if ranked else number - start for rank, number in enumerate(numbers)
            }
        return found


def _nodes(entry: Mapping[str, Any]) -> list[Any]:
    found = entry.get("inbound_nodes")
    return found if isinstance(found, list) else []
