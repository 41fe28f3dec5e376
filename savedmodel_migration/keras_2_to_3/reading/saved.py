"""The layers of a Keras 2 SavedModel: class, configuration, place in the object graph, weights."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container import layout
from reference_impl.format.names import OBJECT_GRAPH_KEY, VALUE
from reference_impl.graph.closure import reachable
from reference_impl.graph.object_graph import Paths, checkpoint_keys
from reference_impl.graph.references import FunctionIndex
from savedmodel_common import strict_json
from savedmodel_migration.keras_2_to_3.reading.graph_calls import functional_configuration
from savedmodel_migration.keras_2_to_3.refused import (
    NO_CONFIGURATION,
    NO_METADATA,
    OWN_CODE,
    RESTORE_METADATA,
    Refused,
)

KERAS = "_tf_keras_"  # how the identifiers of Keras 2's objects begin
METRIC = "_tf_keras_metric"
_WITHOUT_CONFIGURATION = ("Attention", "AdditiveAttention")  # in TF 2.0
# Children of a layer that repeat what its attributes hold, and those that hold no weights.
_VIEWS = (
    "variables",
    "trainable_variables",
    "non_trainable_variables",
    "regularization_losses",
    "keras_api",
    "signatures",
)


class NotKeras(Exception):
    """The model is not a Keras 2 model, or its file lacks what Keras 2 says of it."""


@dataclass(frozen=True)
class SavedObject:
    """One object of Keras in the object graph: its number, its path from the root (``""`` for the
    model itself) and its kind.

    ``metadata`` is what Keras wrote of it; empty where it is missing.
    """

    node: int
    path: str
    identifier: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return str(self.metadata.get("name", ""))

    @property
    def class_name(self) -> str:
        return str(self.metadata.get("class_name", ""))

    @property
    def config(self) -> Optional[Mapping[str, Any]]:
        """The configuration, None if the object has none."""
        found = self.metadata.get("config")
        if not isinstance(found, Mapping):  # of a model it may be at a second place only
            model = self.metadata.get("model_config")
            found = model.get("config") if isinstance(model, Mapping) else None
        return found if isinstance(found, Mapping) else None

    @property
    def is_network(self) -> bool:
        """Whether the configuration says all of a Sequential or functional model, whatever its
        class.
        """
        config = self.config or {}
        return isinstance(config.get("layers"), list) and (
            self.class_name == "Sequential" or "output_layers" in config
        )


@dataclass(frozen=True)
class Weights:
    """The content of a layer: checkpoint keys by attribute, and the layers and lists below it by
    attribute.
    """

    keys: Mapping[str, str]
    parts: Mapping[str, Weights]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the checkpoint keys, those of parts included."""
        yield from self.keys.values()
        for part in self.parts.values():
            yield from part


