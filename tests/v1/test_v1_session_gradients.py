"""Gradients through loops, branches, TensorArrays and embeddings of TF 1.x, against those that TF
1.15 computed in its session.

The fixture `flow_gradients` has for each forward signature one with the gradients that tf.gradients
made for it, answered by a genuine session. The test lets a GradientTape find the same through the
forward signature. The gradient signatures themselves hold the stacks of a v1 loop's backward pass;
they stay in their form and answer as they did.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import reference_impl
from reference_impl.format.names import V1_CONTROL_FLOW
from reference_impl.graph.op_table import V1_FLOW
from savedmodel_common import tensors

pytestmark = pytest.mark.tensorflow

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"
GRADIENTS = "_gradients"
FAMILIES = ("arrays", "branches", "embedded", "growing", "nested", "recurrent")


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    return tensorflow


@pytest.fixture(scope="module")
def root(tf):
    return reference_impl.load(FIXTURES / "flow_gradients" / "model")


def requests(case, signature):
    """[(inputs, answers)] that the session recorded."""
    folder = FIXTURES / case / "io"
    found = [
        item
        for item in json.loads((folder / "io.json").read_text())["requests"]
        if item["signature"] == signature
    ]
    return [tuple(values(folder / item[side]) for side in ("inputs", "outputs")) for item in found]


def values(path):
    return {key: tensor.array for key, tensor in tensors.load(path).items()}


def close(got, expected, where):
    np.testing.assert_allclose(
        got, expected, rtol=1e-5, atol=1e-6, err_msg=where
    )  # the fixture's tolerance, for its reason


def flow_ops(signature):
    library = signature.library
    return {
        node.op
        for name in library.closure(signature.saved_name)
        for node in library.get(name).node_def
    } & V1_FLOW


def gradients(tf, root, signature, inputs, key="y"):
    """Of the sum of an output: by name of a variable, and x."""
    sources = {variable.name.partition(":")[0]: variable for variable in root.variables}
    sources["x"] = tf.constant(inputs["x"])
    with tf.GradientTape() as tape:
        tape.watch(sources["x"])
        y = signature(
            **{**{name: tf.constant(value) for name, value in inputs.items()}, "x": sources["x"]}
        )[key]
    found = tape.gradient(y, sources)
    return {
        name: tf.convert_to_tensor(value).numpy()
        for name, value in found.items()
        if value is not None
    }


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.clause("V1-11", "V1-14")
def test_V1_14_gradients_through_control_flow_are_those_of_a_genuine_session(tf, root, family):
    assert not flow_ops(root.signatures[family])
    recorded = requests("flow_gradients", family + GRADIENTS)
    assert len(recorded) >= 2
    for inputs, expected in recorded:
        got = gradients(tf, root, root.signatures[family], inputs)
        for name in {*got, *expected}:
            zeros = np.zeros_like(got.get(name, expected.get(name)))
            close(got.get(name, zeros), expected.get(name, zeros), f"{name} at n={inputs['n']}")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.clause("V1-10", "V1-11")
def test_V1_11_graphs_with_their_own_gradients_answer_as_in_the_session(tf, root, family):
    for key in (family, family + GRADIENTS):
        for inputs, expected in requests("flow_gradients", key):
            got = root.signatures[key](
                **{name: tf.constant(value) for name, value in inputs.items()}
            )
            for name in expected:
                close(got[name].numpy(), expected[name], f"{key}: {name} at n={inputs['n']}")


@pytest.mark.parametrize(("n", "second"), [(0, 2.0), (1, 1.0), (4, 3.0)])
@pytest.mark.clause("V1-11", "V1-14")
def test_V1_14_a_backward_pass_of_branches_is_differentiated(tf, root, n, second):
    """It is in the branches of the forward pass and needs the shape of their result: one tf.cond,
    two Ifs.

    y is x*x, x*b, or x@w; the sum of its gradients with respect to b, w and x is linear in each x.
    """
    signature = root.signatures["branches" + GRADIENTS]
    assert not flow_ops(signature)
    x = tf.constant([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.add_n(
            [tf.reduce_sum(value) for value in signature(x=x, n=tf.constant(n)).values()]
        )
    np.testing.assert_array_equal(
        tape.gradient(total, x).numpy(), np.full([2, 3], second, np.float32)
    )


def test_V1_11_a_backward_pass_with_stacks_says_why_it_stays(root):
    signature = root.signatures["nested" + GRADIENTS]
    assert flow_ops(signature)
    said = [
        node.attr[V1_CONTROL_FLOW].s.decode()
        for node in signature.library.get(signature.saved_name).node_def
        if V1_CONTROL_FLOW in node.attr
    ]
    assert len(said) == 1 and "backward pass" in said[0]


# Functions of the library


@pytest.fixture(scope="module")
def functions(tf):
    return reference_impl.load(FIXTURES / "function_flow" / "model")


def check_functions(tf, signature):
    for inputs, expected in requests("function_flow", "serving_default"):
        got = signature(**{name: tf.constant(value) for name, value in inputs.items()})
        for name in expected:
            close(got[name].numpy(), expected[name], f"{name} at n={inputs['n']}")


@pytest.mark.clause("V1-10", "V1-11")
def test_V1_11_functions_of_the_library_lose_their_v1_control_flow(tf, functions):
    signature = functions.signatures["serving_default"]
    assert {"Repeat", "Rows", "Choose"} <= set(signature.library.closure(signature.saved_name))
    assert not flow_ops(signature)
    check_functions(tf, signature)


@pytest.mark.clause("V1-14")
@pytest.mark.parametrize("key", ["rows", "choose", "looped"])
def test_V1_14_library_functions_with_control_flow_are_differentiated(tf, functions, key):
    signature = functions.signatures["serving_default"]
    (inputs, _) = requests("function_flow", "serving_default")[-1]
    inputs = {**inputs, "x": inputs["x"] + np.float32(0.3)}  # away from where the branches change
    got = gradients(tf, functions, signature, inputs, key)
    step = 1e-2
    for index in range(2):
        moved = [inputs["x"] + sign * step * np.eye(2, dtype=np.float32)[index] for sign in (1, -1)]
        plus, minus = (
            np.sum(signature(x=tf.constant(x), n=tf.constant(inputs["n"]))[key].numpy())
            for x in moved
        )
        np.testing.assert_allclose(
            got["x"][:, index].sum(), (plus - minus) / (2 * step), rtol=2e-2
        )  # of the difference quotient
    assert np.any(got["w"])


@pytest.mark.parametrize("writer", ["reference", "tf"])
@pytest.mark.clause("V1-16")
def test_V1_16_library_functions_with_control_flow_are_saved_again(tf, functions, writer, tmp_path):
    save = reference_impl.save if writer == "reference" else tf.saved_model.save
    save(functions, str(tmp_path / "m"), signatures=dict(functions.signatures))
    check_functions(tf, reference_impl.load(tmp_path / "m").signatures["serving_default"])
    check_functions(tf, tf.saved_model.load(str(tmp_path / "m")).signatures["serving_default"])


# Static shapes


def static_shapes(tf, signature):
    """{node: shapes of its loop variables or results} of all While and If nodes."""
    nodes = [
        node
        for name in signature.library.closure(signature.saved_name)
        for node in signature.library.get(name).node_def
    ]
    shape = tf.TensorShape
    return {
        node.name: [
            shape(
                None
                if item.unknown_rank
                else [None if dim.size < 0 else dim.size for dim in item.dim]
            ).as_list()
            for item in node.attr["output_shapes"].list.shape
        ]
        for node in nodes
        if node.op.endswith(("While", "If"))
    }


@pytest.mark.clause("V1-11")
def test_V1_11_loop_variables_keep_the_shapes_and_invariants_of_the_exporter(tf, root):
    found = {
        key: static_shapes(tf, root.signatures[key]) for key in ("nested", "branches", "growing")
    }
    assert found["nested"]["nested/while/While"] == [[], [], [], [None, 3], [], [3], [3, 3]]
    assert found["nested"]["nested/while/cond/If"] == [[None, 3]]
    assert found["branches"]["branches/cond/If"] == [[None, 3]]
    assert found["growing"]["growing/while/While"][3] == [
        None,
        3,
    ]  # [1, 3] enters; the shape invariant is wider
    traced = tf.function(root.signatures["growing"]).get_concrete_function(
        x=tf.TensorSpec([None, 3]), n=tf.TensorSpec([], tf.int32)
    )
    assert traced.structured_outputs["y"].shape.as_list() == [None, 3]
