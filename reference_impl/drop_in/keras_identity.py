"""Keep the data that Keras 2 writes about its layers, unused, so that Keras can load the model when
it is saved again.

RFC: GOAL-12, NG-04
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Optional

from reference_impl import tensorflow_api as api
from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.format.container.layout import Layout
from reference_impl.format.names import PRIVATE

PREFIX = "_tf_keras_"
_KEPT = f"{PRIVATE}keras_identity"
_METADATA_VERSION = 2  # the file to which Keras 2.5 and later write it


def described(directory: Layout) -> dict[int, Any]:
    """Node number -> KerasObject.

    Damage is a warning, because a load without Keras does not need this data.
    """
    try:
        return dict(directory.keras_metadata)
    except (SavedModelError, OSError) as error:
        warnings.warn(
            f"{error}. The model loads, but what is saved of it will be no Keras model",
            stacklevel=2,
        )
        return {}


def keep(obj: object, saved: schema.SavedUserObject, described: Optional[Any]) -> None:
    """Keep the data of a Keras 2 layer: its SavedUserObject, and its KerasObject from
    keras_metadata.pb.

    Old files have the metadata in the SavedUserObject, and no KerasObject.
    """
    kept = schema.copy_of(saved)
    if described is not None and described.identifier == saved.identifier:
        kept.metadata = described.metadata
        kept.version.CopyFrom(described.version)
    vars(obj)[_KEPT] = kept


def kept(obj: object) -> Optional[Any]:
    """Return the SavedUserObject to write for an object, or None.

    Readers without keras_metadata.pb use its metadata.
    """
    members: Mapping[str, Any] = getattr(obj, "__dict__", {})
    return members.get(_KEPT) or _live(obj)


def _live(obj: object) -> Optional[Any]:
    """Return the SavedUserObject of a live layer, model or metric of Keras 2, without metadata if
    it has no ``get_config``.
    """
    found = api.keras_identity(obj)
    if not found.startswith(PREFIX):
        return None
    out = schema.SavedUserObject(identifier=found, metadata=api.keras_metadata(obj))
    out.version.producer, out.version.min_consumer = _METADATA_VERSION, 1
    return out
