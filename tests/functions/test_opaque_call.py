"""Functions with control flow of TF 1.x inside: called in a graph as they are, without gradients
(NG-03).
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.tensorflow
FIXTURES = Path(__file__).parents[2] / "fixtures_v1"


@pytest.fixture
def growing(tf, reloaded):
    """A signature with Enter and Exit inside, since TensorFlow saved what it had loaded."""
    first = tf.saved_model.load(str(FIXTURES / "nested_loops" / "model"))
    loaded = reloaded(first, signatures=dict(first.signatures))
    return loaded.signatures["serving_default"]


def _given(tf, function):
    specs = function.structured_input_signature[1]
    shapes = {name: [2 if d is None else d for d in spec.shape] for name, spec in specs.items()}
    return {name: tf.ones(shapes[name], spec.dtype) for name, spec in specs.items()}


def test_a_traced_call_has_the_values_of_a_plain_one(tf, growing):
    given = _given(tf, growing)
    traced = tf.function(lambda: growing(**given))()
    for name, value in growing(**given).items():
        assert traced[name].numpy().tolist() == value.numpy().tolist()


def test_the_graph_has_one_call_for_the_function(growing):
    types = [operation.type for operation in growing.graph.get_operations()]
    assert "Enter" not in types and "StatefulPartitionedCall" in types


def test_the_call_refuses_to_be_differentiated_with_the_reason(growing):
    calls = [op for op in growing.graph.get_operations() if op.type == "StatefulPartitionedCall"]
    refused = [call for call in calls if b"NoGradient" in call.node_def.attr["_gradient_op_type"].s]
    (reason,) = {call.get_attr("_no_gradient_because") for call in refused}
    assert reason.endswith(b"has control flow of TF 1.x")
