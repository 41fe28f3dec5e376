"""Calls of Python from inside of functions: `tf.py_function`, `tf.numpy_function`, `tf.data.Dataset.from_generator`.

The node has a token under which the process keeps the Python function. In every other process the token means nothing, or
another function. Such calls in a loaded model are left alone: the copy does what the model did.

RFC: FMT-04
"""

from __future__ import annotations

from collections.abc import Mapping

from reference_impl.errors import SaveError
from reference_impl.format.names import stem
from reference_impl.inspection.op_effects import PYTHON_OPS
from reference_impl.kinds.export_library import Library

_SHOWN = 8


def check(library: Library, paths: Mapping[str, str]) -> None:
    """Refuse calls of Python functions of this process.

    Args:
      library: all functions of the export.
      paths: name of a function -> how Python reaches it, for those of the object tree.

    Raises:
      SaveError: naming the nodes, and the functions through which they are called, all at once.
    """
    nodes = {
        name: [f"{node.name} ({node.op})" for node in definition.node_def if node.op in PYTHON_OPS]
        for name, definition in library.definitions.items()
        if library.made_here(name)
    }
    calling = {name for name, found in nodes.items() if found}
    if not calling:
        return
    found: dict[str, None] = {}
    named: set[str] = set()
    for name, path in paths.items():
        for inner in library.closure(name):
            if inner in calling:
                named.add(inner)
                found.update((f"{path}: {node}", None) for node in nodes[inner])
    for name in sorted(calling - named):  # of resources, gradients
        found.update((f"{stem(name)}: {node}", None) for node in nodes[name])
    shown = list(found)[:_SHOWN]
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    raise SaveError(
        "functions call Python code of this process, which no file keeps, so no other process can run the copy: "
        f"{', '.join(shown)}{more}. Write the code with TensorFlow operations in place of tf.py_function, tf.numpy_function or a "
        "generator, or save with strict=False, which keeps the calls",
        node=shown[0].partition(":")[0],
        clause="FMT-04",
    )
