"""Hooks: participants of a load beside the kinds.

`reference_impl.extension` attaches one to a load of a file that has its messages, or registered
classes. Any other load has none.
"""

from __future__ import annotations

from typing import Any, Optional, Protocol

from reference_impl.format import schema
from reference_impl.functions.load_context import LoadContext


class LoadHook(Protocol):
    """A participant of one load."""

    def check(self, load: LoadContext) -> None:
        """Refuse a load, before anything is made."""

    def make(self, load: LoadContext, number: int, node: schema.SavedObject) -> Optional[Any]:
        """Return the object of a node, or None if its kind should make it."""

    def made(self, load: LoadContext, number: int, node: schema.SavedObject, made: object) -> None:
        """Take note of the object that was made of a node."""

    def attach(self, load: LoadContext) -> None:
        """Attach more to the objects, which have their children and captures."""
