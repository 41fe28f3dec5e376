"""The copy of a FunctionDef that TensorFlow's runtime gets: with live names, and checked.

Every node passes through here on its way to the runtime, so nodes that would crash the process are
refused here.

RFC: RP-06, RP-07
"""

from __future__ import annotations

from typing import Optional

from reference_impl.errors import LimitError, MalformedError, MissingKeyError
from reference_impl.format import limits, schema
from reference_impl.format.names import without_load_marks
from reference_impl.functions import op_attributes
from reference_impl.functions.devices import checked_device
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.names import FileName
from reference_impl.graph import function_edges, node_attributes, op_rules, trusted_inputs
from reference_impl.graph.references import function_attributes, function_values, nodes_of

# Ops whose kernels refuse a shared name although they declare the attribute; each kernel has its
# own resource anyway.
_PRIVATE = frozenset({"OneShotIterator"})


def runtime_copy(library: FunctionLibrary, name: FileName) -> schema.FunctionDef:
    """Return a copy of a function with live names.

    Shapes of results are left out, as by TensorFlow's loader: the runtime infers shapes itself, and
    would copy the noted ones in every pass over the graph (benchmark "first calls",
    docs/evidence/benchmarks.md).
    """
    copy = schema.copy_of(library.get(name))
    copy.signature.name = library.live_name(name)
    for attributes in (copy.attr, *[argument.attr for argument in copy.arg_attr.values()]):
        node_attributes.check(attributes, tuple(attributes), library.file, f"function {name}")
    _check_lengths(library, copy, name)
    for node in copy.node_def:
        rename_for_process(library, node, name)
        node.attr.pop("_output_shapes", None)
    function_edges.check(library.get(name), lambda op: _rules(library, op), library.file)
    _guard(library, copy, name)
    return copy


def rename_for_process(library: FunctionLibrary, node: schema.NodeDef, function: FileName) -> None:
    """Replace the function names and the shared name in a NodeDef by live names, in place.

    Raises MalformedError, MissingKeyError for nodes that would crash the process.
    """
    where = f"{node.name} of function {function}"
    rules = _rules(library, node.op)
    _check_node(library, node, rules, where)
    if node.op in library:
        node.op = library.live_name(FileName(node.op))
    _rename_functions(library, node, rules is not None, where)
    _rename_resource(library, node, function)


def _check_node(
    library: FunctionLibrary, node: schema.NodeDef, rules: Optional[op_rules.OpRules], where: str
) -> None:
    op_rules.check_named(node, rules.attributes if rules is not None else (), library.file, where)
    unchecked = tuple(node.attr) if rules is None else ("_output_shapes",)
    node_attributes.check(node.attr, unchecked, library.file, where)
    if node.device:  # TensorFlow's error names neither the file nor the node
        checked_device(node.device, library.file, where)
    if node.op in node_attributes.TABLE_OPS:
        node_attributes.check_table(node, library.file, where)


def _rename_functions(
    library: FunctionLibrary, node: schema.NodeDef, known: bool, where: str
) -> None:
    """Replace the names in a node's attributes; `known` tells whether TensorFlow knows its op."""
    for value in function_attributes(node.attr, op_attributes.with_functions(node.op)):
        for called in function_values(value):
            if called.name in library:
                called.name = library.live_name(FileName(called.name))
            elif known and called.name and node.op != "SymbolicGradient":  # that may name an op
                reason = f"{node.op} calls {called.name!r}, which is not there"
                raise MissingKeyError(reason, file=library.file, node=where)


def _rename_resource(library: FunctionLibrary, node: schema.NodeDef, function: FileName) -> None:
    """Give the resource that a node makes a live shared name.

    Otherwise two loads of one model would share tables, writers and iterators. A resource without a
    shared name gets one too, since a resource created in one function must still exist when another
    function uses its handle.

    RFC: RP-06
    """
    if node.op == "HashTableV2" and not node.attr["use_node_name_sharing"].b:
        node.attr["use_node_name_sharing"].b = True
    strings = op_attributes.names_of_type(node.op, "string") or ()
    if "shared_name" in strings and node.op not in _PRIVATE:
        shared = node.attr["shared_name"]
        original = _shared_name(library, shared.s) or f"{node.name}_{function}".encode()
        live = library.live_name(FileName(original.decode("utf-8", "surrogateescape")))
        shared.s = live.encode("utf-8", "surrogateescape")


def _shared_name(library: FunctionLibrary, shared: bytes) -> bytes:
    """Return a shared name of the file without the marks of earlier loads. TensorFlow's save keeps
    a mark, so the name would keep growing.

    Two loads of one model may have been saved together; names that differ only in their marks keep
    them.
    """
    plain = without_load_marks(shared)
    if plain == shared:
        return shared
    others = {
        node.attr["shared_name"].s
        for node in nodes_of(library.index.functions.values())
        if "shared_name" in node.attr and node.attr["shared_name"].s.startswith(plain)
    }
    is_shared = any(without_load_marks(other) == plain for other in others - {shared})
    return shared if is_shared else plain


def _rules(library: FunctionLibrary, op: str) -> Optional[op_rules.OpRules]:
    """Return the rules of an op or of a call of a function, or None if this TensorFlow does not
    know it.
    """
    if op in library:
        return op_rules.of_definition(library.get(FileName(op)).signature)
    return op_attributes.rules_of(op)


def _check_lengths(library: FunctionLibrary, function: schema.FunctionDef, name: FileName) -> None:
    """Raise LimitError if a node makes a list of tensors whose literal length would take
    gigabytes.
    """
    for node, length in node_attributes.literal_lengths(function.node_def):
        if length > limits.TENSOR_LIST_ELEMENTS:
            reason = f"{node.op} makes a list of {length} tensors"
            where = f"{node.name} of function {name}"
            raise LimitError(reason, limit="TENSOR_LIST_ELEMENTS", file=library.file, node=where)


def _guard(library: FunctionLibrary, function: schema.FunctionDef, name: FileName) -> None:
    """Guard the inputs that kernels trust."""
    try:
        trusted_inputs.guard(function)
    except MalformedError as error:
        error.file, error.node = library.file, f"{error.node} of function {name}"
        raise
