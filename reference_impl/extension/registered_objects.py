"""Objects of registered classes, and the data kept for objects whose class is not registered here.

RFC: REV-04, REV-05, RP-02
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Optional

import tensorflow as tf
from google.protobuf import any_pb2

from reference_impl import tensorflow_api as api
from reference_impl.errors import MalformedError, SavedModelError, SaveError, UnsupportedModelError
from reference_impl.extension import registration
from reference_impl.format import schema
from reference_impl.format.names import PRIVATE
from reference_impl.format.values import structure
from reference_impl.functions.load_context import LoadContext
from reference_impl.kinds import user_object, variable

KEPT = f"{PRIVATE}registered"  # attribute of a loaded object

# Attribute of the classes made here: the class that was registered.
REGISTERED_CLASS = "_registered_class"


class RegistrationWarning(UserWarning):
    """A model names a class that is not registered."""


def make(
    load: LoadContext,
    number: int,
    node: schema.SavedObject,
    state: Optional[schema.RegisteredState],
) -> Optional[Any]:
    """Return the object of a node with a registered name, without its children, or None if the name
    is not registered here.

    Raises:
      MalformedError: the data stored for the object cannot be read.
      UnsupportedModelError: the class made an object that cannot take loaded attributes.
    """
    file, path = load.file, load.path(number)
    found = registration.by_name.get(node.registered_name)
    if found is None:
        text = (
            f"{file}: {path} was saved as {node.registered_name!r}, a name that no class is"
            " registered under"
        )
        fix = (
            "register its class with reference_impl.register before loading to get its Python"
            " methods"
        )
        warnings.warn(
            f"{text}: it becomes a generic object; {fix}", RegistrationWarning, stacklevel=2
        )
        return None
    cls: Any = (
        _callable(found.cls)
        if any(child.local_name == "__call__" for child in node.children)
        else found.cls
    )
    values = _values(state, file, path)
    if found.revive is not None:
        obj = found.revive(cls, values)
    else:
        obj = _from_message(cls, load, node) if api.makes_itself(cls) else cls.__new__(cls)
    if (
        not isinstance(obj, api.Trackable)
        or not isinstance(obj, cls)
        or not hasattr(obj, "__dict__")
    ):
        reason = (
            f"{found.cls.__qualname__}, registered as {found.name!r}, did not give an object of"
            " that class which can be tracked"
        )
        raise UnsupportedModelError(reason, file=file, node=path, clause="REV-04")
    if isinstance(obj, tf.Module) and "_name" not in vars(obj):
        tf.Module.__init__(obj)
    if found.revive is None:
        vars(obj).update(values)
    return obj


def make_variable(load: LoadContext, number: int, node: schema.SavedObject) -> Optional[Any]:
    """Return a variable whose class is registered here and makes its objects itself, with its
    value; None for any other.

    A class of variables matters to the checkpoint saver that is registered for it.
    """
    found = registration.by_name.get(node.registered_name)
    if found is None or not issubclass(found.cls, tf.Variable) or not api.makes_itself(found.cls):
        return None
    made = _from_message(found.cls, load, node)
    if not load.options.skip_checkpoint and not load.has_saver(number):
        key = load.checkpoint.variable(number, node.variable)
        made.assign(load.checkpoint.read(key))
        if load.watch is not None:
            variable.tell_value(load, load.watch, number, key)
    return made


def _from_message(cls: type, load: LoadContext, node: schema.SavedObject) -> Any:
    """Return the object that a class makes from its message, by TensorFlow's own method
    (`_deserialize_from_proto`).
    """
    return api.make_from_message(
        cls,
        proto=any_pb2.Any.FromString(node.serialized_user_proto.SerializeToString()),
        object_proto=node,
        dependencies={item.local_name: load.objects[item.node_id] for item in node.dependencies},
        export_dir=str(load.directory.root.directory),
        asset_file_def=load.meta_graph.asset_file_def,
        operation_attributes={item.name: item.attr for item in load.meta_graph.graph_def.node},
    )


def keep(obj: user_object.LoadedObject, node: schema.SavedObject, state: Optional[Any]) -> None:
    """Keep the messages of an object whose class is not registered here, so that saving the object
    again loses nothing.
    """
    if node.registered_name or node.HasField("serialized_user_proto"):
        obj.__dict__[KEPT] = (node, state)


def kept(obj: object) -> Optional[tuple[Any, Any]]:
    """Return the SavedObject and the RegisteredState (or None) that `keep` stored; None for any
    other object.
    """
    return vars(obj).get(KEPT) if isinstance(obj, user_object.LoadedObject) else None


def _callable(cls: type) -> type:
    """Return a class whose `__call__` calls the function that was exported as `__call__`."""
    members = {
        "__call__": user_object.call,
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        REGISTERED_CLASS: cls,
    }
    return type(cls.__name__, (cls,), members)


def _values(state: Optional[schema.RegisteredState], file: str, path: str) -> dict[str, Any]:
    if state is None:
        return {}
    values = structure.decode(state.values, file, path) if state.HasField("values") else {}
    if not isinstance(values, dict):
        raise MalformedError("the state of a registered object is not a dict", file=file, node=path)
    return {**values, **state.blobs}


def write(out: schema.SavedObject, obj: object, number: int, path: str) -> Optional[Any]:
    """Write the registered name of an object into its SavedObject; return its RegisteredState, or
    None if it has no state.
    """
    known = kept(obj)
    if known is not None:
        saved, state = known
        out.registered_name = saved.registered_name
        if saved.HasField("serialized_user_proto"):
            out.serialized_user_proto.CopyFrom(saved.serialized_user_proto)
        if state is None:
            return None
        copy = schema.copy_of(state)
        copy.node_id = number
        return copy
    cls = type(obj)
    found = registration.by_class.get(getattr(cls, REGISTERED_CLASS, cls))  # exactly this class
    if found is None:
        return None
    out.registered_name = found.name
    if found.serialize is not None:
        return _state(found.serialize(obj), number, path)
    message = api.own_message(obj, out)
    if message is not None:
        out.serialized_user_proto.type_url = f"type.googleapis.com/{message.DESCRIPTOR.full_name}"
        out.serialized_user_proto.value = message.SerializeToString()
    return None


def _state(values: object, number: int, path: str) -> Any:
    if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
        raise SaveError(
            "serialize of its registered class must give a dict with string keys",
            node=path,
            clause="REV-04",
        )
    out = schema.RegisteredState(node_id=number)
    plain = {}
    for key in sorted(values):
        if isinstance(values[key], (bytes, bytearray)):
            out.blobs[key] = bytes(values[key])
        elif _is_plain(values[key]):
            plain[key] = values[key]
        else:
            reason = (
                f"serialize of its registered class gave a {type(values[key]).__name__} for {key!r}"
            )
            raise SaveError(
                f"{reason}; only plain values and bytes can be stored", node=path, clause="REV-04"
            )
    try:
        out.values.CopyFrom(structure.encode(plain, path))
    except SavedModelError as error:
        raise SaveError(
            f"what serialize gave cannot be stored: {error.reason}", node=path, clause="REV-04"
        ) from error
    return out


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if type(value) in (
        list,
        tuple,
        api.TrackableList,
        api.TrackableTuple,
    ):  # `tf.Module` wraps lists and tuples
        return all(_is_plain(item) for item in value)
    return value is None or type(value) in (bool, int, float, str)
