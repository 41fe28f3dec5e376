"""The edges of a function: each wrong one is named, with the node and the function."""

from __future__ import annotations

import pytest

from reference_impl.errors import MalformedError
from reference_impl.format import schema
from reference_impl.graph import damage, function_edges, op_rules


def op_def(op, inputs=1, outputs=("output",)):
    definition = schema.OpDef(name=op)
    for number in range(inputs):
        definition.input_arg.add(name=f"x{number}", type=schema.DT_FLOAT)
    for name in outputs:
        definition.output_arg.add(name=name, type=schema.DT_FLOAT)
    return definition


DEFINITIONS = {
    "Identity": op_def("Identity"),
    "Const": op_def("Const", 0),
    "NoOp": op_def("NoOp", 0, ()),
}


def rules_of(op):
    return op_rules.of_definition(DEFINITIONS[op]) if op in DEFINITIONS else None


def function(*nodes, result="x"):
    definition = schema.FunctionDef()
    definition.signature.name = "f"
    definition.signature.input_arg.add(name="x", type=schema.DT_FLOAT)
    definition.signature.output_arg.add(name="y", type=schema.DT_FLOAT)
    for name, op, inputs in nodes:
        definition.node_def.add(name=name, op=op, input=inputs)
    definition.ret["y"] = result
    return definition


def test_whole_functions_pass():
    whole = function(("c", "Const", []), ("i", "Identity", ["x", "^c"]), result="i:output:0")
    unknown = function(("u", "Unknown", ["x", "x"]), result="u:any:3")
    for made in (whole, unknown):
        before = schema.copy_of(made)
        function_edges.check(made, rules_of, "file")
        assert made == before


@pytest.mark.parametrize(
    ("made", "node", "reason"),
    [
        (function(("i", "Identity", ["gone"])), "i of function f", "no tensor 'gone'"),
        (function(("i", "Identity", ["x", "^gone"])), "i of function f", "no node 'gone'"),
        (function(("i", "Identity", ["x", "^i", "x"])), "i of function f", "follows a control"),
        (function(("i", "Identity", [])), "i of function f", "0 inputs"),
        (function(result="gone"), "a result of function f", "no tensor 'gone'"),
    ],
)
def test_each_wrong_edge_is_named(made, node, reason):
    with pytest.raises(MalformedError, match=reason) as info:
        function_edges.check(made, rules_of, "file")
    assert (info.value.file, info.value.node) == ("file", node)


def test_damage_lists_nodes_and_functions():
    graph = schema.GraphDef()
    assert damage.find(graph, rules_of, "file") is damage.NONE
    graph.node.add(name="good", op="Const")
    graph.node.add(name="bad", op="Identity")
    graph.library.function.append(function(("i", "Identity", ["gone"])))
    found = damage.find(graph, rules_of, "file")
    assert (list(found.nodes), found.functions) == (["bad"], {"f"})
