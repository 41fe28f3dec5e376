"""State that a checkpoint saver of the user wrote: one that was registered for a class of objects.

Such a saver chooses its own keys and form, so only itself can read them. TensorFlow has no public
way to call one; it calls them when it reads a checkpoint. So it is given a skeleton of the model:
the objects in question, at the places at which the model has them, and nothing else.

RFC: RP-08
"""

from __future__ import annotations

import warnings
from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import MissingValueError, UnsupportedModelError, listed
from reference_impl.functions.load_context import LoadContext
from reference_impl.kinds.user_object import LoadedObject


class UnrestoredStateWarning(UserWarning):
    """An object was loaded without state that the checkpoint has for it."""


_HOW = "Before the load, register the saver, and the class by reference_impl.register"


def restore(load: LoadContext) -> None:
    """Let registered savers restore the objects whose state they wrote.

    Raises:
      MissingValueError: a saver is not registered in this process, or not for the classes of the
        objects that were made.
      UnsupportedModelError: the model is loaded into a graph, in which no saver can run.
    """
    numbers = [
        number
        for number, made in enumerate(load.objects)
        if made is not None and load.has_saver(number)
    ]
    if not numbers or load.options.skip_checkpoint:
        return
    if not tf.executing_eagerly():
        raise UnsupportedModelError(
            "a registered checkpoint saver is not supported in graph mode"
            f" ({_saver(load, numbers[0])})",
            file=load.file,
            node=load.path(numbers[0]),
        )
    load.checkpoint.check_places()  # TensorFlow reads the files now
    try:
        tf.train.Checkpoint(root=_skeleton(load, numbers)).read(
            load.checkpoint.prefix
        ).expect_partial()
    except ValueError as error:
        if load.options.allow_partial_checkpoint:
            _tell(load, numbers, f"not restored: {error}")
            return
        raise _not_restored(load, numbers[0], f": {error}") from error
    # a saver that is not strict passes over objects that are not its own, one that is unknown over
    # all
    for number in numbers:
        made = load.objects[number]
        if (
            isinstance(made, tf.Variable)
            and not made.is_initialized()
            and not load.options.allow_partial_checkpoint
        ):
            raise _not_restored(load, number, "")
    _tell(load, numbers, "asked to restore it")
    # An object without its class has no attribute in which a saver could put anything.
    without = [number for number in numbers if isinstance(load.objects[number], LoadedObject)]
    if without:
        savers = " and ".join(dict.fromkeys(_saver(load, number) for number in without))
        reason = (
            f"{listed([load.path(number) for number in without])}: {savers} wrote the state and"
            f" does not restore it. {_HOW}"
        )
        warnings.warn(f"{load.file}: {reason}", UnrestoredStateWarning, stacklevel=2)


def _tell(load: LoadContext, numbers: list[int], what: str) -> None:
    """Tell what came of the state that registered savers wrote, if somebody watches the load."""
    if load.watch is not None:
        for number in numbers:
            said = f"{_saver(load, number)}: {what}"
            load.watch.tell("state", load.checkpoint.index, load.label(number), said, "RP-08")


def _saver(load: LoadContext, number: int) -> str:
    return f"the registered checkpoint saver {load.graph.nodes[number].registered_saver!r}"


def _not_restored(load: LoadContext, number: int, why: str) -> MissingValueError:
    reason = (
        f"Key {load.checkpoint.paths.text(number)} not found in checkpoint: {_saver(load, number)}"
        f" wrote the state and does not restore it{why}. {_HOW}"
    )
    return MissingValueError(reason, file=load.file, node=load.path(number), rule="SM-KEY-8")


def _skeleton(load: LoadContext, numbers: list[int]) -> Any:
    """Return a root that leads to the objects of these numbers by the names that the model has."""
    made: dict[int, Any] = {number: load.objects[number] for number in numbers}

    def place(number: int) -> Any:
        return made.setdefault(number, api.AutoTrackable())

    root = place(0)
    for number in numbers:
        for parent, name, child in load.checkpoint.paths.steps(number):
            if parent not in numbers:  # one of them leads to its own children
                api.track(place(parent), name, place(child))
    return root
