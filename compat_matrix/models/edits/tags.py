"""The tags by which loaders choose a MetaGraph (V1-04, V1-05)."""

from __future__ import annotations

from typing import Optional

from compat_matrix.models.edits.draft import Draft
from compat_matrix.models.edits.refused import RefusedError


def set_tags(draft: Draft, new: str, tags: Optional[str] = None) -> None:
    """Give a MetaGraph other tags.

    Args:
      new: all of them, separated by commas; none at all is a set too.
      tags: those it has; needed when there are several MetaGraphs.

    Raises:
      RefusedError: another MetaGraph has these tags, or one of them cannot be a tag.
      NoMetaGraphError: `tags` choose none.
    """
    index, graph = draft.graph(tags)
    wanted = list(dict.fromkeys(tag.strip() for tag in new.split(",") if tag.strip()))
    if not all(tag.isprintable() for tag in wanted):
        raise RefusedError("a tag with characters that cannot be shown", file=draft.file)
    for other, item in enumerate(draft.message.meta_graphs):
        if other != index and set(item.meta_info_def.tags) == set(wanted):
            reason = "another MetaGraph has these tags; no reader could choose between them"
            raise RefusedError(reason, file=draft.file, node=", ".join(wanted) or "(no tags)", clause="V1-05")
    old = ", ".join(graph.meta_info_def.tags) or "(no tags)"
    graph.meta_info_def.tags[:] = wanted
    draft.changes.append(f"the MetaGraph with the tags {old} has {', '.join(wanted) or 'no tags'}")
