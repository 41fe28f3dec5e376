"""What a graph of TF 1 leaves to chance: read and updated in one call, in no order."""

from pathlib import Path

import pytest

from compat_matrix.requests.chance import left_to_chance
from reference_impl.format import schema
from reference_impl.format.container import layout

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"


def test_of_the_fixtures_only_the_metric_of_an_estimator_is_left_to_chance():
    found = {}
    for model in sorted(FIXTURES.glob("*/model")):
        for graph in layout.read(model).saved_model.meta_graphs:
            for key in graph.signature_def:
                if not graph.HasField("object_graph_def") and left_to_chance(graph, key):
                    found[model.parent.name, key] = left_to_chance(graph, key)
    assert found == {
        ("estimator_all_modes", "eval"): {"metrics/error/value": "mean_absolute_error/count"}
    }


NODES = {
    "v": ("VariableV2",),
    "read": ("Identity", "v"),
    "one": ("Const",),
    "add": ("AssignAdd", "v", "one"),
    "before": ("Neg", "read"),
    "after": ("Neg", "read", "^add"),
    "of_update": ("Neg", "add"),
    "h": ("VarHandleOp",),
    "value": ("ReadVariableOp", "h"),
    "passed": ("Identity", "h"),
    "set": ("AssignVariableOp", "passed", "one"),
    "waited": ("Neg", "value", "^set"),
    "fresh": ("ReadVariableOp", "h", "^set"),
}


@pytest.mark.parametrize(
    ("fetched", "chance"),
    [
        (("before",), ""),  # the update does not run
        (("before", "add"), "before"),
        (("after", "add"), ""),
        (("of_update",), ""),
        (("read", "add"), "read"),
        (("value",), ""),
        (("waited",), "waited"),  # it waits, the read does not
        (("fresh",), ""),
    ],
)
def test_reads_without_order_to_an_update(fetched, chance):
    graph = schema.MetaGraphDef()
    for name, (op, *inputs) in NODES.items():
        graph.graph_def.node.add(name=name, op=op, input=inputs)
    for name in fetched:
        graph.signature_def["s"].outputs[name].name = f"{name}:0"
    assert set(left_to_chance(graph, "s")) == set(filter(None, [chance]))


def test_a_graph_that_contradicts_itself_leaves_nothing_to_chance():
    graph = schema.MetaGraphDef()
    graph.graph_def.node.add(name="a", op="Neg", input=["gone"])
    graph.signature_def["s"].outputs["y"].name = "a:0"
    assert left_to_chance(graph, "s") == {}
