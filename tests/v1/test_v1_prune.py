"""`prune`, `graph` and `restore` of TF 1.x models: what may be fed and fetched, and what a branch
or a loop forbids.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import reference_impl
from reference_impl.errors import BindingError, MalformedError, UnknownTensorError
from reference_impl.v1.reading.program import UnfedPlaceholderError

pytestmark = pytest.mark.tensorflow

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"
FEEDS = ["x:0", "n:0"]


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    return tensorflow


@pytest.fixture(scope="module")
def root(tf):
    return reference_impl.load(FIXTURES / "flow_gradients" / "model")


@pytest.fixture
def train(tf):
    return reference_impl.load(FIXTURES / "serve_and_train" / "model", tags=["train"])


@pytest.mark.clause("V1-11")
def test_V1_11_a_fetch_in_a_branch_fails_when_the_other_one_is_taken(tf, root):
    """Shipped functions hand out an empty tensor instead; a session fails."""
    x = tf.constant([[1.0, 2.0, 3.0]])
    in_else = root.prune(FEEDS, "branches/cond/mul_1:0")
    np.testing.assert_array_equal(in_else(x, tf.constant(0)), x * x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="branches/cond/mul_1"):
        in_else(x, tf.constant(1))
    nested = root.prune(FEEDS, "branches/cond/cond/mul:0")  # n > 0, and not n > 2
    b = next(variable for variable in root.variables if variable.name == "b:0")
    with tf.GradientTape() as tape:
        y = nested(x, tf.constant(1))
    np.testing.assert_array_equal(y, x * b)
    np.testing.assert_array_equal(tape.gradient(y, b), x[0])
    for n in (0, 4):
        with pytest.raises(tf.errors.InvalidArgumentError, match="not taken"):
            nested(x, tf.constant(n))


@pytest.mark.parametrize(
    ("feed", "fetch", "says"),
    [
        ("branches/cond/mul_1:0", "branches/cond/Merge:0", "cannot be fed.*branch"),
        ("branches/cond/mul/Switch:1", "branches/cond/Merge:0", "cannot be fed.*branch"),
        ("growing/while/Tanh:0", "growing/while/Exit_1:0", "cannot be fed.*while loop"),
        ("growing/while/Merge_1:0", "growing/while/Exit_1:0", "cannot be fed.*while loop"),
        ("x:0", "growing/while/Tanh:0", "inside of a while loop"),
        ("x:0", "growing/while/LoopCond:0", "inside of a while loop"),
        ("x:0", "growing/while/Tanh", "inside of a while loop"),
    ],
)
def test_V1_11_feeds_and_fetches_inside_of_control_flow_are_refused(root, feed, fetch, says):
    with pytest.raises(MalformedError, match=says):
        root.prune([*FEEDS, feed], fetch)


@pytest.mark.parametrize("feed", ["x:0", "nosuch:0", "x:1", "x:one"])
@pytest.mark.parametrize("fetch", ["nosuch", "nosuch:0", "x:1", "x:one", "^x"])
def test_what_is_not_in_the_graph_raises_the_error_of_tensorflow(tf, root, feed, fetch):
    """A KeyError for a name that is absent, a ValueError for a text that is not a name."""
    theirs = tf.saved_model.load(str(FIXTURES / "flow_gradients" / "model"))
    with pytest.raises((KeyError, ValueError)) as wanted:
        theirs.prune([feed], fetch)
    with pytest.raises(
        UnknownTensorError, match=re.escape(repr(feed if feed != "x:0" else fetch))
    ) as raised:
        root.prune([feed], fetch)
    assert isinstance(raised.value, wanted.type)


def test_a_tensor_that_is_fed_twice_has_the_first_value(tf, root):
    function = root.prune(["x:0", "x:0"], "x:0")
    assert function(tf.ones([1, 3]), tf.zeros([1, 3])).numpy().tolist() == [[1.0, 1.0, 1.0]]


def test_what_leaves_control_flow_may_be_fed(tf, root):
    x = tf.ones([2, 3])
    np.testing.assert_array_equal(
        root.prune("growing/while/Exit_1:0", "growing/while/Exit_1:0")(x), x
    )
    with pytest.raises(UnfedPlaceholderError, match="n"):
        root.prune("x:0", "growing/while/Exit_1:0")


def test_operations_are_run_and_stand_for_none(tf, train):
    """A training graph is trained through its train op, found by name or in its collection"""
    x, label = tf.constant([[1.0, 2.0], [-1.0, 0.5]]), tf.constant([[1.0], [0.0]])
    (train_op,) = train.graph.get_collection("train_op")
    step = next(variable for variable in train.variables if variable.name == "global_step:0")
    losses = []
    for fetch in ("train_op", train_op, train.graph.get_operation_by_name("train_op")):
        result = train.prune(["x:0", "label:0"], {"loss": "Mean:0", "ran": [fetch]})(x, label)
        assert result["ran"] == [None]
        losses.append(float(result["loss"]))
    assert losses[0] > losses[1] > losses[2]
    assert int(step) == 3
    assert train.prune(["x:0", "label:0"], "train_op")(x, label) is None


def test_composites_and_tensor_infos_are_fetched(tf):
    root = reference_impl.load(FIXTURES / "sparse_io" / "model")
    definition = root.signatures["serving_default"].signature_def
    info = next(
        info for info in definition.inputs.values() if info.WhichOneof("encoding") == "coo_sparse"
    )
    names = [
        getattr(info.coo_sparse, part + "_tensor_name")
        for part in ("indices", "values", "dense_shape")
    ]
    parts = [root.graph.get_tensor_by_name(name) for name in names]
    value = tf.sparse.from_dense([[1.0, 0.0], [0.0, 2.0]])
    found = root.prune(parts, {"info": info, "sparse": tf.SparseTensor(*parts)})(
        value.indices, value.values, value.dense_shape
    )
    for name in ("info", "sparse"):
        np.testing.assert_array_equal(tf.sparse.to_dense(found[name]), [[1.0, 0.0], [0.0, 2.0]])


@pytest.mark.parametrize(
    ("feeds", "fetches"), [([3], "x:0"), (["x:0"], 3), (["x:0"], None), (["x:0"], {"y": b"x:0"})]
)
def test_what_is_no_tensor_is_refused(root, feeds, fetches):
    with pytest.raises(BindingError, match="prune"):
        root.prune(feeds, fetches)


def test_static_shapes_of_fetches_are_those_of_the_graph(root):
    assert root.prune(FEEDS, "nested/while/Exit_1:0").structured_outputs.shape.as_list() == [
        None,
        3,
    ]


@pytest.mark.clause("V1-08")
def test_V1_08_another_checkpoint_of_the_graph_is_restored(tf, train):
    (w,) = [variable for variable in train.variables if variable.name == "w:0"]
    before = w.numpy()
    w.assign(before + 1.0)
    train.restore(FIXTURES / "serve_and_train" / "model" / "variables" / "variables")
    np.testing.assert_array_equal(w.numpy(), before)
    with pytest.raises(tf.errors.OpError):
        train.restore("nowhere")


def test_arguments_are_called_as_their_operations(tf, root):
    pruned = root.prune(feeds=["x:0", "n:0"], fetches="growing/while/Exit_1:0", name="grown")
    x, n = tf.ones([2, 3]), tf.constant(2)
    expected = pruned(x, n)
    np.testing.assert_array_equal(pruned(n=n, x=x), expected)
    np.testing.assert_array_equal(pruned(x, n=n), expected)
    with pytest.raises(TypeError, match="n"):
        pruned(x)


def test_a_mapping_names_the_arguments(tf, root):
    pruned = root.prune({"b": "x:0", "a": "n:0"}, "growing/while/Exit_1:0")
    np.testing.assert_array_equal(
        pruned(b=tf.ones([2, 3]), a=tf.constant(2)), pruned(tf.constant(2), tf.ones([2, 3]))
    )


def test_an_input_signature_says_how_the_function_is_called(tf, root):
    x, n = tf.ones([2, 3]), tf.constant(2)
    expected = root.prune(["x:0", "n:0"], "growing/while/Exit_1:0")(x, n)
    specs = tf.TensorSpec([None, 3]), tf.TensorSpec([], tf.int32)
    named = ((), {"rows": specs[0], "count": specs[1]})
    pruned = root.prune(["x:0", "n:0"], "growing/while/Exit_1:0", input_signature=named)
    assert pruned.structured_input_signature == named
    np.testing.assert_array_equal(pruned(rows=x, count=n), expected)
    with pytest.raises(TypeError):
        pruned(n, x)
    nested = root.prune(
        ["x:0", "n:0"],
        "growing/while/Exit_1:0",
        input_signature=(({"rows": specs[0]},), {"count": specs[1]}),
    )
    np.testing.assert_array_equal(nested({"rows": x}, count=n), expected)
    with pytest.raises(BindingError, match="describes 1"):
        root.prune(["x:0", "n:0"], "growing/while/Exit_1:0", input_signature=(specs[:1], {}))


def test_composites_are_fed(tf):
    root = reference_impl.load(FIXTURES / "sparse_io" / "model")
    definition = root.signatures["serving_default"].signature_def
    info = next(
        info for info in definition.inputs.values() if info.WhichOneof("encoding") == "coo_sparse"
    )
    names = [
        getattr(info.coo_sparse, part + "_tensor_name")
        for part in ("indices", "values", "dense_shape")
    ]
    fed = tf.SparseTensor(*[root.graph.get_tensor_by_name(name) for name in names])
    value = tf.sparse.from_dense([[1.0, 0.0], [0.0, 2.0]])
    found = root.prune([fed], fed)(value.indices, value.values, value.dense_shape)
    np.testing.assert_array_equal(tf.sparse.to_dense(found), [[1.0, 0.0], [0.0, 2.0]])
