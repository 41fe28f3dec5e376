"""`reference_impl.load` of models of TensorFlow 2: functions and how they are called."""

from __future__ import annotations

import collections
from pathlib import Path

import numpy as np
import pytest
from made_models import edit, save

import reference_impl
from reference_impl import errors
from reference_impl import errors as format_errors

pytestmark = pytest.mark.tensorflow


def test_FN_05_and_PY_09_calls_choose_the_trace_and_give_the_values_of_the_original(
    tf, original, loaded
):
    model, _ = original
    x = tf.constant([[1.0, -2.0]])
    for args, kwargs in [
        ((x,), {}),
        ((), {"x": x}),
        ((x, False), {}),
        ((x,), {"training": True}),
        ((x,), {"scale": 3.0}),
    ]:
        np.testing.assert_array_equal(
            loaded(*args, **kwargs).numpy(), model(*args, **kwargs).numpy()
        )
    np.testing.assert_array_equal(
        loaded([[1.0, 2.0]]).numpy(), model(tf.constant([[1.0, 2.0]])).numpy()
    )
    assert len(loaded.__call__.concrete_functions) == 4


def test_PY_03_and_04_nests_of_arguments_and_results(tf, loaded):
    other = collections.namedtuple("Pair", "first second")
    result = loaded.nest(other(1.0, 2.0), {"b": 4.0, "a": 3.0})
    assert result._fields == ("first", "second") and type(result).__name__ == "Pair"
    assert result.first[0].numpy() == 6.0 and result.first[1] is None
    assert isinstance(result.second, list) and result.second[0].numpy() == 5.0
    with pytest.raises(errors.FunctionMatchError, match="namedtuple Pair"):
        loaded.nest((1.0, 2.0), {"b": 4.0, "a": 3.0})


def test_FN_13_an_untraced_shape_is_refused_with_all_options_and_the_first_difference(tf, loaded):
    with pytest.raises(
        ValueError, match="Could not find matching concrete function to call"
    ) as caught:
        loaded(tf.zeros([4, 3]))
    text = str(caught.value)
    assert "4 option(s)" in text and "(4, 3), not (1, 2)" in text
    with pytest.raises(errors.FunctionMatchError, match=r"argument scale is 5\.0, not 3\.0"):
        loaded(tf.zeros([1, 2]), scale=5.0)


def test_PY_09_arguments_that_cannot_be_bound_are_named(loaded):
    with pytest.raises(TypeError, match=r"Binding inputs.*'trainig'"):
        loaded([[1.0, 2.0]], trainig=True)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        loaded()


def test_FN_06_a_function_without_traces(tf, tmp_path):
    root = tf.Module()
    root.f = tf.function(lambda x: x)
    with pytest.raises(ValueError, match="Found zero restored functions for caller function"):
        reference_impl.load(save(tf, tmp_path, root)).f(1.0)


@pytest.mark.parametrize(
    "given, wanted",
    [
        (2, "int"),
        (2.5, "float"),
        (True, "bool"),
        (float("nan"), "nan"),
        ("2", "str"),
        (None, "none"),
    ],
)
def test_PY_06_literals_choose_the_trace_of_their_own_type(tf, tmp_path, given, wanted):
    root = tf.Module()
    names = {1: "bool", 2: "int"}

    @tf.function
    def f(x):
        kind = (
            "none"
            if x is None
            else "nan"
            if x != x
            else names.get(x, "str")
            if isinstance(x, (int, str))
            else "float"
        )
        return tf.constant(kind)

    for value in (True, 2, 2.5, float("nan"), "2", None):
        f(value)
    root.f = f
    assert reference_impl.load(save(tf, tmp_path, root)).f(given).numpy().decode() == wanted


