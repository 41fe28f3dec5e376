"""`reference_impl.load` of object graphs, on models that `tf.saved_model.save` wrote a moment before."""

from __future__ import annotations

import collections
import inspect
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import reference_impl
from reference_impl import errors
from reference_impl.format import errors as format_errors
from reference_impl.format import schema

pytestmark = pytest.mark.tensorflow

Pair = collections.namedtuple("Pair", "first second")


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def original(tf, tmp_path_factory):
    """A model with nesting, control flow, a table, containers and signatures; and the directory it was saved to."""
    vocabulary = tmp_path_factory.mktemp("source") / "words.txt"
    vocabulary.write_text("ant\nbee\n")

    class Dense(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")

        @tf.function
        def multiply(self, x):
            return tf.einsum("ij,jk->ik", x, self.w)

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.dense = Dense()
            self.bias = tf.Variable([0.5, 0.25], name="bias")
            self.steps = tf.Variable(0, trainable=False)
            initializer = tf.lookup.TextFileInitializer(
                str(vocabulary), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
            )
            self.words = tf.lookup.StaticHashTable(initializer, -1)
            self.counts = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)
            self.parts = [self.dense, {"bias": self.bias}, (self.steps, Pair(self.bias, self.dense))]
            self.alias = self.dense
            self.parent = self

        @tf.function
        def __call__(self, x, training=False, *, scale=1.0):
            y = self.dense.multiply(x) + self.bias
            if training:
                self.steps.assign_add(1)
                return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, self.dense.multiply(y) * self.bias), (0, y))[1]
            return tf.cond(tf.reduce_sum(y) > 0.0, lambda: self.dense.multiply(y) * scale + self.bias, lambda: y)

        @tf.function
        def nest(self, pair, more):
            return Pair(second=[pair.first + more["b"]], first=(pair.second * more["a"], None))

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def look(self, words):
            return self.words.lookup(words)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def count(self, words):
            self.counts.insert(words, self.counts.lookup(words) + 1)
            return self.counts.lookup(words)

        @tf.function(
            input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x"), tf.TensorSpec([], tf.float32, name="scale")]
        )
        def serve(self, x, scale):
            y = self(x)
            return {"scaled": y * scale, "plain": y, "also": tf.reduce_sum(y)}

    model = Model()
    model(tf.zeros([1, 2]))
    model(tf.zeros([1, 2]), True)
    model(tf.zeros([1, 2]), scale=3.0)
    model.steps.assign(7)
    model.nest(Pair(1.0, tf.constant(2.0)), {"a": tf.constant(3.0), "b": tf.constant(4.0)})
    model.count(tf.constant(["bee"]))
    directory = tmp_path_factory.mktemp("models") / "first"
    tf.saved_model.save(model, str(directory), signatures={"serve": model.serve, "look": model.look})
    moved = directory.with_name("model")
    directory.rename(moved)
    vocabulary.unlink()
    return model, moved


@pytest.fixture
def loaded(original):
    return reference_impl.load(original[1])


def save(tf, tmp_path, root, **keywords):
    tf.saved_model.save(root, str(tmp_path / "model"), **keywords)
    return tmp_path / "model"


def edit(directory: Path, change) -> None:
    """Rewrite saved_model.pb."""
    file = directory / "saved_model.pb"
    message = schema.parse(schema.SavedModel, file.read_bytes())
    change(message.meta_graphs[0])
    file.write_bytes(message.SerializeToString())


# Objects


def test_RP_01_objects_have_the_structure_that_was_saved(tf, loaded):
    assert loaded.alias is loaded.dense
    assert loaded.parent is loaded
    assert loaded.parts[0] is loaded.dense
    assert loaded.parts[1]["bias"] is loaded.bias
    assert isinstance(loaded.parts, list) and isinstance(loaded.parts[1], dict)
    assert isinstance(loaded.bias, tf.Variable) and loaded.bias.name == "bias:0" and loaded.bias.trainable
    assert loaded.steps.numpy() == 7 and not loaded.steps.trainable
    with pytest.raises(AttributeError):
        loaded.multiply  # noqa: B018


