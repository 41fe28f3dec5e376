"""Add the concrete functions of a tree to the library of an export.

RFC: FN-05, FN-07, FN-17
"""

from __future__ import annotations

from collections.abc import Mapping

from reference_impl import tensorflow_api as api
from reference_impl.errors import SaveError
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.saving import cached_reads, signature_wrapper
from reference_impl.saving.captures import Captures
from reference_impl.saving.export_library import ExportLibrary
from reference_impl.saving.exported_functions import ExportedFunction
from reference_impl.saving.node import Node
from reference_impl.saving.replicas import ReplicaMerger
from reference_impl.saving.signature_function import SignatureFunction, with_renamed_inputs
from reference_impl.saving.traced_shapes import TracedShapes
from reference_impl.saving.traces import Trace, trace_of
from reference_impl.saving.tree import Tree, TreeBuilder


def add_functions(
    tree: TreeBuilder,
    library: ExportLibrary,
    captures: Captures,
    shapes: TracedShapes,
    expand: bool,
) -> Mapping[int, ExportedFunction]:
    """Add the concrete functions of a tree to a library, and the constants that they capture to
    the tree. Return the functions by the number of their node.

    With `expand`, all replicas of distributed variables are saved.

    Raises:
      SaveError: a function cannot be saved, or uses replicas in a way that is impossible with one
        variable.
      UntrackedCaptureError: a function uses state that the root does not lead to.
    """
    found: dict[int, ExportedFunction] = {}
    changed = set()
    targets = _traces_of_targets(tree)
    for node in tree.nodes:  # constants are added meanwhile
        if not isinstance(node.object, (api.ConcreteFunction, SignatureFunction)):
            continue
        path = path_of_function(tree, node)
        _check_saveable(node, path)
        trace = _trace(node, targets, library)
        name = library.add(trace.source, trace.name, trace.traced)
        trace, read = cached_reads.read_variables(trace, name, library)
        if read != name:
            changed.add(node.number)
        shapes.complete(getattr(node.object, "target", node.object))
        numbers = captures.resolve(trace, path, node)
        found[node.number] = ExportedFunction(read, trace, numbers, captures.replicas(trace))
    captures.check()
    return ReplicaMerger(tree, library).merged(found, changed, expand)


def path_of_function(tree: Tree, node: Node) -> str:
    """Return the Python path of a function.

    For a signature, return the path of its function if that is in the tree.
    """
    target = getattr(node.object, "target", None)
    number = None if target is None else tree.number_of(target)
    return node.path if number is None else tree.nodes[number].path


def _check_saveable(node: Node, path: str) -> None:
    function = getattr(node.object, "target", node.object)
    marks = [] if isinstance(function, RegisteredFunction) else api.saving_errors(function)
    if marks:
        reason = f"its code says that it cannot be saved: {'; '.join(marks)}"
        raise SaveError(reason, node=path, clause="FN-05")


def _traces_of_targets(tree: Tree) -> dict[int, Trace]:
    """Return the Traces of the functions behind signatures, by the identity of the function."""
    signatures = [node.object for node in tree.nodes if isinstance(node.object, SignatureFunction)]
    return {id(signature.target): signature.trace for signature in signatures}


def _trace(node: Node, targets: Mapping[int, Trace], library: ExportLibrary) -> Trace:
    """Return the Trace of a function; a signature may need a wrapper, which joins the library."""
    signature = node.object
    if not isinstance(signature, SignatureFunction):
        renamed = with_renamed_inputs(node.object)
        if renamed is None:
            return targets.get(id(node.object)) or trace_of(node.object)
        signature = renamed
    if signature.direct:
        return signature_wrapper.direct_trace(signature)
    target = signature.trace
    called = library.add(target.source, target.name, target.traced)
    return signature_wrapper.write_wrapper(signature, called, library)
