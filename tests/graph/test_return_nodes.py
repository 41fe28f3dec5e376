"""The Identity and NoOp nodes that tracing adds at the end of a function, and adds again."""

from __future__ import annotations

from reference_impl.format import schema
from reference_impl.graph.functional_ops import first_argument
from reference_impl.graph.return_nodes import return_nodes


def traced(*more):
    """Return a function as `tf.function` traces it: an assignment, a NoOp that waits for it, and an
    Identity of the result that waits for the NoOp.
    """
    function = schema.FunctionDef()
    nodes = (
        ("assign", "AssignVariableOp", ["handle", "x"]),
        ("NoOp", "NoOp", ["^assign"]),
        ("Identity", "Identity", ["x", "^NoOp"]),
        *more,
    )
    for name, op, inputs in nodes:
        function.node_def.add(name=name, op=op, input=inputs)
    function.ret["y"] = "Identity:output:0"
    return function


def is_stateful(op):
    return op == "AssignVariableOp"


def test_both_nodes_are_found():
    assert return_nodes(traced(), is_stateful) == {"Identity": "x", "NoOp": ""}


def test_a_node_that_others_use_stays():
    assert return_nodes(traced(("more", "Neg", ["Identity:output:0"])), is_stateful) == {}


def test_an_identity_of_the_user_stays():
    function = traced()
    function.node_def[2].attr["_class"].list.s.append(b"loc:@x")
    assert return_nodes(function, is_stateful) == {}


def test_a_wait_for_a_node_without_side_effects_stays():
    assert return_nodes(traced(), lambda _: False) == {}


def test_ops_that_run_functions_on_their_inputs():
    assert [first_argument(op) for op in ("If", "Case", "While", "TakeWhileDataset")] == [
        1,
        1,
        0,
        None,
    ]