def test_PRIM_06_tuples_and_namedtuples_come_back_as_such(loaded):
    inner = loaded.parts[2]
    assert isinstance(inner, tuple) and inner[0] is loaded.steps
    assert isinstance(inner[1], tuple) and inner[1]._fields == ("first", "second")
    assert inner[1].first is loaded.bias and inner[1].second is loaded.dense


def test_GOAL_02_and_03_variables_are_visible_to_the_object_and_to_what_contains_it(tf, loaded):
    assert {id(v) for v in loaded.trainable_variables} == {id(loaded.bias), id(loaded.dense.w)}
    assert {id(v) for v in loaded.variables} == {id(loaded.bias), id(loaded.dense.w), id(loaded.steps)}
    outer = tf.Module()
    outer.part = loaded
    assert len(outer.trainable_variables) == 2


def test_a_child_may_be_called_variables(tf, tmp_path):
    module = tf.train.Checkpoint(variables=[tf.Variable(1.0)], name=tf.Variable(2.0))
    loaded = reference_impl.load(save(tf, tmp_path, module))
    assert [v.numpy() for v in loaded.variables] == [1.0]
    assert loaded.name.numpy() == 2.0
    assert len(loaded.trainable_variables) == 2


def test_OPT_01_and_02_slot_variables_do_not_stop_a_load(tf, tmp_path):
    root = tf.Module()
    root.v = tf.Variable([1.0, 2.0])
    optimizer = tf.compat.v1.train.AdamOptimizer(0.1)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(root.v**2)
    optimizer.apply_gradients([(tape.gradient(loss, root.v), root.v)])
    root.optimizer = optimizer
    loaded = reference_impl.load(save(tf, tmp_path, root))
    slots = {
        name: value.numpy() for (variable, name), value in loaded.optimizer.slot_variables.items() if variable == loaded.v.ref()
    }
    assert sorted(slots) == ["m", "v"]
    np.testing.assert_array_equal(slots["m"], optimizer.get_slot(root.v, "m").numpy())
    assert [v.name for v in loaded.trainable_variables] == ["Variable:0"]


@pytest.mark.parametrize(
    "value",
    [
        np.float16([1.5]), np.array([b"a", b"bc", b""], object), np.array(True), np.complex64(1 + 2j), np.zeros([0, 3], np.int8),
        np.uint16(7), np.arange(1000, dtype=np.float64),
    ],
    ids=lambda value: str(value.dtype),
)  # fmt: skip
def test_RP_03_values_of_every_kind(tf, tmp_path, value):
    root = tf.Module()
    root.v = tf.Variable(tf.constant(value))
    loaded = reference_impl.load(save(tf, tmp_path, root)).v
    assert loaded.dtype == root.v.dtype and loaded.shape == root.v.shape
    np.testing.assert_array_equal(loaded.numpy(), root.v.numpy())


@pytest.mark.parametrize("name", ["bfloat16", "qint8", "float8_e5m2"])
def test_RP_03_dtypes_that_numpy_lacks(tf, tmp_path, name):
    dtype = tf.dtypes.as_dtype(name)
    value = tf.quantization.quantize([0.0, 1.0], 0.0, 1.0, dtype).output if name == "qint8" else tf.cast([1.0, 2.0, -3.0], dtype)
    root = tf.Module()
    try:
        root.v = tf.Variable(value)
    except tf.errors.InvalidArgumentError:
        pytest.skip(f"TensorFlow {tf.__version__} has no variables of {name}")
    loaded = reference_impl.load(save(tf, tmp_path, root)).v
    assert loaded.dtype == dtype and loaded.numpy().tobytes() == value.numpy().tobytes()


def test_a_variable_of_partial_shape_may_change_its_shape(tf, tmp_path):
    root = tf.Module()
    root.v = tf.Variable([[1.0]], shape=tf.TensorShape([None, None]))
    loaded = reference_impl.load(save(tf, tmp_path, root)).v
    assert loaded.shape.as_list() == [None, None]
    loaded.assign(tf.zeros([3, 2]))
    assert loaded.numpy().shape == (3, 2)


# Functions


