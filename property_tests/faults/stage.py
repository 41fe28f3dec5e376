"""Where faults are planted, and what finders share: filled scenes, hosts, undisturbed runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Shared = TypeVar("Shared")


class Stage(contextlib.ExitStack):
    """A folder for planting faults one after the other. A context manager."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self._shared: dict[Callable[[Path], Any], Any] = {}

    def shared(self, make: Callable[[Path], Shared]) -> Shared:
        """Return what ``make`` makes of a folder of its own; it is made once and closed at the end.

        Example:
          stage.shared(Scenes).copy(SUBJECT, "faulty")
        """
        if make not in self._shared:
            folder = self.folder / make.__name__.lower()
            folder.mkdir(parents=True)
            made = make(folder)
            if isinstance(made, contextlib.AbstractContextManager):
                self.enter_context(made)
            self._shared[make] = made
        found: Shared = self._shared[make]
        return found
