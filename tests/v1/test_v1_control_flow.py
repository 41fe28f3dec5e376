"""Control flow of TF 1.x as While and If: answers and gradients are a Session's; what cannot be
converted stays and says why.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from op_registry import op_def
from v1_flow_forge import record, record_effects
from v1_tensorflow import tensorflow_1  # noqa: F401

import reference_impl
from reference_impl.errors import MalformedError
from reference_impl.format import schema
from reference_impl.format.names import V1_CONTROL_FLOW
from reference_impl.graph.op_table import V1_FLOW, OpTable
from reference_impl.v1.reading.control_flow.editable_function import EditableFunction
from reference_impl.v1.reading.control_flow.functionalise import functionalise
from reference_impl.v1.reading.control_flow.tensor_arrays import convert_tensor_arrays

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"
WITH_FLOW = (
    "bidirectional_gru",
    "cond_case",
    "dynamic_rnn",
    "nested_loops",
    "tensor_array",
    "while_loop",
)
FLOAT, BOOL = 1, 9


def flow_ops(signature):
    library = signature.library
    return {
        node.op
        for name in library.closure(signature.saved_name)
        for node in library.get(name).node_def
    } & V1_FLOW


@pytest.mark.tensorflow
@pytest.mark.parametrize("seed", [0, 3, 4, 7, 12, 16, 18, 22, 23])
@pytest.mark.clause("V1-10", "V1-11", "V1-14")
def test_V1_11_any_loops_and_branches_answer_and_differentiate_as_in_a_session(tf, seed, tmp_path):
    x = np.random.RandomState(seed).uniform(-1, 1, 3).astype(np.float32)
    expected = record(tf, seed, str(tmp_path / "m"), x)
    root = reference_impl.load(tmp_path / "m")
    signature = root.signatures["serving_default"]
    assert not flow_ops(signature)
    for key, value in signature(x=tf.constant(x)).items():
        np.testing.assert_allclose(
            value.numpy(), expected.outputs[key], rtol=2e-6, atol=1e-7
        )  # optimisers fuse differently
    variables = {variable.name: variable for variable in root.variables}
    sources = {
        "x": tf.constant(x),
        **{name: v for name, v in variables.items() if name.startswith("w")},
    }
    with tf.GradientTape() as tape:
        tape.watch(sources["x"])
        y = tf.reduce_sum(signature(x=sources["x"])["y"])
    for name, gradient in tape.gradient(y, sources).items():
        got = np.zeros(3) if gradient is None else tf.convert_to_tensor(gradient).numpy()
        # sums over iterations are made in another order
        np.testing.assert_allclose(
            got, expected.gradients.get(name, np.zeros(3)), rtol=1e-4, atol=1e-6, err_msg=name
        )


@pytest.mark.tensorflow
@pytest.mark.parametrize("seed", [10, 22, 61, 62, 102, 150, 293])
@pytest.mark.clause("V1-10", "V1-11")
def test_V1_11_effects_in_loops_and_branches_have_the_order_of_a_session(tf, seed, tmp_path):
    """Assignments, scatters, queues, assertions: each waits for the one before.

    Even seeds: reference variables.
    """
    expected = record_effects(tf, seed, str(tmp_path / "m"))
    signature = reference_impl.load(tmp_path / "m").signatures["serving_default"]
    assert not flow_ops(signature)
    for number, outputs in enumerate(expected):
        for key, value in signature(start=tf.constant(float(number))).items():
            np.testing.assert_array_equal(
                value.numpy(), outputs[key], err_msg=f"{key} after run {number}"
            )


@pytest.mark.tensorflow
@pytest.mark.parametrize("case", WITH_FLOW)
def test_V1_11_no_signature_of_a_fixture_keeps_its_v1_control_flow(tf, case):
    signatures = reference_impl.load(FIXTURES / case / "model").signatures
    assert len(signatures) > 0
    for signature in signatures.values():
        assert not flow_ops(signature)


@pytest.mark.tensorflow
def test_V1_11_a_loop_may_ask_for_the_shape_of_a_variable_in_its_condition_and_in_its_body(
    tf, tmp_path
):
    v1 = tf.compat.v1
    sizes = []

    def goes_on(i, _):
        sizes.append(tf.raw_ops.VariableShape(input=variable.handle)[0])
        return i < sizes[0]

    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [], name="x")
        variable = v1.get_variable("v", initializer=tf.ones([4]), use_resource=True)
        _, y = v1.while_loop(
            goes_on, lambda i, y: (i + 1, y * tf.cast(sizes[0], tf.float32)), (0, x)
        )
        session.run(variable.initializer)
        v1.saved_model.simple_save(session, str(tmp_path / "m"), {"x": x}, {"y": y})
    signature = reference_impl.load(tmp_path / "m").signatures["serving_default"]
    assert not flow_ops(signature)
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = signature(x=x)["y"]
    assert float(y) == 2.0 * 4.0**4 and float(tape.gradient(y, x)) == 4.0**4


@pytest.mark.tensorflow
def test_V1_14_what_stays_as_it_is_runs_and_names_the_node_when_a_gradient_is_asked(tf, tmp_path):
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [3], name="x")
        one = tf.raw_ops.Switch(data=x, pred=tf.reduce_sum(x) > 0, name="one")
        other = tf.raw_ops.Switch(data=x, pred=tf.reduce_sum(x) > 9, name="other")
        joined = tf.raw_ops.Merge(inputs=[one[1], other[1]], name="leak")[0]
        v1.saved_model.simple_save(session, str(tmp_path / "m"), {"x": x}, {"y": joined * 2.0})
    signature = reference_impl.load(tmp_path / "m").signatures["serving_default"]
    x = tf.ones([3])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = signature(x=x)["y"]
    np.testing.assert_array_equal(y.numpy(), [2.0, 2.0, 2.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"no gradient here.*leak"):
        tape.gradient(y, x)


@pytest.mark.tensorflow
def test_V1_11_a_tensor_inside_of_a_loop_is_not_to_be_fetched(tf):
    root = reference_impl.load(FIXTURES / "while_loop" / "model")
    inner = next(
        node.name for node in vars(root)["_loaded"].live.program.graph if node.op == "NextIteration"
    )
    feeds = [
        argument.tensor
        for argument in vars(root)["_loaded"].live.program.signatures["serving_default"].inputs
    ]
    with pytest.raises(MalformedError, match="while loop"):
        root.prune(
            [feed.text + (":0" if ":" not in feed.text else "") for feed in feeds], inner + ":0"
        )


# Graphs that no tf.while_loop made


def function_of(*nodes):
    """(name, op, inputs…) as a FunctionDef with the argument p (bool) and the result of the last
    node.
    """
    function = schema.FunctionDef()
    function.signature.name = "f"
    function.signature.input_arg.add(name="p", type=BOOL)
    function.signature.output_arg.add(name="r", type=BOOL)
    for name, op, *inputs in nodes:
        node = function.node_def.add(name=name, op=op, input=inputs)
        node.attr["dtype" if op == "Const" else "T"].type = BOOL
        if op == "Enter":
            node.attr["frame_name"].s = b"loop"
    function.ret["r"] = f"{nodes[-1][0]}:output:0"
    return function


def convert(function):
    made = functionalise(function, OpTable(schema.MetaGraphDef(), "f", op_def), lambda name: name)
    return made, [
        node.attr[V1_CONTROL_FLOW].s.decode()
        for node in function.node_def
        if V1_CONTROL_FLOW in node.attr
    ]


LOOP = (
    ("e", "Enter", "p"),
    ("m", "Merge", "e:output:0", "n:output:0"),
    ("c", "LoopCond", "m:output:0"),
    ("s", "Switch", "m:output:0", "c:output:0"),
    ("n", "NextIteration", "s:output_true:0"),
    ("x", "Exit", "s:output_false:0"),
)


def test_V1_11_a_loop_becomes_a_while():
    function = function_of(*LOOP)
    made, kept = convert(function)
    assert not kept and len(made) == 2
    assert [node.op for node in function.node_def if "While" in node.op] == ["StatelessWhile"]


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ((("x", "Exit", "p"),), "no Enter"),
        ((("a", "Identity", "m:output:0"), ("m", "Merge", "a:output:0", "p")), "cycle"),
        ((*LOOP[:2], ("s", "Switch", "m:output:0", "p"), *LOOP[4:]), "LoopCond"),
        (
            (*LOOP[:-1], ("o", "Identity", "p"), ("x", "Merge", "s:output_false:0", "o:output:0")),
            "frames|NextIteration|result",
        ),
        ((("a", "Identity", "p"), ("x", "Merge", "a:output:0", "p")), "two branches"),
    ],
)
def test_V1_11_malformed_control_flow_stays_and_says_why(nodes, says):
    function = function_of(*nodes)
    before = [node.op for node in function.node_def]
    made, kept = convert(function)
    assert not made and [node.op for node in function.node_def] == before
    assert len(kept) == 1
    assert re.search(says, kept[0]), kept


def test_V1_11_long_and_deep_graphs_need_neither_recursion_nor_long_names():
    chain = [("s", "Switch", "p", "p"), ("t0", "Identity", "s:output_true:0")]
    chain += [(f"t{i}", "Identity", f"t{i - 1}:output:0") for i in range(1, 20_000)]
    made, kept = convert(function_of(*chain, ("x", "Merge", "s:output_false:0", "t19999:output:0")))
    assert len(made) == 2 and not kept
    deep = [("s0", "Switch", "p", "p")]
    deep += [
        (f"s{i}", "Switch", f"s{i - 1}:output_true:0", f"s{i - 1}:output_true:0")
        for i in range(1, 300)
    ]
    made, kept = convert(function_of(*deep, ("x", "Identity", "s299:output_true:0")))
    assert not made and "nested" in kept[0]


def test_V1_11_many_branches_in_each_other_and_many_loops_side_by_side():
    """Fifty deep, two hundred wide: one If each, one While each"""
    deep, value = [], "p"
    for i in range(50):
        deep += [(f"s{i}", "Switch", value, "p"), (f"t{i}", "Identity", f"s{i}:output_true:0")]
        value = f"t{i}:output:0"
    for i in reversed(range(50)):
        deep.append((f"m{i}", "Merge", f"s{i}:output_false:0", value))
        value = f"m{i}:output:0"
    function = function_of(*deep)
    made, kept = convert(function)
    assert (
        not kept
        and sum(node.op == "StatelessIf" for each in (function, *made) for node in each.node_def)
        == 50
    )
    wide = []
    for i in range(200):
        wide += [
            (f"{name}{i}", op, *(re.sub(r"^(\w+):", rf"\g<1>{i}:", text) for text in texts))
            for name, op, *texts in LOOP
        ]
    function = function_of(*wide)
    for node in function.node_def:
        if node.op == "Enter":
            node.attr["frame_name"].s = node.name.encode()
    made, kept = convert(function)
    assert not kept and len(made) == 400
    assert sum(node.op == "StatelessWhile" for node in function.node_def) == 200


WAITS = (
    ("s", "Switch", "p", "p"),
    ("zero", "Const"),
    ("a", "LogicalNot", "s:output_true:0"),
    ("b", "AddV2", "a:y:0", "zero:output:0"),
    ("first", "Merge", "s:output_false:0", "b:z:0"),
    ("outside", "LogicalNot", "first:output:0"),
    ("back", "Switch", "outside:y:0", "p"),
    ("c", "AddV2", "back:output_true:0", "a:y:0"),
    ("d", "AddV2", "c:z:0", "zero:output:0"),
    ("second", "Merge", "back:output_false:0", "d:z:0"),
)


def test_V1_11_branches_that_wait_for_their_own_results_become_two_ifs():
    """What the second needs of the first is a result of it, constants are in both."""
    nodes = [
        (name, op, "^a") if op == "Const" else (name, op, *texts) for name, op, *texts in WAITS
    ]
    function = function_of(*nodes)
    made, kept = convert(function)
    assert not kept
    first, second = (node for node in function.node_def if node.op == "StatelessIf")
    assert [len(node.attr["Tout"].list.type) for node in (first, second)] == [2, 1]
    assert list(second.input) == ["p", "outside:y:0", f"{first.name}:output:1", "^" + first.name]
    ops = [
        sorted(node.op for node in each.node_def) for each in made
    ]  # of the branches False, True, False, True
    assert ops == [
        ["Const", "Const", "Fill"],
        ["AddV2", "Const", "LogicalNot"],
        [],
        ["AddV2", "AddV2", "Const"],
    ]


@pytest.mark.parametrize("size", [2**27, 2**33, 2**62])
def test_V1_11_a_branch_whose_noted_shape_takes_gigabytes_stays_and_says_why(size):
    """The other branch would return as many zeros; their size has 32 bits."""
    function = function_of(
        *[(name, op, "^a") if op == "Const" else (name, op, *texts) for name, op, *texts in WAITS]
    )
    for node in function.node_def:
        if node.op in ("LogicalNot", "AddV2"):
            node.attr["_output_shapes"].list.shape.add().dim.add(size=size)
    made, kept = convert(function)
    assert not made and len(kept) == 1 and f"notes the shape [{size}]" in kept[0]


def test_V1_11_many_branches_that_wait_for_their_own_results():
    """Thirty in a row, each in two parts."""
    wide, value = [], "p"
    for i in range(30):
        for name, op, *texts in WAITS:
            texts = [
                value if text == "p" and op == "Switch" else re.sub(r"^(\w+):", rf"\g<1>{i}:", text)
                for text in texts
            ]
            wide.append((f"{name}{i}", op, *texts))
        value = f"second{i}:output:0"
    function = function_of(*wide)
    made, kept = convert(function)
    assert not kept and len(made) == 120


@pytest.mark.parametrize(
    ("attrs", "op"),
    [((), "TensorArrayWriteV3"), (("resize_if_index_out_of_bounds",), "TensorListSetItem")],
)
def test_V1_11_an_array_that_grows_becomes_a_list_where_lists_can_grow(attrs, op):
    """A TensorFlow before 2.13 drops the attr that says so, and the first write would fail."""
    function = schema.FunctionDef()
    function.signature.name = "f"
    function.signature.input_arg.add(name="size", type=schema.DT_INT32)
    function.signature.input_arg.add(name="x", type=FLOAT)
    array = function.node_def.add(name="array", op="TensorArrayV3", input=["size"])
    array.attr["dtype"].type, array.attr["dynamic_size"].b = FLOAT, True
    function.node_def.add(
        name="write", op="TensorArrayWriteV3", input=["array:handle:0", "size", "x", "array:flow:0"]
    )
    function.node_def.add(
        name="read", op="TensorArrayReadV3", input=["array:handle:0", "size", "write:flow_out:0"]
    )
    definition = schema.OpDef(name="TensorListSetItem")
    for name in attrs:
        definition.attr.add(name=name, type="bool")
    names = {
        "TensorArrayV3": ("handle", "flow"),
        "TensorArrayWriteV3": ("flow_out",),
        "TensorArrayReadV3": ("value",),
    }

    def registry(name):
        if name == "TensorListSetItem":
            return definition
        found = schema.OpDef(name=name)
        for output in names.get(name, ()):
            found.output_arg.add(name=output, type=FLOAT)
        return found

    body = EditableFunction(function, OpTable(schema.MetaGraphDef(), "f", registry))
    reason = convert_tensor_arrays(body)
    assert body.nodes["write"].op == op
    assert (reason is None) == bool(attrs)