def test_FN_05_and_PY_09_calls_choose_the_trace_and_give_the_values_of_the_original(tf, original, loaded):
    model, _ = original
    x = tf.constant([[1.0, -2.0]])
    for args, kwargs in [((x,), {}), ((), {"x": x}), ((x, False), {}), ((x,), {"training": True}), ((x,), {"scale": 3.0})]:
        np.testing.assert_array_equal(loaded(*args, **kwargs).numpy(), model(*args, **kwargs).numpy())
    np.testing.assert_array_equal(loaded([[1.0, 2.0]]).numpy(), model(tf.constant([[1.0, 2.0]])).numpy())
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
    with pytest.raises(ValueError, match="Could not find matching concrete function to call") as caught:
        loaded(tf.zeros([4, 3]))
    text = str(caught.value)
    assert "4 option(s)" in text and "argument x has shape (4, 3), not (1, 2)" in text
    with pytest.raises(errors.FunctionMatchError, match=r"argument scale is 5\.0, not 3\.0"):
        loaded(tf.zeros([1, 2]), scale=5.0)


def test_PY_09_arguments_that_cannot_be_bound_are_named(loaded):
    with pytest.raises(TypeError, match=r"Binding inputs to tf\.function failed.*'trainig'"):
        loaded([[1.0, 2.0]], trainig=True)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        loaded()


def test_FN_06_a_function_without_traces(tf, tmp_path):
    root = tf.Module()
    root.f = tf.function(lambda x: x)
    with pytest.raises(ValueError, match="Found zero restored functions for caller function"):
        reference_impl.load(save(tf, tmp_path, root)).f(1.0)


@pytest.mark.parametrize(
    "given, wanted", [(2, "int"), (2.5, "float"), (True, "bool"), (float("nan"), "nan"), ("2", "str"), (None, "none")]
)
def test_PY_06_literals_choose_the_trace_of_their_own_type(tf, tmp_path, given, wanted):
    root = tf.Module()
    names = {1: "bool", 2: "int"}

    @tf.function
    def f(x):
        kind = "none" if x is None else "nan" if x != x else names.get(x, "str") if isinstance(x, (int, str)) else "float"
        return tf.constant(kind)

    for value in (True, 2, 2.5, float("nan"), "2", None):
        f(value)
    root.f = f
    assert reference_impl.load(save(tf, tmp_path, root)).f(given).numpy().decode() == wanted


def test_get_concrete_function_and_flat_calls(tf, loaded):
    found = loaded.get_concrete_function if hasattr(loaded, "get_concrete_function") else loaded.__call__.get_concrete_function
    concrete = found(tf.TensorSpec([1, 2], tf.float32), training=True)
    assert isinstance(concrete, tf.types.experimental.ConcreteFunction)
    assert concrete.structured_input_signature[0][1] is True
    x = tf.constant([[1.0, 2.0]])
    np.testing.assert_array_equal(concrete(x).numpy(), loaded(x, True).numpy())
    assert {id(v) for v in concrete.variables} == {id(loaded.steps), id(loaded.dense.w), id(loaded.bias)}


def test_a_call_builds_no_graph(tf, loaded, monkeypatch):
    from reference_impl.loading import rebuild

    def refuse(*_):
        raise AssertionError("rebuilt")

    monkeypatch.setattr(rebuild, "interpret", refuse)
    x = tf.constant([[1.0, 2.0]])
    loaded(x, True)
    loaded.signatures["serve"](x=x, scale=2.0)
    with pytest.raises(AssertionError, match="rebuilt"), tf.GradientTape():
        loaded(x, True)


# Gradients and tracing


@pytest.mark.parametrize("training", [False, True], ids=["if", "while"])
def test_GOAL_02_gradients_through_nested_calls_and_control_flow(tf, original, loaded, training):
    results = []
    for model in (original[0], loaded):
        x = tf.constant([[1.0, 2.0]])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = model(x, training)
        results.append([g.numpy() for g in tape.gradient(y, [x, model.dense.w, model.bias])])
    for got, expected in zip(results[1], results[0]):
        np.testing.assert_array_equal(got, expected)
    assert {v.ref() for v in tape.watched_variables()} == {loaded.dense.w.ref(), loaded.bias.ref()}


