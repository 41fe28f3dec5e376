"""`get_concrete_function` of a loaded function takes what was asked for, and calls choose the trace
that TensorFlow chooses.
"""

from __future__ import annotations

import collections
import gc
import weakref

import numpy as np
import pytest

import reference_impl

tf = pytest.importorskip("tensorflow")
Pair = collections.namedtuple("Pair", "a b")
FLOAT = tf.float32


def spec(shape, dtype=FLOAT, name=None):
    return tf.TensorSpec(shape, dtype, name)


class Model(tf.Module):
    def __init__(self):
        self.v = tf.Variable(2.0)

    @tf.function(input_signature=[spec([None, 3])])
    def declared(self, x):
        return x * self.v

    @tf.function
    def traced(self, x, training=False):
        return x * self.v if training else x + 1.0

    @tf.function
    def nested(self, x, *, k=3):
        return {"sum": x["a"][0] + x["b"].b, "k": k}

    @tf.function
    def ragged(self, x):
        return x * 2.0

    @tf.function
    def sparse(self, x):
        return tf.sparse.to_dense(x)

    @tf.function
    def dtype(self, x):
        return tf.constant(x.dtype.name if hasattr(x, "dtype") else f"literal {x}")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    model = Model()
    one, two = tf.constant(1.0), tf.constant([1.0, 2.0])
    model.traced(two)
    model.traced(one, training=True)
    model.traced.get_concrete_function(spec([None, None], name="table"), True)
    model.nested({"a": [one], "b": Pair(one, one)})
    model.nested({"a": [two], "b": Pair(two, two)}, k=7)
    model.ragged.get_concrete_function(tf.RaggedTensorSpec([None, None], FLOAT))
    model.sparse.get_concrete_function(tf.SparseTensorSpec([None, 2], FLOAT))
    for value in (2, one, tf.constant(1.0, tf.float64), tf.constant(1, tf.int64), spec([None])):
        model.dtype.get_concrete_function(value)
    path = tmp_path_factory.mktemp("functions") / "model"
    tf.saved_model.save(model, str(path))
    return path


@pytest.fixture
def both(path):
    """Fresh loads: what TensorFlow chooses for a spec depends on earlier calls."""
    return tf.saved_model.load(str(path)), reference_impl.load(path)


def nested(shape, name=None):
    return {"a": [spec(shape, name=name)], "b": Pair(spec(shape), spec(shape))}


def described(concrete):
    given = len(concrete.inputs) - len(concrete.captured_inputs)
    outputs = tf.nest.flatten(concrete.structured_outputs, expand_composites=True)
    return (
        concrete.structured_input_signature,
        [(tensor.dtype, str(tensor.shape)) for tensor in concrete.inputs[:given]],
        [(output.dtype, str(output.shape)) for output in outputs],
        len(concrete.captured_inputs),
        len(concrete.variables),
    )


@pytest.mark.parametrize(
    "name, args, kwargs",
    [
        ("declared", (), {}),
        ("declared", (spec([2, 3]),), {}),
        ("declared", (), {"x": tf.ones([2, 3])}),
        ("traced", (spec([2]),), {}),
        ("traced", (spec([None]),), {}),
        ("traced", (spec(None),), {}),
        ("traced", (tf.constant([1.0, 2.0]),), {}),
        ("traced", (np.float32([1.0, 2.0]),), {"training": False}),
        ("traced", ([1.0, 2.0],), {}),
        ("traced", (spec([5, 6]), True), {}),
        ("traced", (spec([5, 6], name="mine"),), {"training": True}),
        ("traced", (tf.constant([[1.0]]),), {"training": True}),
        ("nested", (nested([]),), {}),
        ("nested", (nested([2]),), {"k": 7}),
        ("nested", (nested([None]),), {"k": 7}),
        ("nested", (nested([2], "mine"),), {"k": 7}),
        ("ragged", (tf.RaggedTensorSpec([None, None], FLOAT),), {}),
        ("ragged", (tf.RaggedTensorSpec([3, None], FLOAT),), {}),
        ("ragged", (tf.ragged.constant([[1.0], [2.0, 3.0]]),), {}),
        ("sparse", (tf.SparseTensorSpec([3, 2], FLOAT),), {}),
        ("sparse", (tf.SparseTensorSpec([None, None], FLOAT),), {}),
        ("dtype", (spec([4]),), {}),
        ("dtype", (2,), {}),
    ],
    ids=repr,
)
def test_the_concrete_function_is_that_of_TensorFlow(both, name, args, kwargs):
    theirs, ours = (
        described(getattr(root, name).get_concrete_function(*args, **kwargs)) for root in both
    )
    assert ours == theirs


