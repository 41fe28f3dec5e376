"""Layers that cannot be rebuilt, cut out of the loaded SavedModel.

Imports TensorFlow and Keras: for workers only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Optional, Union

import reference_impl
from reference_impl.errors import SavedModelError
from savedmodel_compat.keras import SavedModelLayer
from savedmodel_compat.keras.endpoint import Endpoint, variables_of
from savedmodel_compat.keras.layer import holds_numbers
from savedmodel_migration.keras_2_to_3.reading.saved import SavedKeras, SavedObject, at
from savedmodel_migration.keras_2_to_3.refused import Refused
from savedmodel_migration.keras_2_to_3.wrap import specs_of


class Cuts:
    """Makes a `SavedModelLayer` of a layer of the old model, with the functions that Keras 2 traced
    of it.

    ``original`` returns what `reference_impl.load` returned for the whole model. ``folder`` gets a
    SavedModel for each layer, which the layers read again when the new model is saved.
    """

    def __init__(self, original: Callable[[], Any], folder: Union[str, os.PathLike[str]]) -> None:
        self.original, self.folder = original, Path(folder)

    def layer(self, item: SavedObject) -> Any:
        """Return a new layer.

        Raises Refused: the file has no function of it, or its functions need something outside of
        it.
        """
        part, folder = at(self.original(), item.names), self.folder / str(item.node)
        if not item.names or not callable(part):
            raise Refused("the file holds no function of it")
        if not folder.exists():
            try:
                reference_impl.save(part, folder)
            except SavedModelError as error:
                raise Refused(f"it cannot be cut out of the SavedModel: {error}") from None
        trains = item.metadata.get("trainable") is not False
        return SavedModelLayer(folder, trainable=trains, name=item.name.replace("/", "_") or None)

    def variables(self, saved: SavedKeras, item: SavedObject, layer: Any) -> dict[str, Any]:
        """Return checkpoint key -> Keras variable, for the variables of a layer that was cut
        out.
        """
        keys = {id(variable): key for key, variable in variables_by_key(saved, self.original())}
        before = [
            variable
            for variable, _ in variables_of(at(self.original(), item.names))
            if holds_numbers(variable)
        ]
        # A model that is saved again has its variables in the same order.
        pairs = zip(before, layer.saved_variables)
        return {keys[id(variable)]: view for variable, view in pairs if id(variable) in keys}


def input_of(layer: Any) -> Optional[tuple[tuple[Optional[int], ...], str]]:
    """Return the shape and the dtype of the only input of a layer that was cut out, None if it has
    several.
    """
    try:
        spec = specs_of(Endpoint(layer.resolved_object))
    except (Refused, ValueError):
        return None
    return (tuple(spec.shape), spec.dtype.name) if hasattr(spec, "shape") else None


def variables_by_key(saved: SavedKeras, root: Any) -> Iterator[tuple[str, Any]]:
    """Yield the checkpoint key of each variable of a loaded model, and the variable."""
    for number, key in saved.variable_keys().items():
        names = saved.paths.names(number)
        if names is not None:
            yield key, at(root, names)
