"""Nodes of one form agree in all that a form says."""

from pathlib import Path

import pytest

from reference_impl.format import schema
from reference_impl.format.container import layout
from reference_impl.format.values.shapes import shape_of
from reference_impl.graph.graph_view import GraphView
from reference_impl.graph.node_forms import NodeForms
from reference_impl.graph.references import function_attributes

MODELS = ("control_flow_v2", "collections", "gpu_pinned", "dynamic_rnn", "defun_gradient")
FIXTURES = Path(__file__).parents[2] / "fixtures_v1"


def node(name="a", op="Add", inputs=(), device="", **attributes):
    made = schema.NodeDef(name=name, op=op, input=inputs, device=device)
    for key, value in attributes.items():
        made.attr[key].CopyFrom(value)
    return made


FLOAT, INT = schema.AttrValue(type=1), schema.AttrValue(type=3)


@pytest.mark.parametrize(
    "other",
    [
        node("b", T=FLOAT),
        node("a" * 300, T=FLOAT),
        node(inputs=["x", "^y"], T=FLOAT),
        node("", inputs=["x" * 200], T=FLOAT),
    ],
    ids=["name", "a long name", "inputs", "a long input"],
)
def test_name_and_inputs_are_no_part_of_a_form(other):
    forms = NodeForms()
    assert forms.of(node(T=FLOAT)) is forms.of(other)


@pytest.mark.parametrize(
    "other",
    [
        node(op="Sub", T=FLOAT),
        node(device="/cpu:0", T=FLOAT),
        node(T=INT),
        node(T=FLOAT, U=FLOAT),
        node(op="", T=FLOAT),
    ],
    ids=["op", "device", "value", "attribute", "no op"],
)
def test_what_differs_otherwise_is_of_another_form(other):
    forms = NodeForms()
    assert forms.of(node(T=FLOAT)) is not forms.of(other)


def test_large_nodes_are_a_form_each():
    value = schema.AttrValue(s=b"x" * 2000)
    forms = NodeForms()
    assert forms.of(node(v=value)) is not forms.of(node(v=value))


PLACE = schema.AttrValue(list={"s": [b"loc:@a"]})
CALLED = schema.AttrValue(func={"name": "f"})


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (node(T=FLOAT), node("b", inputs=["x"], T=FLOAT, _class=PLACE), True),
        (node(T=FLOAT, N=INT), node(N=INT, _class=PLACE, T=FLOAT), True),
        (node(T=FLOAT), node(T=FLOAT, device="/cpu:0"), False),
        (node(T=FLOAT), node(T=INT, _class=PLACE), False),
        (node(T=FLOAT), node(T=FLOAT, class_=PLACE), False),
        (node(T=FLOAT), node(op="Sub", T=FLOAT, _class=PLACE), False),
        (node(T=FLOAT), node(T=FLOAT, _call=CALLED), False),
        (node(T=FLOAT), node(T=FLOAT, **{"": PLACE}), False),
        (node(T=PLACE), node(T=PLACE, _long=schema.AttrValue(s=b"x" * 500)), True),
    ],
)
def test_plain_forms(one, other, alike):
    forms = NodeForms()
    assert (forms.of(one).plain is forms.of(other).plain) == alike


def test_unknown_fields_are_not_taken_for_attributes():
    forms = NodeForms()
    # A field 15 of one byte, after which an attribute "a" could be read as one of a name with "_".
    one, other = (
        schema.NodeDef.FromString(
            node(T=FLOAT).SerializeToString() + b"\x78\x2a" + b"\x7a\x05\x0a\x01_" + end
        )
        for end in (b"ab", b"cd")
    )
    assert forms.of(one).plain is not forms.of(other).plain
    assert forms.of(one).plain is not forms.of(node(T=FLOAT)).plain


def said_of(view, node):
    """What the form of a node says, and what the node says."""
    form = view.form(node)
    shapes = form.output_shapes
    yield form.op, form.device, form.functions, shapes, form.has_gradient, view.references(node)
    attributes = node.attr
    yield (
        node.op,
        node.device,
        function_attributes(attributes),
        [shape_of(shape) for shape in attributes["_output_shapes"].list.shape]
        if "_output_shapes" in attributes
        else None,
        "_gradient_op_type" in attributes,
        tuple(view.library.references(node)),
    )


@pytest.mark.parametrize("name", MODELS)
def test_a_form_says_of_each_node_what_the_node_says(name):
    directories = [file.parent for file in (FIXTURES / name).rglob("saved_model.pb")]
    graphs = [
        graph
        for directory in directories
        for graph in layout.read(directory).saved_model.meta_graphs
    ]
    views = [GraphView(graph) for graph in graphs]
    pairs = [(view, node) for view in views for body in view.bodies for node in body.nodes]
    told = [tuple(said_of(view, node)) for view, node in pairs]
    assert [said for said, _ in told] == [expected for _, expected in told]
    assert len({view.form(node) for view, node in pairs}) < len(pairs)


@pytest.mark.parametrize("name", MODELS)
def test_the_forms_of_a_body_are_those_of_its_nodes(name):
    bodies = 0
    for file in (FIXTURES / name).rglob("saved_model.pb"):
        for graph in layout.read(file.parent).saved_model.meta_graphs:
            view, alone = GraphView(graph), NodeForms()
            for nodes, forms in zip(view.indexes, view.forms):
                bodies += 1
                assert forms == [view.form(node) for node in nodes.messages]
                partition = [alone.of(node) for node in nodes.messages]
                pairs = set(zip(forms, partition))
                assert len(pairs) == len(set(forms)) == len(set(partition))
    assert bodies
