"""What is written of objects of registered classes (REV-04)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from reference_impl import tensorflow_api as api
from reference_impl.errors import SavedModelError, SaveError
from reference_impl.extension import registered_objects, registration
from reference_impl.format import schema
from reference_impl.format.values import structure
from reference_impl.saving.tree import Node


def fill(out: Any, node: Node) -> Optional[Any]:
    """Write the registered name of an object into its SavedObject; its RegisteredState, if there is anything to keep.

    Raises:
      SaveError: what `serialize` gave cannot be stored.
    """
    kept = registered_objects.kept(node.object)
    if kept is not None:
        saved, state = kept
        out.registered_name = saved.registered_name
        if saved.HasField("serialized_user_proto"):
            out.serialized_user_proto.CopyFrom(saved.serialized_user_proto)
        if state is None:
            return None
        copy = schema.RegisteredState()
        copy.CopyFrom(state)
        copy.node_id = node.number
        return copy
    cls = type(node.object)
    found = registration.find_class(getattr(cls, registered_objects.REGISTERED_CLASS, cls))
    if found is None:
        return None
    out.registered_name = found.name
    if found.serialize is None:
        _own_message(out, node)
        return None
    return _state(found.serialize(node.object), node)


def _own_message(out: Any, node: Node) -> None:
    """What the object puts into the file itself, as TensorFlow lets it (`_serialize_to_proto`)."""
    message = api.own_message(node.object, out)
    if message is not None:
        out.serialized_user_proto.type_url = f"type.googleapis.com/{message.DESCRIPTOR.full_name}"
        out.serialized_user_proto.value = message.SerializeToString()


def _state(values: Any, node: Node) -> Any:
    if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
        raise SaveError("serialize of its registered class must give a dict with string keys", node=node.path, clause="REV-04")
    out = schema.RegisteredState(node_id=node.number)
    plain = {}
    for key in sorted(values):
        if isinstance(values[key], (bytes, bytearray)):
            out.blobs[key] = bytes(values[key])
        elif _is_plain(values[key]):
            plain[key] = values[key]
        else:
            reason = f"serialize of its registered class gave a {type(values[key]).__name__} for {key!r}"
            raise SaveError(f"{reason}; only plain values and bytes can be stored", node=node.path, clause="REV-04")
    try:
        out.values.CopyFrom(structure.encode(plain, node.path))
    except SavedModelError as error:
        raise SaveError(f"what serialize gave cannot be stored: {error.reason}", node=node.path, clause="REV-04") from error
    return out


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if type(value) in (list, tuple):
        return all(_is_plain(item) for item in value)
    return value is None or type(value) in (bool, int, float, str)
