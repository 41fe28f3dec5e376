"""State of objects that no function of the file restores, in two forms.

Python state (`tf.train.experimental.PythonState`) and its like is a value of the checkpoint that only the class of the object
understands. An object of a registered class gets it back. Any other object keeps the value, so that saving it again loses
nothing.

A checkpoint saver that the writing program registered wrote the state of its objects in its own way, variables included. The file
has only its name. ``LoadOptions(savers=...)`` gives the function that restores what it wrote.

RFC: RES-15, REV-04, RP-08
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import MissingValueError, UnsupportedModelError, listed
from reference_impl.format.names import PRIVATE
from reference_impl.kinds.checkpoint import without_saver
from reference_impl.kinds.load import Load
from reference_impl.kinds.user_object import LoadedObject

PYTHON = "py_state"  # the attribute of Python state in checkpoints
_KEPT = f"{PRIVATE}state"  # attribute of a loaded object: {attribute in the checkpoint: tensor}


class UnrestoredStateWarning(UserWarning):
    """An object was loaded without state that the checkpoint has for it."""


def of(obj: Any) -> dict[str, tf.Tensor]:
    """Return the state that a loaded object has kept for the next save: attribute in the checkpoint -> tensor."""
    return dict(vars(obj).get(_KEPT, {})) if isinstance(obj, LoadedObject) else {}


def restore(load: Load) -> None:
    """Restore the state of all objects that no function restores, once they have their children.

    Raises:
      MissingValueError: a variable of a registered saver has no value.
      UnsupportedModelError: savers are given for a load into a graph.
      SavedModelError: the checkpoint is damaged.
      Exception: what a given function, or the class of an object, raises.
    """
    if load.options.skip_checkpoint:
        return
    for number, attribute, key in _alone(load):
        value, obj = load.checkpoint.read(key), load.objects[number]
        if attribute == PYTHON and isinstance(obj, tf.train.experimental.PythonState):
            obj.deserialize(value.numpy())
        elif isinstance(obj, LoadedObject):
            obj.__dict__.setdefault(_KEPT, {})[attribute] = value
    _restore_by_savers(load)


def _alone(load: Load) -> Iterator[tuple[int, str, str]]:
    """Yield the number of each object with state that no function restores, with the attribute and its key."""
    plain = [
        number
        for number, node in enumerate(load.graph.nodes)
        if node.WhichOneof("kind") == "user_object" and not node.saveable_objects and load.objects[number] is not None
    ]
    if not plain or not load.directory.has_checkpoint or not tf.executing_eagerly():
        return
    for number in plain:
        for attribute, key in load.checkpoint.keys.get(number, {}).items():
            yield number, attribute, key


# Registered savers


def _restore_by_savers(load: Load) -> None:
    """Call the function of each saver with its objects by the names that it gave to them, and the prefix of the checkpoint."""
    given = load.options.savers or {}
    for saver, numbers in sorted(_by_saver(load).items()):
        if saver not in given:
            _warn(load, saver, numbers)
            continue
        if not tf.executing_eagerly():
            raise UnsupportedModelError("LoadOptions(savers=...) needs eager execution", file=load.file, clause="REV-04")
        objects = {load.checkpoint.name_for_saver(number): load.objects[number] for number in numbers}
        given[saver](trackables=objects, merged_prefix=load.checkpoint.prefix)
        for number in numbers:
            _check_value(load, number, saver)


def _by_saver(load: Load) -> dict[str, list[int]]:
    """Return the name of each saver of the file -> the loaded objects whose state it wrote."""
    found: dict[str, list[int]] = {}
    for number, node in enumerate(load.graph.nodes):
        if node.registered_saver and load.objects[number] is not None:
            found.setdefault(node.registered_saver, []).append(number)
    return found


def _warn(load: Load, saver: str, numbers: Sequence[int]) -> None:
    """Name the objects that are without the state that a saver wrote. Variables among them have raised an error before."""
    paths = [load.path(number) for number in numbers if not api.is_variable(load.objects[number])]
    if paths:
        warnings.warn(f"{load.file}: {listed(paths)}: {without_saver(saver)}", UnrestoredStateWarning, stacklevel=2)


def _check_value(load: Load, number: int, saver: str) -> None:
    obj = load.objects[number]
    parts = api.variable_components(obj) if api.is_variable(obj) else []
    if not all(bool(part.is_initialized()) for part in parts) and not load.options.allow_partial_checkpoint:
        reason = f"the restore function given for the saver {saver!r} left the variable without a value"
        raise MissingValueError(reason, file=load.checkpoint.prefix, node=load.path(number))
