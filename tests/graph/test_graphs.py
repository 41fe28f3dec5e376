"""Edges, calls and strongly connected components."""

import random

import pytest

from reference_impl.format import schema
from reference_impl.graph.closure import reachable
from reference_impl.graph.edges import CONTROL, parse_input
from reference_impl.graph.order import circles, components, is_in_order
from reference_impl.graph.references import FunctionIndex


@pytest.mark.parametrize(
    ("text", "in_function", "edge"),
    [
        ("n", False, ("n", "0")),
        ("n:3", False, ("n", "3")),
        ("a/b:0", False, ("a/b", "0")),
        ("^n", False, ("n", CONTROL)),
        ("n:x", False, ("n:x", "0")),
        ("", False, ("", "0")),
        ("n:output:2", True, ("n", "output:2")),
        ("n:0", True, ("n", "0")),
        ("argument", True, ("argument", "0")),
        ("^n", True, ("n", CONTROL)),
    ],
)
def test_inputs(text, in_function, edge):
    assert tuple(parse_input(text, in_function)) == edge


def test_components_of_random_graphs():
    """Against reachability from every vertex; each component comes after those it leads to."""
    rng = random.Random(2)
    for _ in range(500):
        count = rng.randint(1, 9)
        successors = [
            [rng.randrange(count) for _ in range(rng.choice([0, 1, 1, 2, 3]))] for _ in range(count)
        ]
        edges = {
            str(vertex): [str(target) for target in targets]
            for vertex, targets in enumerate(successors)
        }
        reach = [set(map(int, reachable([str(vertex)], edges))) for vertex in range(count)]
        found = components(successors)
        mutual = [
            frozenset(other for other in reach[vertex] if vertex in reach[other])
            for vertex in range(count)
        ]
        assert {frozenset(item) for item in found} == set(mutual)
        place = {vertex: number for number, item in enumerate(found) for vertex in item}
        assert all(
            place[target] <= place[vertex]
            for vertex, targets in enumerate(successors)
            for target in targets
        )


def test_circles_of_random_graphs():
    """A graph in order has none, and the quick ways out find what the components say."""
    rng = random.Random(3)
    ordered = 0
    for _ in range(500):
        count = rng.randint(1, 6)
        targets = {
            vertex: [rng.randrange(count + 1) for _ in range(rng.choice([0, 0, 1, 2]))]
            for vertex in range(count)
        }
        edges = [[other for other in targets[vertex] if other < count] for vertex in range(count)]
        loops = [
            sorted(group)
            for group in components(edges)
            if len(group) > 1 or group[0] in edges[group[0]]
        ]
        assert circles(targets) == sorted(loops)
        if is_in_order(targets):
            ordered += 1
            assert all(other < vertex for vertex in targets for other in edges[vertex])
            assert loops == []
    assert ordered > 50


def test_a_long_chain_takes_no_recursion():
    count = 50_000
    assert (
        len(components([[number + 1] if number + 1 < count else [] for number in range(count)]))
        == count
    )
    assert len(components([[(number + 1) % count] for number in range(count)])) == 1


def test_gradients_of_functions_are_reached_with_them():
    """GradientDef of TF 1.x, by function; of TF 2.x, by the attribute of a node."""
    library = schema.FunctionDefLibrary()
    for name in ("f", "f_grad", "g", "g_grad", "other"):
        library.function.add().signature.name = name
    library.gradient.add(function_name="f", gradient_func="f_grad")
    library.gradient.add(function_name="g", gradient_func="not there")
    library.registered_gradients.add(registered_op_type="G-1", gradient_func="g_grad")
    library.function[2].node_def.add(name="n", op="Identity").attr["_gradient_op_type"].s = b"G-1"
    library.function[4].node_def.add(name="n", op="Identity").attr["_gradient_op_type"].s = b"G-2"
    calls = FunctionIndex(library).calls()
    assert calls == {"f": ["f_grad"], "f_grad": [], "g": ["g_grad"], "g_grad": [], "other": []}


def test_what_a_node_calls():
    library = schema.FunctionDefLibrary()
    library.function.add().signature.name = "f"
    found = FunctionIndex(library)
    by_type = schema.NodeDef(op="f")
    by_attribute = schema.NodeDef(
        op="StatefulPartitionedCall", attr={"f": schema.AttrValue(func={"name": "f"})}
    )
    unknown = schema.NodeDef(
        op="PartitionedCall", attr={"f": schema.AttrValue(func={"name": "gone"})}
    )
    branch = schema.NodeDef(op="If", attr={"then_branch": schema.AttrValue(func={"name": "f"})})
    assert [
        found.called(node)
        for node in (by_type, by_attribute, unknown, branch, schema.NodeDef(op="PartitionedCall"))
    ] == [
        "f",
        "f",
        None,
        None,
        None,
    ]
    assert list(found.references(branch)) == ["f"]