class SavedKeras:
    """The Keras objects of a SavedModel.

    A context manager that closes the checkpoint.

    Raises NotKeras: its root is not an object of Keras 2, or says nothing of itself;
    SavedModelError: a file is damaged.
    """

    def __init__(self, path: Union[str, os.PathLike[str]]) -> None:
        self.layout = layout.read(path)
        graphs = [
            graph
            for graph in self.layout.saved_model.meta_graphs
            if graph.HasField("object_graph_def")
        ]
        if not graphs:
            raise NotKeras("the model has no object graph: it is a model of TF 1.x")
        self.meta_graph = graphs[0]
        self.nodes = self.meta_graph.object_graph_def.nodes
        self.paths = Paths(self.nodes)
        self.objects = dict(self._objects())
        root = self.objects.get(0)
        if root is None or not root.identifier.startswith(KERAS):
            raise NotKeras("the root of the model is not an object of Keras 2")
        self.root = root
        self._stack = contextlib.ExitStack()
        self.bundle: Optional[BundleReader] = None
        self.keys: Mapping[int, Mapping[str, str]] = {}
        if self.layout.has_checkpoint:
            self.bundle = self._stack.enter_context(BundleReader(self.layout.checkpoint_prefix))
            with self._closed_on_error():
                if OBJECT_GRAPH_KEY in self.bundle:
                    tracked = schema.parse(
                        schema.TrackableObjectGraph,
                        bytes(self.bundle.read(OBJECT_GRAPH_KEY).item()),
                    )
                    self.tracked = tracked
                    self.keys = checkpoint_keys(self.meta_graph.object_graph_def, tracked)
                if root.metadata and not root.is_network and root.class_name != "Sequential":
                    layers = {
                        name: self._entry(item) for name, item in self.layers_of(root).items()
                    }
                    bodies = self.call_bodies(root.node)
                    found = functional_configuration(root.name, layers, self._call_specs(), bodies)
                    if found is not None:
                        self.root = self.objects[0] = dataclasses.replace(
                            root, metadata={**root.metadata, "config": found}
                        )

        elif any(node.WhichOneof("kind") == "variable" for node in self.nodes):
            raise self.layout.no_checkpoint()

    def __enter__(self) -> SavedKeras:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @contextlib.contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._stack.close()
            raise

    @property
    def version(self) -> str:
        """The release of Keras that saved the model, ``""`` if it does not say."""
        return str(self.root.metadata.get("keras_version") or "")

    def unconfigured(self) -> Refused:
        """Return why the model has no configuration.

        Only the root without any data of Keras needs a file from elsewhere.
        """
        if not self.root.metadata and not self.layout.keras_metadata:
            return Refused(NO_METADATA, fix=RESTORE_METADATA)
        label = f"{self.root.class_name or 'model'} {self.root.name!r}"
        return Refused(NO_CONFIGURATION if self.root.is_network else OWN_CODE, label)

    def _objects(self) -> Iterator[tuple[int, SavedObject]]:
        beside = self.layout.keras_metadata
        for number, node in enumerate(self.nodes):
            if node.WhichOneof("kind") != "user_object":
                continue
            entry = beside.get(number)
            identifier = node.user_object.identifier
            if not identifier.startswith(KERAS):
                continue
            text = entry.metadata if entry is not None else node.user_object.metadata
            try:
                metadata = _decoded(text) if text else {}
            except ValueError as error:
                reason = f"what Keras says of {self.paths.label(number)} cannot be read: {error}"
                raise NotKeras(reason) from None
            names = self.paths.names(number) or ()
            yield number, SavedObject(number, ".".join(names), identifier, metadata, names)

    def children(self, node: int) -> dict[str, int]:
        """Return name -> number of the children of a node."""
        return {
            child.local_name: child.node_id
            for child in self.nodes[node].children
            if 0 <= child.node_id < len(self.nodes)
        }

    def layers_of(self, model: SavedObject) -> dict[str, SavedObject]:
        """Return the layers of a Sequential or functional model by name.

        Raises NotKeras for two layers with one name.
        """
        found: dict[str, SavedObject] = {}
        children = self.children(model.node)
        api = self.children(children["keras_api"]) if "keras_api" in children else {}
        listed = self.children(api["layers"]) if "layers" in api else {}
        numbers = [number for name, number in children.items() if name.startswith("layer")]
        for number in dict.fromkeys([*numbers, *listed.values()]):
            item = self.objects.get(number)
            if item is None:
                continue
            if item.name in found and found[item.name].node != number:
                raise NotKeras(
                    f"two layers of {model.path or 'the model'} have the name {item.name!r}"
                )
            found[item.name] = item
        return found

    def shared_layer(self) -> Optional[SavedObject]:
        """Return a layer with weights that is in two of the models nested in the root, the root
        included, or None.
        """
        owners: dict[int, int] = {}
        waiting, seen = [self.root], {self.root.node}
        while waiting:
            model = waiting.pop()
            for item in self.layers_of(model).values():
                if owners.setdefault(item.node, model.node) != model.node and list(
                    self.weights_of(item.node)
                ):
                    return item
                if item.is_network and item.node not in seen:
                    seen.add(item.node)
                    waiting.append(item)
        return None

    def ops_of(self, node: int) -> frozenset[str]:
        """Return the types of the ops that the call of a layer runs, those in functions it calls
        included.
        """
        bodies = self.call_bodies(node)
        if bodies:
            return frozenset(node.op for node in _nodes_of(bodies))
        # Keras 2 traces no function for some preprocessing layers: their ops are in the call of the
        # model, below their name.
        name = self.objects[node].name
        of_model = _nodes_of(self.call_bodies(self.root.node))
        return frozenset(node.op for node in of_model if name in node.name.split("/"))

    def call_bodies(self, node: int) -> list[Any]:
        """Return each function of the graph's library that the call of a layer or model runs."""
        called = [number for name, number in self.children(node).items() if "call" in name]
        functions = (self.nodes[number].function for number in called)
        names = itertools.chain.from_iterable(one.concrete_functions for one in functions)
        starts = [name for name in names if name in self.library.functions]
        return [self.library.functions[name] for name in reachable(starts, self._calls)]

    def _call_specs(self) -> list[tuple[Any, Any]]:
        """Return the structured arguments and results of each trace of the call of the model,
        losses not counted.
        """
        number = self.children(self.root.node).get("__call__")
        names = self.nodes[number].function.concrete_functions if number is not None else ()
        traces = self.traces
        return [
            (traces[name].canonicalized_input_signature, traces[name].output_signature)
            for name in names
            if name in traces
        ]

    @property
    def traces(self) -> Mapping[str, Any]:
        """The concrete functions by name."""
        found: Mapping[str, Any] = self.meta_graph.object_graph_def.concrete_functions
        return found

    @functools.cached_property
    def graph_nodes(self) -> Mapping[str, Any]:
        """The nodes of the graph by name."""
        return {node.name: node for node in self.meta_graph.graph_def.node}

    @functools.cached_property
    def library(self) -> FunctionIndex:
        """The functions of the graph."""
        return FunctionIndex(self.meta_graph.graph_def.library)

    def _calls(self, function: str) -> set[str]:
        body = self.library.functions[function].node_def
        names: set[str] = set()
        for node in body:
            names.update(self.library.references(node, gradients=False))
        return names

    def _entry(self, item: SavedObject) -> Optional[dict[str, Any]]:
        """Return a layer as a list of layers has it, None if nothing tells its configuration."""
        config = item.config
        if config is None and item.class_name in _WITHOUT_CONFIGURATION:
            named = {name: item.metadata.get(name) for name in ("name", "trainable", "dtype")}
            config = {**named, "use_scale": "scale" in self.weights_of(item.node).keys}
        return (
            None
            if config is None
            else {"class_name": item.class_name, "name": item.name, "config": config}
        )

    def weights_of(self, node: int) -> Weights:
        """Return the weights of a layer: its variables by attribute, and those of the layers and
        lists in its attributes.
        """
        return self._weights(node, {node})

    def _weights(self, node: int, seen: set[int]) -> Weights:
        keys: dict[str, str] = {}
        parts: dict[str, Weights] = {}
        for name, number in self.children(node).items():
            if name in _VIEWS:
                continue
            kind = self.nodes[number].WhichOneof("kind")
            if kind == "variable":
                key = self.keys.get(number, {}).get(VALUE)
                if key is not None:
                    keys[name] = key
            elif (
                kind == "user_object"
                and number not in seen
                and self.nodes[number].user_object.identifier != METRIC
            ):
                seen.add(number)
                part = self._weights(number, seen)
                if part.keys or part.parts:
                    parts[name] = part
        return Weights(keys, parts)

    def states_of(self, node: int) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield the states that stateful recurrent layers had after the last call, of a layer and
        of those in its attributes.

        Each with the number of its node.
        """
        seen, waiting = {node}, [node]
        while waiting:
            children = self.children(waiting.pop())
            listed = (
                self.children(children["keras_api"]).get("states")
                if "keras_api" in children
                else None
            )
            for number in self.children(listed).values() if listed is not None else ():
                key = self.keys.get(number, {}).get(VALUE)
                if key is not None:
                    yield number, self.value(key)
            layers = {
                number
                for name, number in children.items()
                if name not in _VIEWS and number not in seen
            }
            seen |= layers
            waiting += sorted(layers)

    def variable_keys(self) -> dict[int, str]:
        """Return the checkpoint key of each variable by the number of its node."""
        kinds = ((number, node.WhichOneof("kind")) for number, node in enumerate(self.nodes))
        keys = (
            (number, self.keys.get(number, {}).get(VALUE))
            for number, kind in kinds
            if kind == "variable"
        )
        return {number: key for number, key in keys if key is not None}

    def variable_at(self, path: str, names: Sequence[str]) -> npt.NDArray[Any] | None:
        """Return the value of the first of the variables ``names`` (dotted) below ``path`` that
        there is, or None.
        """
        for name in names:
            number: Optional[int] = 0
            for part in [*(path.split(".") if path else ()), *name.split(".")]:
                number = self.children(number).get(part) if number is not None else None
            key = self.keys.get(number, {}).get(VALUE) if number is not None else None
            if key is not None:
                return self.value(key)
        return None

    def value(self, key: str) -> npt.NDArray[Any]:
        """Return a value of the checkpoint. Raises SavedModelError."""
        if self.bundle is None:
            raise SavedModelError("the model has no checkpoint", node=key)
        return np.asarray(self.bundle.read(key))

    def size(self) -> int:
        """Return the number of elements of all tensors in the checkpoint."""
        if self.bundle is None:
            return 0
        return sum(
            int(np.prod(entry.shape, dtype=np.int64)) for entry in self.bundle.entries().values()
        )


def _decoded(text: str) -> dict[str, Any]:
    """Return the JSON that Keras 2 writes for one of its objects, with tuples and shapes in place
    of their JSON form.

    Raises ValueError if the text is not a JSON object.
    """
    found = strict_json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("the metadata is not a JSON object")
    try:
        whole = _plain(found)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    assert isinstance(whole, dict)
    return whole


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind, items = value.get("class_name"), value.get("items")
    if kind in ("__tuple__", "TensorShape") and set(value) == {"class_name", "items"}:
        if items is None:
            return None  # a shape of unknown rank
        if isinstance(items, list):
            return tuple([_plain(item) for item in items])
    if kind == "__ellipsis__":
        return ...
    return {key: _plain(item) for key, item in value.items()}


def _nodes_of(bodies: Iterable[Any]) -> Iterator[Any]:
    return itertools.chain.from_iterable(body.node_def for body in bodies)


def at(root: Any, names: Sequence[str]) -> Optional[Any]:
    """Return the object at a path of the object graph, None if the loaded model has nothing
    there.
    """
    for name in names:
        found = getattr(root, name, None)
        if found is None and isinstance(root, Mapping):
            found = root.get(name)
        if (
            found is None
            and name.isdigit()
            and isinstance(root, (list, tuple))
            and int(name) < len(root)
        ):
            found = root[int(name)]
        if found is None:
            return None
        root = found
    return root
