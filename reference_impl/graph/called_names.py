"""The names of children that TensorFlow calls, breaks on or looks up.

Written by ``python -m docs.called_names``.

A loader of objects sets each child as an attribute. Where TensorFlow has an attribute of this name,
the child takes its place.
"""

from __future__ import annotations

RELEASES = ("2.4", "2.6", "2.8", "2.10", "2.12", "2.15", "2.18", "2.21")

# tf.saved_model.load calls a child function of this name while it loads. Name -> releases.
RUN: dict[str, tuple[str, ...]] = {
    "_checkpoint_adapter": ("2.18", "2.21"),
    "_gather_saveables_for_checkpoint": (
        "2.4",
        "2.6",
        "2.8",
        "2.10",
        "2.12",
        "2.15",
        "2.18",
        "2.21",
    ),
    "_handle_deferred_dependencies": ("2.4", "2.6", "2.8", "2.10", "2.12", "2.15", "2.18", "2.21"),
    "_lookup_dependency": ("2.4", "2.6", "2.8", "2.10", "2.12", "2.15", "2.18", "2.21"),
    "_maybe_initialize_trackable": ("2.4", "2.6", "2.8", "2.10", "2.12", "2.15", "2.18", "2.21"),
    "_restore_from_checkpoint_position": ("2.4", "2.6", "2.8"),
    "_single_restoration_from_checkpoint_position": ("2.4", "2.6", "2.8"),
    "_track_trackable": ("2.4", "2.6", "2.8", "2.10", "2.12", "2.15", "2.18", "2.21"),
    "_trackable_children": ("2.8", "2.10", "2.12", "2.15", "2.18", "2.21"),
}

# tf.saved_model.load fails if a child has this name. Name -> releases.
BROKEN: dict[str, tuple[str, ...]] = {
    "__class__": ("2.4", "2.6", "2.8", "2.10", "2.12", "2.15", "2.18", "2.21"),
    "__dict__": ("2.4", "2.6", "2.8", "2.10", "2.12", "2.15", "2.18", "2.21"),
    "__weakref__": ("2.4", "2.6", "2.8", "2.10", "2.12", "2.15", "2.18", "2.21"),
    "_checkpoint_dependencies": ("2.4", "2.6", "2.8", "2.10", "2.12", "2.15", "2.18", "2.21"),
    "_create_or_restore_slot_variable": ("2.4", "2.6", "2.8", "2.10"),
    "_deferred_dependencies": ("2.4", "2.6", "2.8", "2.10", "2.12", "2.15", "2.18", "2.21"),
    "_name_based_restores": ("2.4", "2.6", "2.8", "2.10", "2.12", "2.15", "2.18", "2.21"),
    "_object_identifier": ("2.4", "2.6", "2.8", "2.10", "2.12", "2.15", "2.18", "2.21"),
    "_self_name_based_restores": ("2.4", "2.6", "2.8", "2.10", "2.12", "2.15", "2.18", "2.21"),
    "_self_unconditional_checkpoint_dependencies": (
        "2.4",
        "2.6",
        "2.8",
        "2.10",
        "2.12",
        "2.15",
        "2.18",
        "2.21",
    ),
    "_self_unconditional_deferred_dependencies": (
        "2.4",
        "2.6",
        "2.8",
        "2.10",
        "2.12",
        "2.15",
        "2.18",
        "2.21",
    ),
    "_self_unconditional_dependency_names": (
        "2.4",
        "2.6",
        "2.8",
        "2.10",
        "2.12",
        "2.15",
        "2.18",
        "2.21",
    ),
    "_self_update_uid": ("2.4", "2.6", "2.8", "2.10", "2.12", "2.15", "2.18", "2.21"),
    "_tracking_metadata": ("2.4",),
    "_unconditional_checkpoint_dependencies": (
        "2.4",
        "2.6",
        "2.8",
        "2.10",
        "2.12",
        "2.15",
        "2.18",
        "2.21",
    ),
    "_unconditional_dependency_names": (
        "2.4",
        "2.6",
        "2.8",
        "2.10",
        "2.12",
        "2.15",
        "2.18",
        "2.21",
    ),
    "_update_uid": ("2.4", "2.6", "2.8", "2.10", "2.12", "2.15", "2.18", "2.21"),
}

# TensorFlow looks these names up in any object that it tracks or saves.
LOOKED_UP = frozenset(
    {
        "__dict__",
        "__name__",
        "__tf_experimental_restore_capture__",
        "_asdict",
        "_async_checkpointer_impl",
        "_attribute_sentinel",
        "_cached_variable",
        "_caching_device",
        "_create_or_restore_slot_variable",
        "_fields",
        "_handle_data",
        "_is_layer",
        "_manual_tracking",
        "_name",
        "_save_slice_info",
        "_self_destruction_context",
        "_self_saveable_object_factories",
        "_self_setattr_tracking",
        "_self_unconditional_checkpoint_dependencies",
        "_self_update_uid",
        "_setattr_tracking",
        "_should_act_as_resource_variable",
        "_storage",
        "_unique_id",
        "_update_uid",
        "_use_resource_variables",
        "_wrapped_name",
        "_wrapped_slice_spec",
        "_write_object_proto",
    }
)
