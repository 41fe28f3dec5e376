"""Rebuild a Keras 2 SavedModel as a Keras 3 model. Imports Keras: for workers only."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Union

import keras

from compat_matrix.keras_migration.building.compiling import compile_as_saved
from compat_matrix.keras_migration.building.network import MODELS, Networks
from compat_matrix.keras_migration.building.vocabulary import Tables
from compat_matrix.keras_migration.building.weight_guard import guarded
from compat_matrix.keras_migration.reading.saved import SavedKeras
from compat_matrix.keras_migration.refused import CUSTOM_OBJECTS, Refused
from compat_matrix.keras_migration.rules import Options


@dataclass
class Rebuilt:
    """A rebuilt model.

    Attributes:
      model: the Keras 3 model, with the saved weights.
      names: checkpoint key -> path of the Keras 3 variable.
      applied: what rules did, by layer.
      notes: what the user should know.
    """

    model: Any
    names: Mapping[str, str]
    applied: Mapping[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def half(self) -> bool:
        """Whether a layer computes in 16 bits."""
        layers = self.model._flatten_layers()
        return any(getattr(layer, "compute_dtype", "") in ("float16", "bfloat16") for layer in layers)

    @property
    def tree(self) -> list[str]:
        """The layers of the new model, a line for each, nested models with their layers below."""
        return list(_tree(self.model, 0))


def rebuild(
    path: Union[str, os.PathLike[str]],
    custom: Mapping[str, Any] | None = None,
    trust_lambda: bool = False,
    tables: Tables | None = None,
) -> Rebuilt:
    """Return the Keras 3 model of a Keras 2 SavedModel.

    Args:
      path: the SavedModel.
      custom: classes and functions that the user named, by name.
      trust_lambda: run the Python code of Lambda layers.
      tables: reads the tables of the loaded model, for the vocabularies of lookup layers.

    Raises:
      Refused: a layer cannot be rebuilt.
      NotKeras: the model says nothing of its layers.
      SavedModelError: a file is missing or damaged.
    """
    custom = dict(custom or {})
    with SavedKeras(path) as saved:
        root = saved.root
        config = root.config
        if config is None:
            raise Refused("the file holds no configuration of its layers", f"{root.class_name or 'model'} {root.name!r}")
        functional = root.is_network
        if not functional and root.class_name not in custom:
            raise Refused("a model with Python code of its own", f"{root.class_name} {root.name!r}", "", CUSTOM_OBJECTS)
        networks = Networks(saved, custom, Options(frozenset(custom), trust_lambda), tables)
        with guarded(saved.size()):
            model = networks.of(root, root.class_name, config) if functional else networks.custom_model(root, config)
            if not model.built:
                raise Refused("nothing says the shape of its input", f"{root.class_name} {root.name!r}")
        if functional and root.class_name not in MODELS:
            networks.maker.notes.append(f"a functional model now; methods of its class {root.class_name} are not in the file")
        networks.fill()
        _trainable(model, root.metadata)
        networks.maker.notes += compile_as_saved(model, saved, custom, networks.names)
    return Rebuilt(model, networks.names, networks.maker.applied, networks.maker.notes)


def _tree(model: Any, depth: int) -> Iterator[str]:
    for layer in model.layers:
        yield f"{'  ' * depth}{layer.name}: {type(layer).__name__}"
        if isinstance(layer, keras.Model):
            yield from _tree(layer, depth + 1)


def _trainable(model: Any, metadata: Mapping[str, Any]) -> None:
    if metadata.get("trainable") is False:
        model.trainable = False
