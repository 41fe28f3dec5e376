"""Keras: export data of its models. Keras itself is not imported."""

from __future__ import annotations

from typing import Any, Optional


def keras_signature(obj: object) -> Optional[Any]:
    """Return the default signature function of a Keras model, or None. In Keras 2.2-3.15."""
    return getattr(obj, "_default_save_signature", None)


def keras_identity(obj: object) -> str:
    """Return the identifier of a live object of Keras 2 in files, or "" for other objects.

    `Trackable._object_identifier` and `_tracking_metadata` are in 2.2-2.21. A Keras 3 object has
    the general identifier.
    """
    found = getattr(obj, "_object_identifier", "")
    return found if isinstance(found, str) else ""


def keras_metadata(obj: Any) -> str:
    """Return the JSON text from which Keras 2 can rebuild the object, or "" if the object's class
    does not support this.
    """
    try:
        return str(obj._tracking_metadata)
    except Exception:  # get_config is user code, and only Keras needs its result
        return ""