def test_GOAL_03_gradients_through_a_signature_and_training(tf, loaded):
    serve = loaded.signatures["serve"]
    losses = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(serve(x=tf.constant([[1.0, 2.0]]), scale=tf.constant(1.0))["plain"] ** 2)
        for variable, gradient in zip(loaded.trainable_variables, tape.gradient(loss, loaded.trainable_variables)):
            variable.assign_sub(1e-5 * gradient)
        losses.append(loss.numpy())
    assert losses[0] > losses[1] > losses[2]


@pytest.mark.parametrize("training", [False, True], ids=["if", "while"])
def test_second_order_gradients(tf, original, loaded, training):
    results = []
    for model in (original[0], loaded):
        x = tf.constant([[1.0, 2.0]])
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(model(x, training) ** 2)
            first = inner.gradient(y, x)
        results.append([gradient.numpy() for gradient in outer.gradient(first, [x, model.dense.w])])
    for got, expected in zip(results[1], results[0]):
        np.testing.assert_allclose(got, expected, rtol=1e-6)  # sums of products in an order that optimisers choose


def test_forward_mode(tf, loaded):
    x = tf.constant([[1.0, 2.0]])
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        y = loaded(x)
    w = loaded.dense.w.numpy()
    np.testing.assert_allclose(accumulator.jvp(y).numpy(), np.ones([1, 2]) @ w @ w, rtol=1e-6)


def test_NG_03_calls_while_another_function_is_traced(tf, loaded):
    @tf.function
    def outer(x):
        with tf.GradientTape() as tape:
            y = loaded(x, True) + loaded.signatures["serve"](x=x, scale=tf.constant(2.0))["plain"]
        return y, tape.gradient(y, loaded.dense.w)

    x = tf.constant([[1.0, 2.0]])
    y, gradient = outer(x)
    with tf.GradientTape() as tape:
        expected = loaded(x, True) + loaded.signatures["serve"](x=x, scale=2.0)["plain"]
    np.testing.assert_array_equal(y.numpy(), expected.numpy())
    np.testing.assert_array_equal(gradient.numpy(), tape.gradient(expected, loaded.dense.w).numpy())
    assert loaded.bias.ref() in {v.ref() for v in outer.get_concrete_function(x).variables}


def test_AutoGraph_does_not_convert_loaded_functions(tf, original, monkeypatch):
    from reference_impl.loading import rebuild

    converted, build = [], rebuild.as_tf_function

    def record(*args):
        converted.extend(frame.function for frame in inspect.stack() if "__autograph_generated" in frame.filename)
        return build(*args)

    monkeypatch.setattr(rebuild, "as_tf_function", record)
    loaded = reference_impl.load(original[1])

    @tf.function
    def outer(x):
        y = loaded.signatures["serve"](x=x, scale=tf.constant(1.0))["plain"]
        return loaded(x) + loaded.dense.multiply(x) + y

    outer(tf.ones([1, 2]))
    assert set(converted) <= {"tf__outer", "tf__wrapper"}  # the latter is what says not to go on


def test_FMT_14_custom_gradients_with_captures(tf, tmp_path):
    root = tf.Module()
    root.factor = tf.Variable(100.0)

    @tf.custom_gradient
    def strange(x):
        y = tf.sin(x)

        def gradient(dy, variables=None):
            return dy * x * y * root.factor, [tf.zeros([])] * len(variables or ())

        return y, gradient

    root.inner = tf.function(lambda x: strange(x) * 3.0, input_signature=[tf.TensorSpec([])])
    root.f = tf.function(lambda x: strange(x) * 2.0 + root.inner(x), input_signature=[tf.TensorSpec([], name="Big/Name")])
    results = []
    for model in (root, reference_impl.load(save(tf, tmp_path, root))):
        x = tf.constant(0.5)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = model.f(x)
            first = inner.gradient(y, x)
        results.append([y.numpy(), first.numpy(), *(g.numpy() for g in outer.gradient(first, [x, model.factor]))])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)  # the order of the products differs


