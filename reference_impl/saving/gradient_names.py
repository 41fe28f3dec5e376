"""The names of custom gradients in an export: op types that nodes refer to.

RFC: FMT-14
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping

from reference_impl.format import schema
from reference_impl.format.names import CUSTOM_GRADIENT
from reference_impl.functions.names import ExportName
from reference_impl.graph.node_attributes import text_of
from reference_impl.saving.export_library import ExportLibrary, refuse_gradient


def restore_names(
    library: ExportLibrary, lost: Collection[ExportName], refused: Mapping[ExportName, str]
) -> dict[ExportName, ExportName]:
    """Restore the original names of custom gradients that the export lacks, since a program may
    have registered these names.

    Args:
      lost: op types, in the export, of gradients that keep their original name.
      refused: op type of a gradient that must not be looked up -> the reason; its nodes get both.

    Returns:
      The present op type of each other gradient -> its final op type. ``CustomGradient-0`` becomes
      ``CustomGradient-2`` if a lost gradient has the first name.
    """
    originals = {op_type: ExportName(name) for op_type, (_, name) in library.gradients.items()}
    taken = {originals[op_type] for op_type in lost}
    free = (
        name
        for number in itertools.count(len(originals))
        if (name := ExportName(f"CustomGradient-{number}")) not in taken
    )
    kept = {
        op_type: next(free) if op_type in taken else op_type
        for op_type in originals
        if op_type not in lost and op_type not in refused
    }
    names = {**{op_type: originals[op_type] for op_type in lost}, **kept}
    if refused or any(old != new for old, new in names.items()):
        _rename(library.definitions, names, refused)
    return kept


def _rename(
    definitions: Mapping[ExportName, schema.FunctionDef],
    names: Mapping[ExportName, ExportName],
    refused: Mapping[ExportName, str],
) -> None:
    for definition in definitions.values():
        for node in definition.node_def:
            if CUSTOM_GRADIENT not in node.attr:
                continue
            old = ExportName(text_of(node.attr, CUSTOM_GRADIENT))
            if old in refused:
                refuse_gradient(node, refused[old])
            else:
                node.attr[CUSTOM_GRADIENT].s = names.get(old, old).encode()
