"""Hooks: participants of a save beside the kinds.

`reference_impl.extension` attaches one to a save of objects whose data the shipped format cannot
store. Any other save has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Optional, Protocol

from reference_impl import tensorflow_api as api
from reference_impl.extension import initial_values, registered_objects, registration
from reference_impl.extension.save_context import SaveContext
from reference_impl.format import schema
from reference_impl.kinds import optimizer
from reference_impl.kinds.kind import SavedNode
from reference_impl.saving.node import Node


class Addition(Protocol):
    """The part of one hook in the messages of an export."""

    def write(self, out: schema.MetaGraphDef, nodes: Sequence[SavedNode]) -> None:
        """Write into a MetaGraph whose object graph has all nodes."""


class SaveHook(Protocol):
    """A participant of one save."""

    def dependencies(self, obj: object) -> Optional[Mapping[str, object]]:
        """Return the objects that a loader needs to make an object, by name; None if TensorFlow
        knows them.
        """

    def add(self, save: SaveContext) -> Addition:
        """Add functions, and the constants they capture, to the contents of the export.

        Raises SaveError.
        """


def hooks_of(nodes: Iterable[Node]) -> Sequence[SaveHook]:
    """Return the hooks of a save of these objects: that of `reference_impl.extension`, if it has
    something to save of one of them.
    """
    if not any(map(_is_extended, nodes)):
        return ()
    from reference_impl.extension.save_hook import ExtensionSaveHook

    return (ExtensionSaveHook(),)


def _is_extended(node: Node) -> bool:
    """Return whether an object has data that only the extension can store.

    Examples are an optimizer, an object of a registered class, a variable with an initialiser.
    """
    obj, cls = node.object, type(node.object)
    if node.is_variable:
        return hasattr(node.parts[0], initial_values.ATTRIBUTE)
    if isinstance(obj, api.Function):
        return api.creation_trace(obj) is not None  # it made variables
    return (
        node.kind is optimizer.KIND
        or isinstance(obj, optimizer.LoadedOptimizer)
        or getattr(cls, registered_objects.REGISTERED_CLASS, cls) in registration.by_class
        or registered_objects.KEPT in getattr(obj, "__dict__", ())
    )