def test_graph_attributes_of_a_concrete_function(tf, loaded):
    concrete = loaded.serve.concrete_functions[0]
    assert [t.name for t in concrete.inputs][:2] == ["x:0", "scale:0"]
    assert len(concrete.graph.external_captures) == len(concrete.captured_inputs)
    assert concrete.function_def.signature.name == concrete.name.decode() if isinstance(concrete.name, bytes) else concrete.name
    assert sorted(concrete.structured_outputs) == ["also", "plain", "scaled"]


# Resources, assets, signatures


def test_PRIM_08_and_RES_10_tables_work_after_the_move(tf, loaded):
    assert loaded.look(tf.constant(["bee", "wasp", "ant"])).numpy().tolist() == [1, -1, 0]
    assert loaded.look(["ant"]).numpy().tolist() == [0]


def test_RES_15_and_RP_06_content_of_mutable_tables_and_independence_of_loads(tf, original):
    first, second = reference_impl.load(original[1]), reference_impl.load(original[1])
    assert first.count(["bee"]).numpy().tolist() == [2]
    assert first.count(["bee"]).numpy().tolist() == [3]
    assert second.count(["bee"]).numpy().tolist() == [2]
    first.bias.assign([9.0, 9.0])
    assert second.bias.numpy().tolist() == [0.5, 0.25]


def test_RES_09_asset_paths_are_absolute(tf, original, monkeypatch):
    monkeypatch.chdir(original[1].parent)
    loaded = reference_impl.load(original[1].name)
    monkeypatch.chdir("/")
    path = Path(loaded.words._initializer._filename.asset_path.numpy().decode())
    assert path.is_absolute() and path.read_text() == "ant\nbee\n"


def test_RES_06_a_missing_asset_is_named(tf, original, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(original[1], copy)
    (copy / "assets" / "words.txt").unlink()
    with pytest.raises(format_errors.MissingFileError, match=r"words\.txt.*missing"):
        reference_impl.load(copy)


def test_ATTR_01_and_02_signatures(tf, loaded):
    assert sorted(loaded.signatures) == ["look", "serve"]
    result = loaded.signatures["serve"](x=tf.constant([[1.0, 2.0]]), scale=tf.constant(2.0))
    assert list(result) == ["also", "plain", "scaled"]
    np.testing.assert_array_equal(result["scaled"].numpy(), 2 * result["plain"].numpy())
    assert loaded.signatures["look"](tf.constant(["bee"]))["output_0"].numpy().tolist() == [1]
    with pytest.raises(TypeError, match="positional"):
        loaded.signatures["serve"](tf.zeros([1, 2]), tf.constant(1.0))
    with pytest.raises(TypeError, match="scale"):
        loaded.signatures["serve"](x=tf.zeros([1, 2]))
    with pytest.raises(TypeError):
        loaded.signatures["new"] = None


def test_SIG_11_composite_outputs(tf, tmp_path):
    root = tf.Module()

    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)])
    def f(x):
        return {"ragged": x * 2, "sparse": x.to_sparse()}

    root.f = f
    loaded = reference_impl.load(save(tf, tmp_path, root, signatures={}))
    result = loaded.f(tf.ragged.constant([[1, 2], [3]]))
    assert result["ragged"].to_list() == [[2, 4], [6]]
    assert isinstance(result["sparse"], tf.SparseTensor) and result["sparse"].values.numpy().tolist() == [1, 2, 3]


def test_load_while_a_function_is_traced(tf, original):
    loaded = {}

    @tf.function
    def outer():
        loaded["root"] = reference_impl.load(original[1])
        return loaded["root"].bias + 1.0

    assert outer().numpy().tolist() == [1.5, 1.25]
    assert loaded["root"].bias.numpy().tolist() == [0.5, 0.25]


