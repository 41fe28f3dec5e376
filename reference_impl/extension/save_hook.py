"""The hook of a save, through which objects are saved that the shipped format cannot store.

Only a save of objects that need the extension has this hook (`reference_impl.saving.hooks`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from reference_impl.drop_in import hidden_children
from reference_impl.extension import optimizer_writer, registered_objects
from reference_impl.extension.initial_value_writer import InitialValues
from reference_impl.extension.save_context import SaveContext
from reference_impl.format import extension, schema
from reference_impl.kinds.kind import SavedNode


class ExtensionSaveHook:
    """The hook of one save, a `reference_impl.saving.hooks.SaveHook`."""

    def dependencies(self, obj: object) -> Optional[Mapping[str, object]]:
        """Return the dependencies that the file gave a loaded object whose class is unknown here;
        None for any other object.
        """
        kept = registered_objects.kept(obj)
        if kept is None:
            return None
        held = {**vars(obj), **hidden_children.of(obj)}
        return {item.local_name: held.get(item.local_name) for item in kept[0].dependencies}

    def add(self, save: SaveContext) -> ExtensionAddition:
        """Add the functions of initial values and update rules to the contents of the export.

        Raises SaveError if one cannot be saved.
        """
        out = schema.Extension()
        out.initial_values.extend(InitialValues(save).messages())
        updates = optimizer_writer.updates(save)
        out.optimizers.extend(optimizer_writer.messages(save, updates))
        return ExtensionAddition(out)


@dataclass(frozen=True)
class ExtensionAddition:
    """The extension message, still without registered objects."""

    message: schema.Extension

    def write(self, out: schema.MetaGraphDef, nodes: Sequence[SavedNode]) -> None:
        """Write the registered names of objects, and the extension message.

        Raises SaveError if the state of an object cannot be stored.
        """
        message = schema.copy_of(self.message)
        for node, saved in zip(nodes, out.object_graph_def.nodes):
            if saved.HasField("user_object"):
                state = registered_objects.write(saved, node.object, node.number, node.path)
                if state is not None:
                    message.registered.append(state)
        extension.write(out, message)
