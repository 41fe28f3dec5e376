"""The layers of a Keras 2 SavedModel: class, configuration, place in the object graph, weights."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from compat_matrix.keras_migration.reading.metadata import decode
from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container import layout
from reference_impl.format.names import OBJECT_GRAPH_KEY
from reference_impl.graph.object_graph import Paths, counterparts

KERAS = "_tf_keras_"  # how the identifiers of Keras 2's objects begin
METRIC = "_tf_keras_metric"
VALUE = "VARIABLE_VALUE"
# Children of a layer that repeat what its attributes hold, and those that hold no weights.
_VIEWS = ("variables", "trainable_variables", "non_trainable_variables", "regularization_losses", "keras_api", "signatures")


class NotKeras(Exception):
    """The model is not a Keras 2 model, or its file lacks what Keras 2 says of it."""


@dataclass(frozen=True)
class SavedObject:
    """One object of Keras in the object graph.

    Attributes:
      node: its number in the object graph.
      path: its path from the root, ``""`` for the model itself.
      identifier: its kind, as ``_tf_keras_layer``.
      metadata: what Keras wrote of it; empty where it is missing.
    """

    node: int
    path: str
    identifier: str
    metadata: Mapping[str, Any] = field(default_factory=dict)

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
        """Whether the configuration says all of a Sequential or functional model, whatever its class."""
        config = self.config or {}
        return isinstance(config.get("layers"), list) and (self.class_name == "Sequential" or "output_layers" in config)


@dataclass(frozen=True)
class Weights:
    """What a layer holds: checkpoint keys by attribute, and the layers and lists below it by attribute."""

    keys: Mapping[str, str]
    parts: Mapping[str, Weights]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the checkpoint keys, those of parts included."""
        yield from self.keys.values()
        for part in self.parts.values():
            yield from part


class SavedKeras:
    """The Keras objects of a SavedModel. A context manager that closes the checkpoint.

    Args:
      path: the SavedModel.

    Raises:
      NotKeras: its root is not an object of Keras 2, or says nothing of itself.
      SavedModelError: a file is missing or damaged.
    """

    def __init__(self, path: Union[str, os.PathLike[str]]) -> None:
        self.layout = layout.read(path)
        graphs = [graph for graph in self.layout.saved_model.meta_graphs if graph.HasField("object_graph_def")]
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
                    tracked = schema.parse(schema.TrackableObjectGraph, bytes(self.bundle.read(OBJECT_GRAPH_KEY).item()))
                    self.tracked = tracked
                    self.keys = counterparts(self.meta_graph.object_graph_def, tracked)

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
                metadata = decode(text) if text else {}
            except ValueError as error:
                reason = f"what Keras says of {self.paths.label(number)} cannot be read: {error}"
                raise NotKeras(reason) from None
            yield number, SavedObject(number, self.paths.text(number) or "", identifier, metadata)

    def children(self, node: int) -> dict[str, int]:
        """Return name -> number of the children of a node."""
        return {child.local_name: child.node_id for child in self.nodes[node].children if 0 <= child.node_id < len(self.nodes)}

    def layers_of(self, model: SavedObject) -> dict[str, SavedObject]:
        """Return the layers of a Sequential or functional model by name. Raises NotKeras for two layers with one name."""
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
                raise NotKeras(f"two layers of {model.path or 'the model'} have the name {item.name!r}")
            found[item.name] = item
        return found

    def weights_of(self, node: int) -> Weights:
        """Return the weights of a layer: its variables by attribute, and those of the layers and lists in its attributes."""
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
            elif kind == "user_object" and number not in seen and self.nodes[number].user_object.identifier != METRIC:
                seen.add(number)
                part = self._weights(number, seen)
                if part.keys or part.parts:
                    parts[name] = part
        return Weights(keys, parts)

    def variable_at(self, path: str, names: Sequence[str]) -> npt.NDArray[Any] | None:
        """Return the value of the first of the variables ``names`` (dotted) below ``path`` that there is, or None."""
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
        return sum(int(np.prod(entry.shape, dtype=np.int64)) for entry in self.bundle.entries().values())