def test_GOAL_06_the_loaded_object_can_be_saved_by_tensorflow(tf, loaded, tmp_path):
    loaded.bias.assign([2.0, 3.0])
    directory = save(tf, tmp_path, loaded, signatures=dict(loaded.signatures))
    again = tf.saved_model.load(str(directory))
    x = tf.constant([[1.0, 2.0]])
    np.testing.assert_array_equal(again(x).numpy(), loaded(x).numpy())
    np.testing.assert_array_equal(again(x, training=True).numpy(), loaded(x, training=True).numpy())
    assert again.look(tf.constant(["bee"])).numpy().tolist() == [1]
    assert again.count(tf.constant(["bee"])).numpy().tolist() == [2]
    assert sorted(again.signatures) == ["look", "serve"]


# Refusals


def test_V1_04_and_05_tags(original):
    for tags in ("train", ["serve", "tpu"], []):
        with pytest.raises(ValueError, match="there are: serve"):
            reference_impl.load(original[1], tags=tags)
    assert reference_impl.load(original[1], tags={"serve"}).tensorflow_version


def test_a_missing_value_is_named(tf, tmp_path):
    root = tf.Module()
    root.part = tf.Module()
    root.part.bias = tf.Variable(1.0)
    directory = save(tf, tmp_path, root)

    def rename(meta_graph):
        for node in meta_graph.object_graph_def.nodes:
            for child in node.children:
                child.local_name = child.local_name.replace("bias", "bais")

    edit(directory, rename)
    with pytest.raises(FileNotFoundError, match=r"Key root\.part\.bais not found"):
        reference_impl.load(directory)


def _child(graph):
    graph.nodes[0].children[0].node_id = 10**6


def _bound_input(graph):
    next(f for f in graph.concrete_functions.values() if f.bound_inputs).bound_inputs[0] = -5


def _function_name(graph):
    next(n for n in graph.nodes if n.HasField("function") and n.function.concrete_functions).function.concrete_functions[0] = (
        "no_such"
    )


def _asset(graph):
    next(n for n in graph.nodes if n.HasField("asset")).asset.asset_file_def_index = 77


def _kind(graph):
    next(n for n in graph.nodes if n.HasField("variable")).ClearField("variable")


def _empty(graph):
    graph.ClearField("nodes")
    graph.concrete_functions.clear()


def _tuple_in_itself(graph):
    node = next(n for n in graph.nodes if n.user_object.identifier == "trackable_tuple_wrapper")
    number = list(graph.nodes).index(node)
    node.children[0].node_id = number


def _long_list(graph):
    node = next(n for n in graph.nodes if n.user_object.identifier == "trackable_list_wrapper")
    node.children[0].local_name = str(10**15)


@pytest.mark.parametrize(
    "damage, error, text",
    [
        (_child, format_errors.MalformedError, r"nodes\[0\].*refers to node 1000000"),
        (_bound_input, format_errors.MalformedError, "captures node -5"),
        (_function_name, format_errors.MissingKeyError, "no_such"),
        (_asset, format_errors.MalformedError, "asset 77 of 1"),
        (_kind, errors.UnsupportedModelError, "object of kind None"),
        (_empty, format_errors.MalformedError, "object graph is empty"),
        (_tuple_in_itself, format_errors.CycleError, "contains itself"),
        (_long_list, format_errors.LimitError, "1000000000000001 elements"),
    ],
)
def test_a_damaged_object_graph_is_refused(original, tmp_path, damage, error, text):
    copy = tmp_path / "copy"
    shutil.copytree(original[1], copy)
    edit(copy, lambda meta_graph: damage(meta_graph.object_graph_def))
    with pytest.raises(error, match=text):
        reference_impl.load(copy)


def test_FMT_11_a_list_or_a_variable_may_be_the_root(tf, tmp_path):
    for number, root in enumerate([tf.Variable(3.0), tf.__internal__.tracking.wrap([tf.Variable(3.0)])]):
        tf.saved_model.save(root, str(tmp_path / str(number)))
        loaded = reference_impl.load(tmp_path / str(number))
        assert not loaded.signatures and loaded.tensorflow_version == tf.version.VERSION
        assert (loaded if number == 0 else loaded[0]).numpy() == 3.0


# Options


