"""The releases that have all ops of each part of a model, as text.

`python -m compat_matrix.commands.ops needs` prints it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from reference_impl.format.container.layout import tags_text
from savedmodel_common.printable import printable
from savedmodel_tools.skew.advice import words

if TYPE_CHECKING:
    from savedmodel_tools.compat import GraphCompat
    from savedmodel_tools.skew.history import History
    from savedmodel_tools.skew.needs import GraphNeeds

SHOWN_REASONS = 3  # of one release


def head(graph: GraphCompat | GraphNeeds) -> str:
    """Return the line that names a MetaGraph and its writer."""
    return printable(
        f"MetaGraph {tags_text(graph.tags)}  TensorFlow {graph.written_by or '?'}, GraphDef"
        f" {graph.producer}",
        newlines=False,
    )


def needs_lines(graph: GraphNeeds, table: History, full: bool) -> Iterator[str]:
    """Yield which releases have all ops of each part, and what the others lack."""
    yield head(graph)
    width = max(len(part.name) for part in graph.parts)
    last: Any = None
    for part in graph.parts:
        releases = words(table.text(part.members)) if part.members else "no release of the table"
        yield printable(f"  {part.name:<{width}}  {releases}", newlines=False)
        if part.reasons == last:
            continue
        last = part.reasons
        for index, lacks in part.reasons:
            release = table.releases[index].name
            for lack in lacks if full else lacks[:SHOWN_REASONS]:
                where = ", ".join(filter(None, [lack.what, part.where(lack)]))
                yield printable(f"    {release} lacks {where}", newlines=False)
            if not full and len(lacks) > SHOWN_REASONS:
                yield f"    {release} lacks {len(lacks) - SHOWN_REASONS} more: --full"
