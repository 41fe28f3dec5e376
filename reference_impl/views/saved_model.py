"""The result of `reference_impl.inspect`, and its JSON form.

The JSON form is the named tuples field by field: a class becomes an object, a tuple a list.
``schema`` is a version number, raised by changes that break readers; fields may be added without a
new number. A shape is a list of sizes, ``null`` where a size is unknown, or ``null`` altogether
when even the rank is. Objects refer to each other by ``id``, so cycles and shared objects need no
special case. Sizes are bytes.

RFC: GOAL-07
"""

# Annotations are evaluated here: if they were text, typing would compile each one at the start of
# each command.
from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

from reference_impl.views.types import Checkpoint, File, MetaGraph

SCHEMA = 1


class SavedModelInfo(NamedTuple):
    """A SavedModel directory. ``problems`` lists what is damaged or missing, one sentence each."""

    path: str
    format: str
    schema_version: int
    size: int
    meta_graphs: tuple[MetaGraph, ...]
    checkpoint: Optional[Checkpoint]
    fingerprint: Optional[dict[str, Any]]
    debug_info: Optional[File]
    extra: tuple[File, ...]
    problems: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form described at the top of this module."""
        return {"schema": SCHEMA, **_json(self)}

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        from reference_impl.views import notebook

        stored = self.checkpoint
        size = (
            f"checkpoint: {stored.tensors:,} tensors, {stored.size:,} bytes"
            if stored
            else "no checkpoint"
        )
        return notebook.show(
            self.path,
            f"{self.format}, {self.size:,} bytes, {size}",
            self.problems,
            self.meta_graphs,
        )


_PLAIN = (str, int, bool, type(None))


def _json(value: Any) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    pairs: Iterable[tuple[str, Any]]
    if hasattr(kind, "_fields"):  # a named tuple
        pairs = zip(kind._fields, value)
    elif isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, (str, int)):
        return value
    else:
        return [item if type(item) in _PLAIN else _json(item) for item in value]
    return {key: item if type(item) in _PLAIN else _json(item) for key, item in pairs}
