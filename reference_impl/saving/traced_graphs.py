"""The graphs of functions that were traced in this process.

RFC: FN-17
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Union

import tensorflow as tf

from reference_impl.functions.names import ExportName
from reference_impl.saving.closed_library import ClosedLibrary
from reference_impl.saving.export_library import ExportLibrary


def traced_graphs(
    function: tf.types.experimental.ConcreteFunction, library: Union[ExportLibrary, ClosedLibrary]
) -> Iterator[tuple[ExportName, tf.Graph]]:
    """Yield the FuncGraphs of a traced function and of its callees, each with the name of the
    function in the export.

    A differentiated function refers to rewritten forms of its callees, which the export lacks.
    """
    for name, graph in library.runtime.sites.graphs(function):
        exported = library.find(None, name)
        if exported is not None:
            yield exported, graph