@pytest.mark.parametrize(
    "given", ["int64", np.int64, np.dtype("int64"), "float32", "int8", 9, "nothing"], ids=repr
)
def test_PY_06_a_dtype_may_be_given_by_its_name_as_in_TensorFlow(tf, tmp_path, given):
    root = tf.Module()
    root.f = tf.function(
        lambda dtype: tf.constant(dtype.name if isinstance(dtype, tf.DType) else f"text {dtype}")
    )
    for dtype in (tf.int64, tf.float32, "float32"):
        root.f(dtype)
    directory = save(tf, tmp_path, root)
    answers = []
    for load in (tf.saved_model.load, reference_impl.load):
        try:
            answers.append(load(str(directory)).f(given).numpy())
        except ValueError as error:
            assert "Could not find matching concrete function" in str(error)
            answers.append(None)
    theirs, ours = answers
    # To tf.DType numbers are equal too, and TensorFlow takes the first trace that equals: for
    # "float32", that of the dtype.
    assert ours == {9: None, "float32": b"text float32"}.get(
        given if isinstance(given, (int, str)) else "", theirs
    )


def test_get_concrete_function_and_flat_calls(tf, loaded):
    found = (
        loaded.get_concrete_function
        if hasattr(loaded, "get_concrete_function")
        else loaded.__call__.get_concrete_function
    )
    concrete = found(tf.TensorSpec([1, 2], tf.float32), training=True)
    assert isinstance(concrete, tf.types.experimental.ConcreteFunction)
    assert concrete.structured_input_signature[0][1] is True
    x = tf.constant([[1.0, 2.0]])
    np.testing.assert_array_equal(concrete(x).numpy(), loaded(x, True).numpy())
    assert {id(v) for v in concrete.variables} == {
        id(loaded.steps),
        id(loaded.dense.w),
        id(loaded.bias),
    }


def test_a_call_builds_no_graph(tf, loaded, monkeypatch):
    from reference_impl.functions import rebuild

    def refuse(*_):
        raise AssertionError("rebuilt")

    monkeypatch.setattr(rebuild, "interpret", refuse)
    x = tf.constant([[1.0, 2.0]])
    loaded(x, True)
    loaded.signatures["serve"](x=x, scale=2.0)
    with pytest.raises(AssertionError, match="rebuilt"), tf.GradientTape():
        loaded(x, True)


# Functions that are not rebuilt node by node


def test_control_flow_of_TF1_inside_a_function(tf, tmp_path):
    fixture = Path(__file__).parents[2] / "fixtures_v1" / "nested_loops" / "model"
    first = tf.saved_model.load(str(fixture))
    directory = save(tf, tmp_path, first, signatures=dict(first.signatures))
    serve = reference_impl.load(directory).signatures["serving_default"]
    ops = {
        node.op for function in serve.library.index.functions.values() for node in function.node_def
    }
    assert {"Enter", "Merge", "NextIteration"} <= ops
    given = {
        name: tf.ones([2 if d is None else d for d in spec.shape], spec.dtype)
        for name, spec in _inputs(serve)
    }
    expected = first.signatures["serving_default"](**given)
    traced = tf.function(lambda: serve(**given))()
    for name, value in serve(**given).items():
        np.testing.assert_array_equal(value.numpy(), expected[name].numpy())
        np.testing.assert_array_equal(traced[name].numpy(), expected[name].numpy())


def _inputs(function):
    return function.structured_input_signature[1].items()


def test_a_function_that_calls_itself_is_refused(tf, tmp_path):
    root = tf.Module()
    root.v = tf.Variable(2.0)
    root.f = tf.function(lambda x: x * root.v, input_signature=[tf.TensorSpec([])])
    root.g = tf.function(lambda x: root.f(x) + 1.0, input_signature=[tf.TensorSpec([])])
    directory = save(tf, tmp_path, root, signatures={})

    def recurse(meta_graph):  # g calls g in place of f
        g = next(n for n in meta_graph.graph_def.library.function if n.signature.name.startswith("__inference_<lambda>") and
                 any(node.op.endswith("PartitionedCall") for node in n.node_def))  # fmt: skip
        for node in g.node_def:
            if "f" in node.attr:
                node.attr["f"].func.name = g.signature.name

    edit(directory, recurse)
    loaded = reference_impl.load(directory)
    assert loaded.f(3.0).numpy() == 6.0
    for use in (lambda: loaded.g(3.0), lambda: loaded.g.concrete_functions[0].graph):
        with pytest.raises(format_errors.CycleError, match="calls itself"):
            use()


