"""The export as hooks of a save see it (`reference_impl.extension.save_context.SaveContext`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

import tensorflow as tf

from reference_impl.errors import SaveError
from reference_impl.extension.save_context import Change
from reference_impl.format import schema
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.names import ExportName, FileName
from reference_impl.kinds.optimizer import SavedSlot
from reference_impl.saving import traces
from reference_impl.saving.captures import Captures
from reference_impl.saving.export_library import ExportLibrary
from reference_impl.saving.exported_functions import ExportedFunction
from reference_impl.saving.node import Node
from reference_impl.saving.tree import TreeBuilder


class HookContext:
    """The contents of an export; functions are added to its library, constants to its tree."""

    def __init__(
        self,
        tree: TreeBuilder,
        library: ExportLibrary,
        captures: Captures,
        functions: Mapping[int, ExportedFunction],
        slots: Sequence[SavedSlot],
        functional_optimizers: bool,
    ):
        self._tree, self._library, self._captures = tree, library, captures
        self._functions = functions
        self.slots, self.functional_optimizers = slots, functional_optimizers

    @property
    def nodes(self) -> Sequence[Node]:
        return self._tree.nodes

    def number_of(self, obj: object) -> Optional[int]:
        return self._tree.number_of(obj)

    def owner(self, capture: Any) -> Optional[int]:
        return self._captures.owner(capture)

    def exported_name(self, function: object) -> Optional[ExportName]:
        number = self._tree.number_of(function)
        found = None if number is None else self._functions.get(number)
        return None if found is None else found.name

    def add_loaded(self, library: FunctionLibrary, name: FileName) -> ExportName:
        return self._library.add(library, name)

    def add_traced(
        self, function: tf.types.experimental.ConcreteFunction, path: str
    ) -> tuple[ExportName, Sequence[int]]:
        trace = traces.trace_of(function)
        name = self._library.add(trace.source, trace.name, trace.traced)
        return name, self._captures.resolve(trace, path, None)

    def add_derived(
        self, definition: schema.FunctionDef, hint: str, change: Optional[Change] = None
    ) -> ExportName:
        return _derive(self._library, definition, hint, change)

    def library_of(
        self, definition: schema.FunctionDef, hint: str, change: Change
    ) -> tuple[FunctionLibrary, FileName]:
        library = ExportLibrary()
        name = _derive(library, definition, hint, change)
        message = schema.FunctionDefLibrary(function=library.close().sorted())
        return FunctionLibrary(message), FileName(name)

    def report_loss(self, error: SaveError, what: str) -> None:
        self._tree.report_loss(error, what)


def _derive(
    library: ExportLibrary, definition: schema.FunctionDef, hint: str, change: Optional[Change]
) -> ExportName:
    """Add a function of TensorFlow's runtime to a library, and change it and what it calls."""
    name = library.derive(definition, hint)
    if change is not None:
        for called in library.closure(name):
            change(library.definitions[called])
    return name
