"""Rebuild a Keras 2 SavedModel as a Keras 3 model. Imports Keras: for workers only."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Union

import keras

from savedmodel_compat.keras import SavedModelLayer
from savedmodel_migration.keras_2_to_3.building.compiling import compile_as_saved
from savedmodel_migration.keras_2_to_3.building.cuts import Cuts
from savedmodel_migration.keras_2_to_3.building.network import MODELS, Networks, Tables
from savedmodel_migration.keras_2_to_3.building.weight_guard import guarded, refuse_large_tensors
from savedmodel_migration.keras_2_to_3.reading.saved import SavedKeras, SavedObject
from savedmodel_migration.keras_2_to_3.refused import CUSTOM_OBJECTS, OWN_CODE, Refused
from savedmodel_migration.keras_2_to_3.rules import Layer, Options


@dataclass
class Rebuilt:
    """A rebuilt model."""

    model: Any  # the Keras 3 model, with the saved weights
    variables: Mapping[str, Any]  # checkpoint key -> Keras 3 variable
    applied: Mapping[str, list[str]] = field(default_factory=dict)  # what rules did, by layer
    notes: list[str] = field(default_factory=list)  # what the user should know
    # Why layers were not rebuilt but cut out of the SavedModel, a refusal for each.
    wrapped: list[Refused] = field(default_factory=list)
    # Paths in the object graph of states of recurrent layers, which are not zero in the file and
    # start from zeros now.
    lost_states: list[tuple[str, ...]] = field(default_factory=list)
    layers: list[tuple[Any, Layer, SavedObject]] = field(
        default_factory=list
    )  # rebuilt, its configuration, the saved one
    followed: Callable[[Any, Layer], Any] = lambda answer, told: (
        answer
    )  # what a layer returned, after the one behind it

    @property
    def names(self) -> dict[str, str]:
        """Checkpoint key -> path of the Keras 3 variable, which may be that of several variables:
        of layers of nested models.
        """
        return {key: variable.path for key, variable in self.variables.items()}

    @property
    def half(self) -> bool:
        """Whether a layer computes in 16 bits."""
        layers = self.model._flatten_layers()
        return any(
            getattr(layer, "compute_dtype", "") in ("float16", "bfloat16") for layer in layers
        )

    @property
    def tree(self) -> list[str]:
        """The layers of the new model, a line for each, nested models with their layers below."""
        return list(_tree(self.model, 0))


def rebuild(
    path: Union[str, os.PathLike[str]],
    custom: Mapping[str, Any] | None = None,
    trust_lambda: bool = False,
    tables: Tables | None = None,
    cuts: Cuts | None = None,
    unlike: Mapping[str, Refused] | None = None,
    cut: Collection[str] = (),
) -> Rebuilt:
    """Return the Keras 3 model of a Keras 2 SavedModel.

    Args:
      path: the SavedModel.
      custom: classes and functions that the user named, by name.
      trust_lambda: run the Python code of Lambda layers.
      tables: reads the tables of the loaded model, for the vocabularies of lookup layers.
      cuts: makes the layers that cannot be rebuilt; without it, such a layer is refused.
      unlike: path in the object graph -> what the layer there does otherwise than that of Keras; it
        is made of its graph.
      cut: paths of those among them that are cut out.

    Raises:
      Refused: a layer cannot be rebuilt, or no layer can.
      NotKeras: the model says nothing of its layers.
      SavedModelError: a file is missing or damaged.
    """
    custom, unlike = dict(custom or {}), dict(unlike or {})
    refused = {path: unlike[path] for path in cut}
    with SavedKeras(path) as saved:
        while True:
            networks = Networks(
                saved, custom, Options(frozenset(custom), trust_lambda), tables, cuts
            )
            networks.refused.update(refused)
            networks.unlike.update(unlike)
            try:
                return _rebuilt(networks, custom)
            except Refused as why:
                item = networks.of_refusal(why.path) if cuts is not None else None
                if item is None:
                    raise
                # Only its call or its weights showed that it cannot be rebuilt. The next model has
                # it cut out.
                refused = {**networks.refused, item.path: why}


def _rebuilt(networks: Networks, custom: Mapping[str, Any]) -> Rebuilt:
    saved = networks.saved
    root = saved.root
    config, label = root.config, f"{root.class_name or 'model'} {root.name!r}"
    if config is None:
        raise saved.unconfigured()
    functional = root.is_network
    if not functional and root.class_name not in custom:
        raise Refused(OWN_CODE, label, "", CUSTOM_OBJECTS)
    shared = saved.shared_layer() if functional else None
    if shared is not None:
        found = f"{shared.class_name} {shared.name!r}"
        raise Refused(
            "two models share it, and a .keras file holds a layer of its own for each model", found
        )
    with guarded(saved.size()):
        model = (
            networks.of(root, root.class_name, config)
            if functional
            else networks.custom_model(root, config)
        )
        if not model.built:
            raise Refused("nothing says the shape of its input", label)
    refuse_large_tensors(model)
    if networks.refused and not any(map(_is_of_keras, model._flatten_layers())):
        raise next(iter(networks.refused.values()))
    if functional and root.class_name not in MODELS:
        networks.maker.notes.append(
            f"a functional model now; methods of its class {root.class_name} are not in the file"
        )
    networks.fill()
    if root.metadata.get("trainable") is False:
        model.trainable = False
    networks.maker.notes += compile_as_saved(model, saved, custom, networks.variables)
    wrapped = list(networks.refused.values())
    maker = networks.maker
    states, layers = networks.lost_states, networks.rebuilt()
    return Rebuilt(
        model,
        networks.variables,
        maker.applied,
        maker.notes,
        wrapped,
        states,
        layers,
        maker.followed,
    )


def _is_of_keras(layer: Any) -> bool:
    """Whether a layer is one that Keras has, with something to compute."""
    return not isinstance(layer, (keras.Model, keras.layers.InputLayer, SavedModelLayer))


def _tree(model: Any, depth: int) -> Iterator[str]:
    for layer in model.layers:
        yield f"{'  ' * depth}{layer.name}: {type(layer).__name__}"
        if isinstance(layer, keras.Model):
            yield from _tree(layer, depth + 1)
