"""State of objects that no function of the file restores.

Python state (`tf.train.experimental.PythonState`) and its like is a value of the checkpoint that
only the class of the object understands. An object of a registered class gets it back. Any other
object keeps the value, so that saving it again loses nothing.

The state that a registered checkpoint saver wrote is restored by `registered_savers`.

RFC: RES-15, REV-04, RP-08
"""

from __future__ import annotations

from collections.abc import Iterator

import tensorflow as tf

from reference_impl.format.names import PRIVATE
from reference_impl.functions.load_context import Load
from reference_impl.kinds.user_object import LoadedObject

PYTHON = "py_state"  # the attribute of Python state in checkpoints
_KEPT = f"{PRIVATE}state"  # attribute of a loaded object: {attribute in the checkpoint: tensor}


def of(obj: object) -> dict[str, tf.Tensor]:
    """Return the state that a loaded object has kept for the next save: attribute in the checkpoint
    -> tensor.
    """
    return dict(vars(obj).get(_KEPT, {})) if isinstance(obj, LoadedObject) else {}


def restore(load: Load) -> None:
    """Restore the state of all objects that no function restores, once they have their children.

    Raises:
      SavedModelError: the checkpoint is damaged.
      Exception: what the class of an object raises.
    """
    if load.options.skip_checkpoint:
        return
    for number, attribute, key in _alone(load):
        value, obj = load.checkpoint.read(key), load.objects[number]
        if attribute == PYTHON and isinstance(obj, tf.train.experimental.PythonState):
            obj.deserialize(value.numpy())
            came = "given to the object"
        elif isinstance(obj, LoadedObject):
            obj.__dict__.setdefault(_KEPT, {})[attribute] = value
            came = "kept for the next save"
        else:
            came = "not loaded: no code reads it"
        if load.watch is not None:
            said = f"{attribute} from {load.checkpoint.described(key)}: {came}"
            load.watch.tell("state", load.checkpoint.index, load.label(number), said, "RES-15")


def _alone(load: Load) -> Iterator[tuple[int, str, str]]:
    """Yield the number of each object with state that no function restores, with the attribute and
    its key.
    """
    plain = [
        number
        for number, node in enumerate(load.graph.nodes)
        if node.WhichOneof("kind") == "user_object"
        and not node.saveable_objects
        and load.objects[number] is not None
    ]
    if not plain or not load.directory.has_checkpoint or not tf.executing_eagerly():
        return
    for number in plain:
        for attribute, key in load.checkpoint.keys.get(number, {}).items():
            yield number, attribute, key
