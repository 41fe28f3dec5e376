"""Functions that this TensorFlow cannot run: errors that name op, node and function.

A model loads whatever its functions contain; callers of a function get the error.

RFC: RP-07, DR-05
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.drop_in.tensorflow_errors import AlsoTensorFlowError
from reference_impl.errors import UnsupportedModelError
from reference_impl.format import schema
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.names import FileName


class UnknownOpError(AlsoTensorFlowError, UnsupportedModelError, tf.errors.NotFoundError):
    """A function uses an op that is not registered.

    It is also an instance of TensorFlow's error class for this case.
    """

    clause = "DR-05"


def unknown_op(
    library: FunctionLibrary, node: schema.NodeDef, function: FileName
) -> UnknownOpError:
    """Return the error for a node whose op is not registered."""
    reason = (
        f"Op type not registered {node.op!r} in TensorFlow {tf.__version__}: node {node.name!r} of"
        f" function {function!r} "
    )
    reason += "uses it; load the library that brings it (tf.load_op_library, or import its package)"
    return UnknownOpError(reason, file=library.file, node=function)


def why_not_found(library: FunctionLibrary, function: FileName) -> Optional[UnknownOpError]:
    """Return the error for the first unregistered op in a function and its callees, or None."""
    for name in library.closure(function):
        for node in library.get(name).node_def:
            if is_unknown(library, node):
                return unknown_op(library, node, name)
    return None


def nodes_needing_unknown_ops(
    library: FunctionLibrary, nodes: Iterable[Any], function: FileName
) -> dict[str, UnknownOpError]:
    """Return the nodes of a function that need an unregistered op, also in functions that they
    call, each with the error.
    """
    found = {}
    for node in nodes:
        called = (why_not_found(library, other) for other in library.functions_of(node))
        error = (
            unknown_op(library, node, function)
            if is_unknown(library, node)
            else next(filter(None, called), None)
        )
        if error is not None:
            found[node.name] = error
    return found


def is_unknown(library: FunctionLibrary, node: schema.NodeDef) -> bool:
    """Return whether this TensorFlow lacks the op of a node, and no function has its name."""
    return node.op not in library and api.op_def(node.op) is None


def cannot_be_rebuilt(
    library: FunctionLibrary, node: schema.NodeDef, function: FileName, error: Exception
) -> UnsupportedModelError:
    """Return the error for a node whose attributes or shapes this TensorFlow refuses."""
    reason = (
        f"{node.op} node {node.name!r} of function {function!r} does not fit TensorFlow"
        f" {tf.__version__}: {error}"
    )
    return UnsupportedModelError(reason, file=library.file, node=function)
