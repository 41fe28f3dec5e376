"""Find the nodes that break the rules of their ops, before a pass takes their inputs and attributes
for granted.

Nothing may need a damaged node, so it is not an error by itself: passes leave it as it is, and a
function that needs it gets the error.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import NamedTuple, Optional

from reference_impl import errors
from reference_impl.format import schema
from reference_impl.graph import function_edges, node_attributes, op_rules


class Damage(NamedTuple):
    """The damaged parts of a graph.

    Attributes:
      nodes: the names of damaged nodes of the main graph, with the fault of each.
      functions: the names of functions that have a damaged node.
    """

    nodes: Mapping[str, errors.SavedModelError]
    functions: Collection[str]


NONE = Damage({}, frozenset())


def find(graph_def: schema.GraphDef, registered: function_edges.Rules, file: str) -> Damage:
    """Return the damage of a main graph and of its functions.

    Args:
      graph_def: the graph.
      registered: returns the rules of an op, or None for an op that is not known.
      file: named by the errors.
    """
    library = {function.signature.name: function for function in graph_def.library.function}

    @functools.cache
    def rules_of(op: str) -> Optional[op_rules.OpRules]:
        rules = registered(op)  # first: the runtime prefers an op to a function of its name
        return (
            op_rules.of_definition(library[op].signature)
            if rules is None and op in library
            else rules
        )

    found = {node.name: _fault(node, rules_of(node.op), file) for node in graph_def.node}
    nodes = {name: error for name, error in found.items() if error is not None}
    functions = [
        name for name, function in library.items() if _is_damaged(function, rules_of, file)
    ]
    return Damage(nodes, frozenset(functions)) if nodes or functions else NONE


def _fault(
    node: schema.NodeDef, rules: Optional[op_rules.OpRules], file: str
) -> Optional[errors.SavedModelError]:
    """Return what is wrong with a node of the main graph, or None."""
    try:
        _check_attributes(node, rules, file, in_function=False)
        if rules is not None:
            op_rules.check_inputs(node, rules, file)
    except errors.SavedModelError as error:
        return error
    return None


def _is_damaged(function: schema.FunctionDef, rules_of: function_edges.Rules, file: str) -> bool:
    try:
        for node in function.node_def:
            _check_attributes(node, rules_of(node.op), file)
        function_edges.check(function, rules_of, file)
    except errors.SavedModelError:  # told again where the function is registered
        return True
    return False


def _check_attributes(
    node: schema.NodeDef, rules: Optional[op_rules.OpRules], file: str, in_function: bool = True
) -> None:
    """Check the attributes of a node, and the shapes that it notes, which become sizes of
    tensors.
    """
    if rules is not None:
        op_rules.check_named(node, rules.attributes, file, node.name, in_function)
    node_attributes.check(node.attr, ("_output_shapes",), file, node.name)
