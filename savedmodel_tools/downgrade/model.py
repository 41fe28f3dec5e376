"""A SavedModel made one that an older release loads: rewritten, or refused by name; written to a
new directory.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from reference_impl import errors
from reference_impl.format import schema
from reference_impl.format.container import layout
from savedmodel_tools import compat
from savedmodel_tools.changed_copy import write_copy
from savedmodel_tools.downgrade.attrs import Change
from savedmodel_tools.downgrade.rewrite import rewrite
from savedmodel_tools.skew.history import History, history


@dataclass(frozen=True)
class Plan:
    """The result of a downgrade."""

    release: str  # the target's name in the op history
    message: schema.SavedModel  # the rewritten model
    changes: tuple[tuple[Change, int], ...]  # what was done, and how often
    # Features that the release lacks, that today's release has, and that cannot be rewritten; with
    # the loaders that fail.
    refused: tuple[tuple[str, tuple[str, ...]], ...]


def plan(
    model: layout.Layout,
    index: int,
    loaders: Collection[str] = compat.LOADERS,
    table: Optional[History] = None,
) -> Plan:
    """Rewrite a model in memory for the release of this number, and ask what keeps it from loading
    there. Raises TableError.
    """
    table = table or history()
    message = schema.copy_of(model.saved_model)
    counted: Counter[Change] = Counter()
    refused: dict[str, dict[str, None]] = {}
    for graph in message.meta_graphs:
        before = _untouched(graph)
        newest = len(table.releases) - 1
        never = {
            (use.part, use.loader)
            for use in compat.of_graph(graph, [newest], table).uses
            if not use.members
        }
        changes, needed = rewrite(graph, index, table)
        counted.update(changes)
        for use in compat.of_graph(graph, [index], table).uses:
            verdict = use.verdicts.get(index)
            if verdict is None or use.loader not in loaders or (use.part, use.loader) in never:
                continue
            for reason in (*verdict.reasons, *verdict.risks):
                why = next((f"; {text}" for op, text in needed.items() if f"'{op}'" in reason), "")
                refused.setdefault(f"{reason}{why}", {})[use.loader] = None
        if _untouched(graph) != before:
            raise AssertionError(
                "a downgrade must not change signatures, assets, tags or the object graph"
            )
    return Plan(
        table.releases[index].name,
        message,
        tuple(counted.items()),
        tuple((reason, tuple(found)) for reason, found in refused.items()),
    )


def _untouched(graph: schema.MetaGraphDef) -> bytes:
    """Return the parts of a model that a rewrite must not change."""
    copy = schema.copy_of(graph)
    copy.ClearField("graph_def")
    copy.meta_info_def.ClearField("stripped_op_list")
    return copy.SerializeToString(deterministic=True)


def write(
    model: layout.Layout, plan: Plan, out: Path, prove: Optional[Callable[[Path], None]] = None
) -> None:
    """Write the rewritten model to a new directory; all other files of the model are copied
    unchanged.

    ``prove`` is called with the directory before it is put in place; what it raises keeps the model
    from being written.

    Raises FileAccessError: the directory is the source or within it, is not empty, or cannot be
    written; SavedModelError.
    """
    source, target = Path(os.path.realpath(model.directory)), Path(os.path.realpath(out))
    if target == source or source in target.parents:
        raise errors.FileAccessError(
            "is the model itself or lies in it: the source is only read", file=out
        )
    write_copy(model, plan.message, out, prove)