def test_options_without_a_checkpoint(tf, original, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(original[1], copy)
    shutil.rmtree(copy / "variables")
    with pytest.raises(FileNotFoundError, match="Key root"):
        reference_impl.load(copy)
    loaded = reference_impl.load(copy, options=tf.saved_model.LoadOptions(experimental_skip_checkpoint=True))
    assert not loaded.bias.is_initialized() and loaded.bias.shape == [2]
    assert loaded.look(["bee"]).numpy().tolist() == [1]  # tables that are filled by their initialiser need no checkpoint
    loaded.bias.assign([1.0, 2.0])
    assert loaded.bias.numpy().tolist() == [1.0, 2.0]


def test_options_partial_checkpoint(tf, tmp_path):
    root = tf.Module()
    root.kept, root.lost = tf.Variable(1.0), tf.Variable(2.0)
    directory = save(tf, tmp_path, root)

    def rename(meta_graph):
        for child in meta_graph.object_graph_def.nodes[0].children:
            child.local_name = child.local_name.replace("lost", "gone")

    edit(directory, rename)
    loaded = reference_impl.load(directory, options=tf.saved_model.LoadOptions(allow_partial_checkpoint=True))
    assert loaded.kept.numpy() == 1.0 and not loaded.gone.is_initialized()


def test_options_function_aliases(tf, tmp_path):
    root = tf.Module()
    from reference_impl.loading.options import LoadOptions

    root.f, root.g = tf.function(lambda x: x + 1), tf.function(lambda x: x * 2)
    for value in (1.0, [1.0]):
        root.f(tf.constant(value)), root.g(tf.constant(value))
    directory = save(tf, tmp_path, root, options=tf.saved_model.SaveOptions(function_aliases={"whole": root.f}))

    def add(meta_graph):  # TensorFlow itself writes the alias of a single trace under a name that it then does not use
        g = next(node for node in meta_graph.object_graph_def.nodes if node.HasField("function") and
                 node.function.concrete_functions[0] not in meta_graph.meta_info_def.function_aliases)  # fmt: skip
        meta_graph.meta_info_def.function_aliases[g.function.concrete_functions[0]] = "part"

    edit(directory, add)
    asked = LoadOptions(load_function_aliases=True)
    loaded = reference_impl.load(directory, options=asked)
    assert loaded.function_aliases["whole"] is loaded.f
    assert loaded.function_aliases["part"] == [loaded.g.concrete_functions[0]]
    assert not hasattr(reference_impl.load(directory), "function_aliases")


# Functions that are not rebuilt node by node


def test_control_flow_of_TF1_inside_a_function(tf, tmp_path):
    fixture = Path(__file__).parent.parent / "fixtures_v1" / "nested_loops" / "model"
    first = tf.saved_model.load(str(fixture))
    directory = save(tf, tmp_path, first, signatures=dict(first.signatures))
    serve = reference_impl.load(directory).signatures["serving_default"]
    ops = {node.op for function in serve.library.index.functions.values() for node in function.node_def}
    assert {"Enter", "Merge", "NextIteration"} <= ops
    given = {name: tf.ones([2 if d is None else d for d in spec.shape], spec.dtype) for name, spec in _inputs(serve)}
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


def test_xla_functions_are_compiled(tf, tmp_path):
    root = tf.Module()
    root.f = tf.function(lambda x: tf.reduce_sum(tf.sin(x)) * 2.0, input_signature=[tf.TensorSpec([3])], jit_compile=True)
    loaded = reference_impl.load(save(tf, tmp_path, root))
    assert loaded.f._jit_compile is True
    np.testing.assert_allclose(loaded.f([1.0, 2.0, 3.0]).numpy(), root.f(tf.constant([1.0, 2.0, 3.0])).numpy(), rtol=0)
    concrete = loaded.f.concrete_functions[0]
    assert concrete.function_def.attr["_XlaMustCompile"].b


# Graph mode and strategies


def test_COMPAT_01_loading_in_graph_mode(tf, original):
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        loaded = reference_impl.load(original[1])
        x = tf.compat.v1.placeholder(tf.float32, [1, 2])
        y = loaded(x)
        (gradient,) = tf.gradients(y, [x])
        found, counted = loaded.look(tf.constant(["bee", "wasp"])), loaded.count(tf.constant(["bee"]))
        assert len(graph.get_collection("asset_filepaths")) == 1
        assert {"w:0", "bias:0"} <= {v.name for v in tf.compat.v1.global_variables()}
        assert not tf.compat.v1.trainable_variables() and loaded.dense.w.trainable
        session.run([tf.compat.v1.global_variables_initializer(), tf.compat.v1.tables_initializer()])
        given = {x: [[1.0, 2.0]]}
        results = session.run([y, gradient, found, counted], given)
    model = original[0]
    with tf.GradientTape() as tape:
        tape.watch(tf_x := tf.constant([[1.0, 2.0]]))
        expected = model(tf_x)
    np.testing.assert_array_equal(results[0], expected.numpy())
    np.testing.assert_array_equal(results[1], tape.gradient(expected, tf_x).numpy())
    assert results[2].tolist() == [1, -1] and results[3].tolist() == [2]


def test_COMPAT_01_a_monitored_session_initialises_what_was_loaded(tf, original):
    with tf.Graph().as_default():
        loaded = reference_impl.load(original[1])
        y, found = loaded(tf.constant([[1.0, 2.0]])), loaded.look(tf.constant(["bee", "wasp"]))
        with tf.compat.v1.train.MonitoredSession() as session:
            values = session.run([y, found])
    np.testing.assert_array_equal(values[0], original[0](tf.constant([[1.0, 2.0]])).numpy())
    assert values[1].tolist() == [1, -1]


@pytest.mark.parametrize("skip", [False, True], ids=["with values", "without"])
def test_variable_creators_have_their_say(tf, original, skip):
    from reference_impl.loading.options import LoadOptions

    seen = []

    def freeze(create, **keywords):
        seen.append(keywords["name"])
        return create(**{**keywords, "trainable": False})

    with tf.variable_creator_scope(freeze), tf.name_scope("inside"):
        loaded = reference_impl.load(original[1], options=LoadOptions(skip_checkpoint=skip))
    assert {"w", "bias"} <= set(seen) and not loaded.trainable_variables
    assert loaded.bias.name == "inside/bias:0"


_STRATEGY = """
import sys
import tensorflow as tf
import reference_impl
from reference_impl.loading.options import LoadOptions

(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    loaded = reference_impl.load(sys.argv[1])

def step():
    replica = tf.distribute.get_replica_context().replica_id_in_sync_group
    with tf.GradientTape() as tape:
        y = loaded.f(tf.ones([2]) * (tf.cast(replica, tf.float32) + 1.0))
    return y, tape.gradient(y, loaded.v)

values, gradients = tf.function(lambda: strategy.run(step))()
print([v.numpy().tolist() for v in strategy.experimental_local_results(values)])
print([g.numpy().tolist() for g in strategy.experimental_local_results(gradients)])
print([float(c.numpy()) for c in strategy.experimental_local_results(loaded.steps)])
print([v.numpy().tolist() for v in strategy.experimental_local_results(strategy.run(lambda: loaded.g(tf.ones([2]))))])
with strategy.scope():
    empty = reference_impl.load(sys.argv[1], options=LoadOptions(skip_checkpoint=True))
print(len(empty.v.values))
"""


def test_DIST_01_loading_under_a_strategy(tf, tmp_path):
    root = tf.Module()
    root.v = tf.Variable([2.0, 3.0])
    root.steps = tf.Variable(
        0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.MEAN, trainable=False
    )
    spec = [tf.TensorSpec([2])]
    root.f = tf.function(lambda x: x * root.v + root.steps.assign_add(x[0]), input_signature=spec)
    root.g = tf.function(lambda x: x * root.v, input_signature=spec)
    directory = save(tf, tmp_path, root, signatures={})
    command = [sys.executable, "-c", _STRATEGY, str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent.parent, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == [
        "[[3.0, 4.0], [6.0, 8.0]]",  # each replica has its own counter
        "[[1.0, 1.0], [2.0, 2.0]]",
        "[1.0, 2.0]",
        "[[2.0, 3.0], [2.0, 3.0]]",
        "2",  # variables without a value are distributed too
    ]
