"""An op of a model that acts on the machine, and when it does."""

# Annotations are evaluated here: if they were text, typing would compile each one at the start of
# each command.
from typing import NamedTuple, Optional


class Effect(NamedTuple):
    """Nodes of one op, in the main graph (``function`` is None) or one function, that act on the
    machine when they run.

    ``kind`` is a word of :mod:`.op_effects`, ``does`` says it in full, ``node`` is the first of
    ``count`` nodes. ``paths`` are the known files or addresses. ``at_load`` and ``at_call`` name
    the parts of the model, run by a loader or by users, that reach the nodes. Both are empty for
    nodes that nothing reaches, and None if the search was too large.
    """

    op: str
    kind: str
    does: str
    node: str
    function: Optional[str]
    count: int  # type: ignore[assignment]  # hides tuple.count
    paths: tuple[str, ...]
    at_load: Optional[tuple[str, ...]]
    at_call: Optional[tuple[str, ...]]

    @property
    def when(self) -> str:
        """When the nodes run, in words."""
        if self.at_load is None:
            return "at any time"
        return (
            "at load" if self.at_load else "when called" if self.at_call else "when fetched by name"
        )
