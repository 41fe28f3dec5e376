"""The result of an edit or of its dry run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional

from compat_matrix.models.edits.draft import Draft, sizes_of
from compat_matrix.models.edits.proof import OtherTextError
from reference_impl.format.container import files

SCHEMA = 1


@dataclass(frozen=True)
class Edited:
    """One edited model.

    Attributes:
      source, output: directories; no output is a dry run.
      changes: what was done, one sentence each.
      kept: requested changes that were not made, each with its reason.
      removed: names of what is gone: objects, checkpoint keys, nodes of the graph, functions.
      before, after: sizes; after a dry run those that the files would have.
    """

    source: str
    output: Optional[str]
    changes: tuple[str, ...]
    kept: tuple[str, ...]
    removed: dict[str, list[str]]
    before: dict[str, int]
    after: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """As one JSON object."""
        return {"schema": SCHEMA, **vars(self)}


def edit(
    path: files.AnyPath, out: Optional[files.AnyPath], change: Callable[[Draft], None], *, follow_links: bool = False
) -> Edited:
    """Apply an edit to a model.

    Args:
      path: the model.
      out: the new directory; None for a dry run, which proves everything but the files.
      change: the edit.

    Raises:
      RefusedError: the edit cannot be done, or not safely.
      SavedModelError: the model cannot be read, or is damaged.
    """
    try:
        draft = _changed(path, change, follow_links, canonical=False)
    except OtherTextError:
        draft = _changed(path, change, follow_links, canonical=True)
    if out is None:
        after = draft.sizes_after()
    else:
        draft.write(out)
        after = sizes_of(draft.message, files.Root(out))
    return Edited(
        str(draft.model.directory),
        None if out is None else str(out),
        tuple(draft.changes),
        tuple(draft.kept),
        {kind: names for kind, names in draft.removed.items() if names},
        draft.size_before,
        after,
    )


def _changed(path: files.AnyPath, change: Callable[[Draft], None], follow_links: bool, canonical: bool) -> Draft:
    draft = Draft(path, follow_links=follow_links, canonical=canonical)
    change(draft)
    draft.finish()
    return draft
