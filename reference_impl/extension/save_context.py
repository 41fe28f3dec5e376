"""The view that a hook of a save has of the export: it may read the objects and add functions.

`reference_impl.saving.hook_context` implements this interface. The extension itself does not know
the modules of a save.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional, Protocol

import tensorflow as tf

from reference_impl.errors import SaveError
from reference_impl.format import schema
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.names import ExportName, FileName
from reference_impl.kinds.kind import SavedNode
from reference_impl.kinds.optimizer import SavedSlot

Change = Callable[[schema.FunctionDef], None]  # of a FunctionDef in place


class SaveContext(Protocol):
    """The contents of an export while hooks may add functions, and the constants they capture.

    Attributes:
      functional_optimizers: whether update rules of optimizers are traced and saved.
    """

    @property
    def functional_optimizers(self) -> bool: ...

    @property
    def nodes(self) -> Sequence[SavedNode]:
        """The objects of the export at present."""

    @property
    def slots(self) -> Sequence[SavedSlot]:
        """The slots of all optimizers."""

    def number_of(self, obj: object) -> Optional[int]:
        """Return the number of an object, or None if the export does not have it."""

    def owner(self, capture: Any) -> Optional[int]:
        """Return the number of the owner of a captured tensor, or None if it is not reachable.

        A constant joins the export.
        """

    def exported_name(self, function: object) -> Optional[ExportName]:
        """Return the name of a live concrete function in the export, or None."""

    def add_loaded(self, library: FunctionLibrary, name: FileName) -> ExportName:
        """Add a function of a loaded model; return its name in the export."""

    def add_traced(
        self, function: tf.types.experimental.ConcreteFunction, path: str
    ) -> tuple[ExportName, Sequence[int]]:
        """Add a function that was traced in this process.

        Return its name in the export, and the numbers of the objects that it captures. An error
        about a capture names `path`.
        """

    def add_derived(
        self, definition: schema.FunctionDef, hint: str, change: Optional[Change] = None
    ) -> ExportName:
        """Add a FunctionDef that has names of TensorFlow's runtime; return its name in the export,
        which contains `hint`.

        `change` is applied to the copies of the function and of all functions that it calls.
        """

    def library_of(
        self, definition: schema.FunctionDef, hint: str, change: Change
    ) -> tuple[FunctionLibrary, FileName]:
        """Return what `add_derived` would add as a library of its own, to run it before it is
        saved.
        """

    def report_loss(self, error: SaveError, what: str) -> None:
        """Raise the error of a loss or, without ``strict``, warn of it."""