@pytest.mark.parametrize(
    "name, args, kwargs",
    [
        ("declared", (spec([None, None]),), {}),
        ("declared", (spec(None),), {}),
        ("declared", (spec([2, 4]),), {}),
        ("declared", (spec([2, 3], tf.int32),), {}),
        ("declared", (), {"y": spec([2, 3])}),
        ("traced", (), {}),
        ("traced", (spec([3]),), {}),
        ("traced", (spec([2]), True), {}),
        ("traced", (3,), {}),
        ("traced", (np.float64([1.0, 2.0]),), {}),
        ("nested", (nested([]),), {"k": 7}),
        ("nested", ({"a": (spec([]),), "b": Pair(spec([]), spec([]))},), {}),
        ("nested", ({"a": [spec([])], "b": (spec([]), spec([]))},), {}),
        ("ragged", (tf.RaggedTensorSpec([None, None], tf.int32),), {}),
    ],
    ids=repr,
)
def test_what_TensorFlow_refuses_is_refused_with_a_list_of_the_traces(both, name, args, kwargs):
    raised = []
    for root in both:
        with pytest.raises((ValueError, TypeError)) as error:
            getattr(root, name).get_concrete_function(*args, **kwargs)
        raised.append(error.value)
    theirs, ours = raised
    assert isinstance(ours, ValueError if isinstance(theirs, ValueError) else TypeError)
    for phrase in (
        "Could not find matching concrete function",
        "option(s)",
        "Option 1",
        "Binding inputs to tf.function failed",
    ):
        assert (phrase in str(theirs)) <= (phrase in str(ours)), ours


def test_a_trace_that_fits_exactly_is_returned_without_a_graph(path):
    root = reference_impl.load(path)
    found = root.traced.get_concrete_function(spec([2]))
    assert found is root.traced.concrete_functions[0] and not root.traced.has_python_function()


@pytest.mark.parametrize(
    "value",
    [
        np.float64(3),
        np.float64([3]),
        np.int64(3),
        np.float32(2),
        np.int64(2),
        2,
        5,
        5.0,
        [5.0],
        np.float32([3, 4]),
        np.float64([[3]]),
    ],
    ids=repr,
)
def test_an_array_chooses_the_trace_of_its_own_dtype(both, value):
    answers = []
    for root in both:
        try:
            answers.append(root.dtype(value).numpy())
        except ValueError as error:
            assert "Could not find matching concrete function" in str(error)
            answers.append(None)
    theirs, ours = answers
    assert ours == theirs


@pytest.mark.parametrize(
    "name, given", [("traced", spec([2])), ("ragged", tf.RaggedTensorSpec([None, None], FLOAT))]
)
def test_a_call_with_a_spec_is_refused(both, name, given):
    for root in both:
        with pytest.raises(ValueError):
            getattr(root, name)(given)
    with pytest.raises(reference_impl.errors.FunctionMatchError, match=r"TensorSpec.*not "):
        getattr(both[1], name)(given)


@pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter")
def test_a_specialised_function_computes_trains_and_can_be_saved(path, tmp_path):
    root = reference_impl.load(path)
    fixed = root.traced.get_concrete_function(spec([2, 2]), True)
    x = tf.ones([2, 2])
    with tf.GradientTape() as tape:
        answer = fixed(x)
    assert float(tape.gradient(answer, root.v)) == 4.0
    tflite = tf.lite.TFLiteConverter.from_concrete_functions([fixed], root).convert()
    assert tf.lite.Interpreter(model_content=tflite).get_input_details()[0]["shape"].tolist() == [
        2,
        2,
    ]
    for number, save in enumerate((reference_impl.save, tf.saved_model.save)):
        save(root, str(tmp_path / str(number)), signatures=fixed)
        for load in (reference_impl.load, tf.saved_model.load):
            again = load(str(tmp_path / str(number)))
            (answer,) = again.signatures["serving_default"](x).values()
            np.testing.assert_array_equal(answer, 2.0 * x)
            assert len(again.traced.concrete_functions) == 3


def test_a_specialised_function_does_not_keep_the_model(path):
    root = reference_impl.load(path)
    root.traced.get_concrete_function(spec([2, 2]), True)
    gc.collect()
    gc.disable()
    try:
        held = weakref.ref(root.v)
        del root
        assert held() is None
    finally:
        gc.enable()