def test_FMT_14_a_gradient_that_calls_the_function_again_is_no_recursion(tf, tmp_path):
    """The gradient of a call by op type (as TF 1.x writes calls) runs only when somebody asks for
    it.
    """
    root = tf.Module()
    inner = tf.function(lambda x: x * 3.0, input_signature=[tf.TensorSpec([])])
    root.f = tf.function(lambda x: inner(x) + 1.0, input_signature=[tf.TensorSpec([])])
    root.g = tf.function(lambda x: root.f(x) * 2.0, input_signature=[tf.TensorSpec([])])
    directory = save(tf, tmp_path, root, signatures={})

    def call_by_type(meta_graph):
        library = meta_graph.graph_def.library
        functions = {function.signature.name: function for function in library.function}
        calls = [
            (name, node)
            for name, item in functions.items()
            for node in item.node_def
            if node.op.endswith("PartitionedCall")
        ]
        callee = {name: node.attr["f"].func.name for name, node in calls}
        (g,) = (name for name in callee if callee[name] in callee)
        caller, node = next(item for item in calls if item[0] == callee[g])
        node.op = callee[caller]
        output = functions[node.op].signature.output_arg[0].name
        for key in list(node.attr):
            del node.attr[key]
        node.attr["_gradient_op_type"].s = b"Again"
        library.registered_gradients.add(registered_op_type="Again", gradient_func=g)
        for user in functions[caller].node_def:
            user.input[:] = [
                text.replace(f"{node.name}:output:", f"{node.name}:{output}:")
                for text in user.input
            ]

    edit(directory, call_by_type)
    loaded = reference_impl.load(directory)
    assert loaded.f(2.0).numpy() == 7.0
    assert loaded.g(2.0).numpy() == 14.0


def test_xla_functions_are_compiled(tf, tmp_path):
    root = tf.Module()
    root.f = tf.function(
        lambda x: tf.reduce_sum(tf.sin(x)) * 2.0,
        input_signature=[tf.TensorSpec([3])],
        jit_compile=True,
    )
    loaded = reference_impl.load(save(tf, tmp_path, root))
    assert loaded.f._jit_compile is True
    np.testing.assert_allclose(
        loaded.f([1.0, 2.0, 3.0]).numpy(), root.f(tf.constant([1.0, 2.0, 3.0])).numpy(), rtol=0
    )
    concrete = loaded.f.concrete_functions[0]
    assert concrete.function_def.attr["_XlaMustCompile"].b


def test_placeholders_have_the_names_that_the_file_gives_to_arguments(tf, tmp_path):
    """As in TensorFlow, which writes `a_b` for `A-b`."""

    class Named(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(2.0, name="Weight")

        @tf.function(
            input_signature=[
                tf.TensorSpec([], tf.float32, name="A-b"),
                {
                    "Z": tf.TensorSpec([None], tf.float32),
                    "a/c": tf.TensorSpec([], tf.float32, name="A/D"),
                },
                tf.RaggedTensorSpec([None, None], tf.float32),
                tf.TensorSpec([], tf.float32, name="last"),
            ]
        )
        def nested(self, a, both, ragged, last):
            return self.w * a + both["Z"] + both["a/c"] + tf.reduce_sum(ragged) + last

        @tf.function(
            input_signature=[
                tf.TensorSpec([], tf.float32, name="A-b"),
                tf.TensorSpec([], tf.float32, name="Ids"),
            ]
        )
        def flat(self, a, b):
            return {"sum": self.w * a + b}

    root = Named()
    directory = save(tf, tmp_path, root, signatures=root.flat)
    theirs, ours = tf.saved_model.load(str(directory)), reference_impl.load(directory)
    assert sorted(tensor.name for tensor in ours.signatures["serving_default"].inputs if tensor.dtype == tf.float32) == [
        "a_b:0", "ids:0",
    ]  # fmt: skip
    for functions in zip(
        *(root.nested.concrete_functions + root.flat.concrete_functions for root in (ours, theirs))
    ):
        one, other = (
            [tensor.name for tensor in function.inputs if tensor.dtype != tf.resource]
            for function in functions
        )
        assert one == other and "a_b:0" in one
        assert functions[0].structured_input_signature == functions[1].structured_input_signature
