"""Trackable objects: their classes, dependencies, resources and content.

Most functions call methods that TensorFlow calls on every object and that Keras, datasets and
tables override.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import tensorflow as tf

from reference_impl.tensorflow_api.functions import ConcreteFunction
from reference_impl.tensorflow_api.lookup import private

# `tf.__internal__` is TensorFlow's interface for Keras, without guarantees for others. All of its
# names here are in 2.5-2.21. Setting an attribute of a `tf.Module` wraps a container as well, but
# gives the wrapper's class no name.
wrap = tf.__internal__.tracking.wrap
TrackableList = type(wrap([]))
TrackableDict = type(wrap({}))
TrackableTuple = type(wrap((wrap([]),)))  # a tuple without trackable elements is not wrapped

# The base of `tf.Module` that lists its attributes as dependencies; TensorFlow and Keras make plain
# ones for their helpers.
AutoTrackable = tf.__internal__.tracking.AutoTrackable
# The base of `tf.RaggedTensor`, `tf.sparse.SparseTensor` and all extension types.
CompositeTensor = tf.__internal__.CompositeTensor
# One variable in several parts, which strategies with parameter servers make.
ShardedVariable = tf.__internal__.distribute.ShardedVariable
# Resources and assets: public as tf.saved_model.Asset and
# tf.saved_model.experimental.TrackableResource, but this package must not use the namespace
# tf.saved_model. Same modules in 2.12-2.21.
Trackable = private("tensorflow.python.trackable.base:Trackable")
Asset = private("tensorflow.python.trackable.asset:Asset")
TrackableResource = private("tensorflow.python.trackable.resource:TrackableResource")
CapturableResource = private("tensorflow.python.trackable.resource:CapturableResource")
# Keras 2 wraps an optimizer in one. Same place in 2.4-2.21.
_Delegating = tf.__internal__.tracking.DelegatingTrackableMixin


def fill(wrapper: Any, elements: Any) -> None:
    """Add elements to a wrapped list, or items to a wrapped dict.

    The wrapper's own `extend` and `update` compare the whole container with a copy after each
    element: minutes for 100,000 elements. The `append` of the base class of a wrapped list compares
    nothing, and a wrapped dict compares nothing while it counts as changed from outside. The base
    class, the attributes that say so and `_update_snapshot`, which makes the copy, are in
    2.13-2.21.
    """
    is_dict = isinstance(wrapper, dict)
    flag = "_self_external_modification" if is_dict else "_external_modification_value"
    if getattr(wrapper, flag, None) is not False or not hasattr(wrapper, "_update_snapshot"):
        (wrapper.update if is_dict else wrapper.extend)(elements)
        return
    setattr(wrapper, flag, True)
    try:
        if is_dict:
            wrapper.update(elements)
        else:
            append = super(TrackableList, wrapper).append
            for element in elements:
                append(element)
    finally:
        setattr(wrapper, flag, False)
        wrapper._update_snapshot()


def initialise_tracking(obj: Any) -> None:
    """Give an object the attributes in which TensorFlow notes its dependencies.

    `_maybe_initialize_trackable` is in 2.4-2.21.
    """
    obj._maybe_initialize_trackable()


def track(parent: Any, name: str, child: object) -> None:
    """Make `child` a dependency of `parent` under a name, if it can be one.

    `Trackable._track_trackable` is in 2.4-2.21.
    """
    if isinstance(child, Trackable):
        parent._track_trackable(child, name, overwrite=True)


def trackable_children(obj: Any, cache: Optional[dict[Any, Any]] = None) -> dict[str, Any]:
    """Return the dependencies of a trackable by name.

    Args:
      obj: the object. If it never had an attribute, it is initialised first, as the hook expects.
      cache: for an export, a dict that all calls share, empty at first: functions and helpers of
        the export are included. Models of Keras 2 make the functions of all layers at the first
        call and keep them in the cache.

    `tf.train.TrackableView` does the same, but refuses objects that are not a `Trackable`. The hook
    is in 2.8-2.21.
    """
    obj._maybe_initialize_trackable()
    options: dict[str, Any] = (
        {"save_type": "checkpoint"}
        if cache is None
        else {"save_type": "savedmodel", "cache": cache}
    )
    return dict(obj._trackable_children(**options))


def needed_before(obj: Any, children: dict[str, Any]) -> dict[str, Any]:
    """Return the objects, by name, that a loader must make before this one.

    The hook is in 2.8-2.21.
    """
    return dict(obj._deserialization_dependencies(children))


def own_message(obj: Any, saved: Any) -> Optional[Any]:
    """Return the message that an object stores in its SavedObject (`saved`), or None.

    The hook is in 2.8-2.21.
    """
    return obj._serialize_to_proto(object_proto=saved)


def makes_itself(cls: type) -> bool:
    """Return whether a class overrides the hook of `Trackable` that makes an object from a
    SavedObject. In 2.8-2.21.
    """
    hook = getattr(cls, "_deserialize_from_proto", None)
    return (
        hook is not None
        and getattr(hook, "__func__", None) is not Trackable._deserialize_from_proto.__func__
    )


def make_from_message(cls: type, **saved: object) -> Any:
    """Make an object of a class from its SavedObject. The hook is in 2.8-2.21."""
    return cls._deserialize_from_proto(**saved)  # type: ignore[attr-defined]


def lists_attributes(hook: Callable[..., Any]) -> Callable[..., Any]:
    """Mark an override of `_trackable_children` that lists attributes as `tf.Module` does."""
    hook.lists_attributes = True  # type: ignore[attr-defined]
    return hook


def tracks_attributes(obj: Any) -> bool:
    """Return whether an object lists its dependencies as `tf.Module` does, without an override that
    lists others.
    """
    hook = type(obj)._trackable_children
    return hook is AutoTrackable._trackable_children or hasattr(hook, "lists_attributes")


def resource_handle(obj: Any) -> Optional[tf.Tensor]:
    """Return the handle of a resource, or None if it has not been created.

    `_resource_handle` is in 2.12-2.21.
    """
    if type(obj).resource_handle is not CapturableResource.resource_handle:
        return obj.resource_handle  # a table that wraps another one has its handle
    return obj._resource_handle


def resource_of(handle: tf.Tensor) -> Optional[Any]:
    """Return the object that owns an eager resource handle, or None if unknown.

    `_parent_trackable` is in 2.6-2.21.
    """
    parent = getattr(handle, "_parent_trackable", None)
    return None if parent is None else parent()


def resource_device(obj: Any) -> str:
    """Return the device on which a resource must be created, or "". In 2.12-2.21."""
    return obj._resource_device or ""


def content_hooks(obj: Any) -> Optional[tuple[Any, Any]]:
    """Return the methods that read and restore the content of a table, or None for an object
    without them. In 2.11-2.21.
    """
    carrier = obj
    while isinstance(
        carrier, _Delegating
    ):  # forwards all hooks to another object (LossScaleOptimizer)
        carrier = carrier._trackable
    return (
        (obj._serialize_to_tensors, obj._restore_from_tensors) if _gives_tensors(carrier) else None
    )


def _gives_tensors(obj: object) -> bool:
    """Return whether the most derived class with a hook for content has the newer one."""
    hooks = "_serialize_to_tensors", "_gather_saveables_for_checkpoint"
    if hooks[0] in getattr(obj, "__dict__", {}):
        return True

    def decides(cls: type) -> bool:
        return cls is Trackable or any(hook in vars(cls) for hook in hooks)

    found = next(filter(decides, type(obj).__mro__), Trackable)
    return found is not Trackable and hooks[0] in vars(found)


def content_name(obj: object) -> str:
    """Return the checkpoint attribute under which older classes keep their content ("table"), or
    "". In 2.11-2.21.
    """
    return getattr(obj, "_LEGACY_SAVEABLE_NAME", None) or ""


def content_factories(obj: Any) -> dict[str, Any]:
    """Return attribute -> factory of a saveable (with `specs` and `restore`), for objects with the
    older hook. In 2.4-2.21.
    """
    return dict(obj._gather_saveables_for_checkpoint())


def loaded_content(factory: object) -> Optional[tuple[Any, Any]]:
    """Return the save and restore function of a factory that TensorFlow made for a loaded model (a
    `partial`), else None.

    In 2.4-2.21.
    """
    given = getattr(factory, "keywords", {})
    functions = given.get("save_function"), given.get("restore_function")
    return (
        functions if all(isinstance(function, ConcreteFunction) for function in functions) else None
    )
