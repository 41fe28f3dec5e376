"""Trackable objects: their dependencies, resources, content.

Most are methods that TensorFlow itself calls on users' objects; overriding classes are found everywhere (Keras, datasets,
tables), so there is no way around them.
"""

from __future__ import annotations

from typing import Any, Optional

import tensorflow as tf

from reference_impl.tensorflow_api.containers import AutoTrackable
from reference_impl.tensorflow_api.functions import ConcreteFunction
from reference_impl.tensorflow_api.lookup import private

# Resources and assets: public as tf.saved_model.Asset and tf.saved_model.experimental.TrackableResource, but the
# namespace tf.saved_model is what this package must do without. Same modules in 2.12-2.21.
Trackable = private("tensorflow.python.trackable.base:Trackable")
Asset = private("tensorflow.python.trackable.asset:Asset")
TrackableResource = private("tensorflow.python.trackable.resource:TrackableResource")
CapturableResource = private("tensorflow.python.trackable.resource:CapturableResource")
# Keras 2 wraps an optimizer in one. Same place in 2.4-2.21.
_Delegating = tf.__internal__.tracking.DelegatingTrackableMixin


def track(parent: Any, name: str, child: Any) -> None:
    """Make `child` a dependency of `parent` under a name, if it can be one. `Trackable._track_trackable` is in 2.4-2.21."""
    if isinstance(child, Trackable):
        parent._track_trackable(child, name, overwrite=True)


def trackable_children(obj: Any, cache: Optional[dict[Any, Any]] = None) -> dict[str, Any]:
    """The dependencies of a trackable by name.

    With a cache (at first an empty dict, the same for all objects of an export), functions and helpers of the export are among
    them; models of Keras 2 make those when they are first asked, all layers at once, and keep them in the cache.
    `tf.train.TrackableView` gives the same, but refuses objects that are no `Trackable`. The hook is in 2.8-2.21; it wants
    objects that never had an attribute to be told of that first.
    """
    obj._maybe_initialize_trackable()
    options: dict[str, Any] = {"save_type": "checkpoint"} if cache is None else {"save_type": "savedmodel", "cache": cache}
    return dict(obj._trackable_children(**options))


def needed_before(obj: Any, children: dict[str, Any]) -> dict[str, Any]:
    """What an object says it is made of, by name: a loader has that before it makes the object. The hook is in 2.8-2.21."""
    return dict(obj._deserialization_dependencies(children))


def own_message(obj: Any, saved: Any) -> Optional[Any]:
    """The protobuf message that an object wants to have in its SavedObject (`saved`), or None. The hook is in 2.8-2.21."""
    return obj._serialize_to_proto(object_proto=saved)


def makes_itself(cls: type) -> bool:
    """Does a class make its objects out of a SavedObject, by an override of the hook of `Trackable`? In 2.8-2.21."""
    hook = getattr(cls, "_deserialize_from_proto", None)
    return hook is not None and getattr(hook, "__func__", None) is not Trackable._deserialize_from_proto.__func__


def make_from_message(cls: type, **saved: Any) -> Any:
    """Let a class make its object out of what a SavedModel says of it. The hook is in 2.8-2.21."""
    return cls._deserialize_from_proto(**saved)  # type: ignore[attr-defined]


def tracks_attributes(obj: Any) -> bool:
    """Does an object list its dependencies in the way of `tf.Module`, and nobody's override of it?"""
    return type(obj)._trackable_children is AutoTrackable._trackable_children


def resource_handle(obj: Any) -> Optional[tf.Tensor]:
    """The handle of a resource, None when nobody has asked for it yet. `_resource_handle` is in 2.12-2.21."""
    if type(obj).resource_handle is not CapturableResource.resource_handle:
        return obj.resource_handle  # a table around another one has that one's
    return obj._resource_handle


def resource_of(handle: tf.Tensor) -> Optional[Any]:
    """The table or other resource that has an eager handle, None when nobody knows. `_parent_trackable` is in 2.6-2.21."""
    parent = getattr(handle, "_parent_trackable", None)
    return None if parent is None else parent()


def resource_device(obj: Any) -> str:
    """The device that a resource must be created on, or "". In 2.12-2.21."""
    return obj._resource_device or ""


def content_hooks(obj: Any) -> Optional[tuple[Any, Any]]:
    """The methods that give the content of a table and take it back, None for objects without. In 2.11-2.21."""
    carrier = obj
    while isinstance(carrier, _Delegating):  # has all hooks, each of which asks the object behind it (LossScaleOptimizer)
        carrier = carrier._trackable
    return (obj._serialize_to_tensors, obj._restore_from_tensors) if _gives_tensors(carrier) else None


def _gives_tensors(obj: Any) -> bool:
    """Does an object have the newer of the two hooks for its content, and no class that is derived from it the older one?"""
    hooks = "_serialize_to_tensors", "_gather_saveables_for_checkpoint"
    if hooks[0] in getattr(obj, "__dict__", {}):
        return True
    found = next((cls for cls in type(obj).__mro__ if cls is Trackable or any(hook in vars(cls) for hook in hooks)), Trackable)
    return found is not Trackable and hooks[0] in vars(found)


def content_name(obj: Any) -> str:
    """The attribute of checkpoints under which older classes keep their content ("table"), or "". In 2.11-2.21."""
    return getattr(obj, "_LEGACY_SAVEABLE_NAME", None) or ""


def content_factories(obj: Any) -> dict[str, Any]:
    """Of objects in the older form: attribute -> maker of a saveable with `specs` and `restore`. In 2.4-2.21."""
    return dict(obj._gather_saveables_for_checkpoint())


def loaded_content(factory: Any) -> Optional[tuple[Any, Any]]:
    """The functions that such a maker asks when TensorFlow made it for a loaded model (a `partial` with both), else None.
    In 2.4-2.21."""
    given = getattr(factory, "keywords", {})
    functions = given.get("save_function"), given.get("restore_function")
    return functions if all(isinstance(function, ConcreteFunction) for function in functions) else None
