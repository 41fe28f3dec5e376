"""The plan of a function: which nodes run, in which order. No TensorFlow is imported."""

import pytest
from google.protobuf import text_format

from reference_eval.plan import make_plan
from reference_eval.reading import OpTable, definition_of, schema

FUNCTION = """
signature {
  name: "f"
  input_arg { name: "x" type: DT_FLOAT }
  output_arg { name: "last" type: DT_FLOAT }
  output_arg { name: "first" type: DT_FLOAT }
}
"""


def neg(name, source):
    node = schema.NodeDef(name=name, op="Neg", input=[source])
    node.attr["T"].type = schema.DT_FLOAT
    return node


def function(names):
    """Return a function whose maps were filled in the order of `names`."""
    made = text_format.Parse(FUNCTION, schema.FunctionDef())
    made.node_def.extend([neg(name, "x") for name in ("d", "b", "c", "a", "unused")])
    for name in names:
        made.control_ret[f"run_{name}"] = name
    for result in sorted(["first", "last"], reverse=names[0] == "d"):
        made.ret[result] = "a:y:0" if result == "first" else "d:y:0"
    return made


@pytest.mark.parametrize("names", ["abcd", "dcba", "cadb"])
def test_the_order_does_not_depend_on_the_maps_of_a_function(names):
    plan = make_plan(
        function(names), OpTable(schema.MetaGraphDef(), "saved_model.pb", definition_of)
    )
    assert [step.name for step in plan.steps] == ["d", "b", "c", "a"]
    assert plan.results == ["d:y:0", "a:y:0"]
