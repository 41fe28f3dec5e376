"""Models with one defect each that every command of the project must judge alike.

The defect is that of the signature KEY.
"""

from __future__ import annotations

import model_edits as edits
import verify_planted as planted

from reference_impl.format import schema

KEY = "planted"  # the signature that `verify_planted.signature` makes


def taken(graph, shape=None):
    """A placeholder and a node that takes it; the tensors of both."""
    tensor = planted.placeholder(graph, "given", shape)
    planted.node(graph, "taken", "Identity", "given")
    return tensor, "taken:0"


def missing_output(graph):
    tensor, _ = taken(graph)
    planted.signature(graph, {"x": tensor}, {"y": "nowhere:0"})


def output_without_tensor(graph):
    tensor, _ = taken(graph)
    planted.signature(graph, {"x": tensor}, {"y": ""})


def output_of_an_op_without_outputs(graph):
    tensor, _ = taken(graph)
    planted.node(graph, "nothing", "NoOp")
    planted.signature(graph, {"x": tensor}, {"y": "nothing"})


def first_output_of_an_op_without_outputs(graph):
    tensor, _ = taken(graph)
    planted.node(graph, "nothing", "NoOp")
    planted.signature(graph, {"x": tensor}, {"y": "nothing:0"})


def contradicting_shapes(graph):
    tensor, output = taken(graph, (2, 3))
    node = next(node for node in graph.graph_def.node if node.name == "taken")
    node.attr["_output_shapes"].list.shape.add().CopyFrom(planted.dims(5, 3))
    planted.signature(graph, {"x": tensor}, {"y": output})


def contradicting_shapes_of_a_gradient(graph):
    tensor, _ = taken(graph, (2, 3))
    node = planted.node(graph, "slope", "ReluGrad", "given", "given")
    node.attr["T"].type = schema.DT_FLOAT
    node.attr["_output_shapes"].list.shape.add().CopyFrom(planted.dims(5, 3))
    planted.signature(graph, {"x": tensor}, {"y": "slope:0"})


def other_promised_shape(graph):
    tensor, output = taken(graph, (2, 3))
    made = planted.signature(graph, {"x": tensor}, {"y": output})
    made.inputs["x"].tensor_shape.CopyFrom(planted.dims(2, 3))
    made.outputs["y"].tensor_shape.CopyFrom(planted.dims(4))


def other_promised_input(graph):
    tensor, output = taken(graph, (2,))
    planted.signature(graph, {"x": tensor}, {"y": output}).inputs["x"].dtype = schema.DT_INT64


def version_that_is_none(graph):
    tensor, output = taken(graph, (2,))
    planted.signature(graph, {"x": tensor}, {"y": output})
    graph.meta_info_def.tensorflow_version = "0.12.head"


def other_promise_of_objects(graph):
    """A signature of a model with objects, whose SignatureDef alone was edited."""
    info = next(iter(graph.signature_def["serving_default"].outputs.values()))
    info.dtype = schema.DT_DOUBLE


def unfed_with_objects(graph):
    """What the SignatureDef of a signature fetches needs a placeholder; the object of the same name
    does not.
    """
    planted.placeholder(graph, "given")
    planted.node(graph, "taken", "Identity", "given")
    next(iter(graph.signature_def["serving_default"].outputs.values())).name = "taken:0"


def python_function(folder):
    edits.edited(edits.fixture("py_func"), folder, lambda message: None)


V1, V2 = planted.V1, planted.V2
# Fact -> how the model is made, its signature with the defect, the rule of `verify` that finds it.
FACTS = {
    "missing output": (planted.graph_edit(V1, missing_output), KEY, "SMC301"),
    "output without a tensor": (planted.graph_edit(V1, output_without_tensor), KEY, "SMC301"),
    "operation as output": (planted.graph_edit(V1, output_of_an_op_without_outputs), KEY, "SMC525"),
    "output of no outputs": (
        planted.graph_edit(V1, first_output_of_an_op_without_outputs),
        KEY,
        "SMC525",
    ),
    "python function": (python_function, "serving_default", "SMC604"),
    "contradicting shapes": (planted.graph_edit(V1, contradicting_shapes), KEY, "SMC531"),
    "contradicting shapes of a gradient": (
        planted.graph_edit(V1, contradicting_shapes_of_a_gradient),
        KEY,
        "SMC531",
    ),
    "other promised shape": (planted.graph_edit(V1, other_promised_shape), KEY, "SMC531"),
    "other promised dtype": (planted.graph_edit(V1, planted.other_dtype_promised), KEY, "SMC532"),
    "other promised input": (planted.graph_edit(V1, other_promised_input), KEY, "SMC532"),
    "other promise of objects": (
        planted.graph_edit(V2, other_promise_of_objects),
        "serving_default",
        "SMC532",
    ),
    "version that is none": (planted.graph_edit(V1, version_that_is_none), KEY, "SMC527"),
    "placeholder not fed": (planted.graph_edit(V1, planted.unfed), KEY, "SMC522"),
    "placeholder not fed, objects": (
        planted.graph_edit(V2, unfed_with_objects),
        "serving_default",
        "SMC522",
    ),
    "signature without an object": (
        planted.graph_edit(V2, planted.signature_without_object),
        KEY,
        "SMC533",
    ),
}
