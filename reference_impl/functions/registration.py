"""Register loaded functions in TensorFlow's runtime, under their live names.

A function and its references are registered at the first call. So an op that this TensorFlow does
not know affects only callers of the function that uses it. The functions are removed from the
runtime when their library is gone.

RFC: RP-06, RP-07
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from reference_impl import tensorflow_api as api
from reference_impl.format import schema
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.names import FileName, LiveName
from reference_impl.functions.runtime_copy import runtime_copy
from reference_impl.graph.function_builder import with_shapes


def register(library: FunctionLibrary, name: FileName) -> LiveName:
    """Make a function and its references callable; return its live name.

    Raises MissingKeyError, CycleError.

    A function that was registered before its ops were is registered again: its copy for the runtime
    depends on the declarations of the ops.
    """
    live = library.live_name(name)
    if live not in library.registered or library.incomplete:
        with library.lock:
            for other in library.closure(name):
                if _is_missing(library, other):
                    _register(library, other)
    return live


def register_for_shapes(
    library: FunctionLibrary, name: FileName, shapes: Sequence[Optional[schema.TensorShapeProto]]
) -> LiveName:
    """Make a function callable for arguments of some shapes; return the name under which it is
    registered.

    TensorFlow traces a loaded function for the shapes of each call, and then optimises it for them,
    which may change the last bits of its results. A shape is None where nothing is known.
    """
    general = register(library, name)
    with library.lock:
        live = library.live_name_for_shapes(name)
        api.register_function(with_shapes(live, general, library.get(name).signature, shapes))
        library.registered[live] = None
        _tell(library, name, f"as {live}, for the shapes of a call")
    return live


def _is_missing(library: FunctionLibrary, name: FileName) -> bool:
    """Return whether a function is not in the runtime, or can be registered more completely now."""
    known_now = map(api.op_def, library.incomplete.get(name, ()))
    return library.live_name(name) not in library.registered or any(known_now)


def _register(library: FunctionLibrary, name: FileName) -> None:
    copy, live = runtime_copy(library, name), library.live_name(name)
    if live in library.registered:
        api.remove_function(live)
    unknown = frozenset(
        node.op
        for node in library.get(name).node_def
        if node.op not in library and api.op_def(node.op) is None
    )
    api.register_function(copy)
    library.registered[live] = None
    library.incomplete.pop(name, None)
    if unknown:
        library.incomplete[name] = unknown
    _tell(library, name, f"as {live}")


def _tell(library: FunctionLibrary, name: FileName, said: str) -> None:
    if library.watch is not None:
        library.watch.tell("registered", library.file, name, said, "RP-07")
