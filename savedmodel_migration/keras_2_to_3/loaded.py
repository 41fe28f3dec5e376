"""The old model, which is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat_matrix.workers import table_contents


class Loaded:
    """A SavedModel.

    ``tf``, ``reference``: TensorFlow and `reference_impl`, which take seconds to import.
    """

    def __init__(self, tf: Any, reference: Any, directory: str) -> None:
        self.tf, self.reference, self.directory = tf, reference, directory
        self._root: Any = None

    def model(self) -> Any:
        """Return the loaded model. Raises what `reference_impl.load` raises."""
        if self._root is None:
            self._root = self.reference.load(self.directory)
        return self._root

    def rows(self, path: str, dtypes: Sequence[str]) -> Any:
        """Return keys and values of the table at ``path``, None where there is none with these
        dtypes.
        """
        found = self.model()
        for part in path.split("."):
            found = getattr(found, part, None)
        handle = getattr(found, "resource_handle", None)
        if handle is None:
            return None
        # A module of workers, in Python 3.6 syntax.
        return table_contents.rows_of(self.tf, handle, dtypes)  # type: ignore[no-untyped-call]
