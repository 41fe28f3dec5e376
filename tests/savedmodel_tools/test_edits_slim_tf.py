"""`slim` of today's models: what only has the names of an optimizer, or only reads like a call for
training, stays and works.
"""

import model_edits
import pytest

import reference_impl
from reference_impl.format.container import layout
from savedmodel_tools.edits.run import edit
from savedmodel_tools.edits.slim import slim

pytestmark = pytest.mark.tensorflow

WRITERS = ["shipped", "reference"]


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def slimmed(tf, root, tmp_path, writer):
    """The model saved by a writer, slim and loaded by both loaders, and what `slim` said."""
    save = tf.saved_model.save if writer == "shipped" else reference_impl.save
    save(
        root, str(tmp_path / "model"), signatures={}
    )  # no default signature: the functions stand for themselves
    done = edit(tmp_path / "model", tmp_path / "out", slim)
    loaded = [load(str(tmp_path / "out")) for load in (tf.saved_model.load, reference_impl.load)]
    return done, loaded


def solver(tf, weights=(), counter="int64"):
    """An object with the attributes of a Keras optimizer."""
    made = tf.Module()
    made._iterations = tf.Variable(3, dtype=counter)
    made._learning_rate = tf.Variable(0.5)
    made._state = [tf.Variable([7.0, 8.0], trainable=False)]
    made._variables = [made._iterations, made._learning_rate, *made._state]
    if weights:
        made._trainable_variables = list(weights)
    return made


@pytest.mark.parametrize("writer", WRITERS)
def test_an_object_that_only_has_the_names_of_an_optimizer_stays(tf, tmp_path, writer):
    root = tf.Module()
    root.w = tf.Variable([1.0, 2.0])
    root.solver = tf.Module()
    root.solver.iterations = tf.Variable(12)
    root.solver.learning_rate = tf.Variable(0.25)
    root.solver._variables = [root.solver.iterations, tf.Variable([4.0, 5.0])]
    done, loaded = slimmed(tf, root, tmp_path, writer)
    assert any("solver, " in text for text in done.kept)
    for again in loaded:
        assert again.solver.iterations.numpy() == 12 and again.solver._variables[
            1
        ].numpy().tolist() == [4.0, 5.0]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("step", ["reads", "counts", "changes_weights_only"])
def test_functions_of_such_an_object_stay_unless_they_change_weights_with_its_variables(
    tf, tmp_path, writer, step
):
    root = tf.Module()
    root.w = tf.Variable([1.0, 2.0])
    root.solver = made = solver(tf)

    @tf.function(input_signature=[tf.TensorSpec([2])])
    def solve(x):
        if step == "counts":
            made._iterations.assign_add(1)
        if step == "changes_weights_only":
            root.w.assign_add(0.0 * x)
        return x * made._learning_rate + made._state[0] * root.w

    root.solve = solve
    want = solve(tf.constant([1.0, 1.0])).numpy()
    done, loaded = slimmed(tf, root, tmp_path, writer)
    assert len(done.kept) == 1 and "together with weights" in done.kept[0]
    for again in loaded:
        assert again.solve(tf.constant([1.0, 1.0])).numpy().tolist() == want.tolist()
        assert again.solver._state[0].numpy().tolist() == [7.0, 8.0]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("evidence", ["lists_weights", "step_in_a_called_function"])
def test_an_optimizer_is_recognised_by_the_weights_that_it_trains(tf, tmp_path, writer, evidence):
    root = tf.Module()
    root.w = tf.Variable([1.0, 2.0])
    root.optimizer = made = solver(tf, [root.w] if evidence == "lists_weights" else ())

    @tf.function
    def apply(gradient):
        made._iterations.assign_add(1)
        root.w.assign_sub(made._learning_rate * gradient)

    if evidence == "step_in_a_called_function":
        root.train = tf.function(lambda x: [apply(x), x][1], input_signature=[tf.TensorSpec([2])])
    done, loaded = slimmed(tf, root, tmp_path, writer)
    assert done.kept == () and any("it trains" in text for text in done.changes)
    for again in loaded:
        assert (
            not hasattr(again, "optimizer")
            and not hasattr(again, "train")
            and again.w.numpy().tolist() == [1.0, 2.0]
        )


@pytest.mark.parametrize("name", ["Adam", "SGD", "Ftrl", "Nadam"])
def test_optimizers_of_keras_3_go(tf, tmp_path, name):
    keras = pytest.importorskip("keras", minversion="3")
    root = tf.Module()
    root.w = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    root.optimizer = getattr(keras.optimizers, name)()
    root.optimizer.build([root.w])
    done, loaded = slimmed(tf, root, tmp_path, "shipped")
    assert done.kept == () and any("optimizer optimizer" in text for text in done.changes)
    assert all(not hasattr(again, "optimizer") for again in loaded)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(
    "text", ["training=True", "a, training=True, b", "(training=True)", "x', training=True)"]
)
def test_a_text_is_not_the_parameter(tf, tmp_path, writer, text):
    root = tf.Module()
    root.f = tf.function(lambda x, mode, training=False: x + (1.0 if mode == text else 2.0))
    root.f(tf.constant(1.0), text)
    root.f(tf.constant(1.0), "other")
    done, loaded = slimmed(tf, root, tmp_path, writer)
    assert done.changes == ()
    for again in loaded:
        assert [again.f(tf.constant(1.0), mode).numpy() for mode in (text, "other")] == [2.0, 3.0]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_field_of_an_argument_is_not_the_parameter(tf, tmp_path, writer):
    import collections

    options = collections.namedtuple("Options", "scale training")
    root = tf.Module()
    root.f = tf.function(lambda x, o: x * o.scale if o.training else x)
    root.g = tf.function(lambda x, o: x * 2.0 if o["training"] else x)
    for training in (True, False):
        root.f(tf.constant(1.0), options(3.0, training))
        root.g(tf.constant(1.0), {"training": training})
    done, loaded = slimmed(tf, root, tmp_path, writer)
    assert done.changes == ()
    for again in loaded:
        assert again.f(tf.constant(1.0), options(3.0, True)).numpy() == 3.0
        assert again.g(tf.constant(1.0), {"training": True}).numpy() == 2.0


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("keyword_only", [False, True])
def test_the_trace_for_training_goes_where_its_twin_stays(tf, tmp_path, writer, keyword_only):
    root = tf.Module()
    if keyword_only:
        root.f = tf.function(lambda x, *, training=False: x + (10.0 if training else 1.0))
    else:
        root.f = tf.function(lambda x, training=False: x + (10.0 if training else 1.0))
    for training in (True, False):
        root.f(tf.constant(1.0), training=training)
    root.f(tf.constant([1.0, 2.0, 3.0]), training=True)  # no twin
    done, loaded = slimmed(tf, root, tmp_path, writer)
    assert done.changes[0].startswith("1 of 3 traces of function f ")
    for again in loaded:
        assert again.f(tf.constant(1.0), training=False).numpy() == 2.0
        assert again.f(tf.constant([1.0, 2.0, 3.0]), training=True).numpy().tolist() == [
            11.0,
            12.0,
            13.0,
        ]
        with pytest.raises(ValueError):
            again.f(tf.constant(1.0), training=True)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_function_that_was_only_called_with_training_stays(tf, tmp_path, writer):
    root = tf.Module()
    root.coach = tf.function(lambda x, training=True: x + (10.0 if training else 1.0))
    root.coach(tf.constant(1.0))
    done, loaded = slimmed(tf, root, tmp_path, writer)
    assert done.changes == ()
    assert [again.coach(tf.constant(1.0)).numpy() for again in loaded] == [11.0, 11.0]


def test_no_trace_is_lost_without_a_word(tf, tmp_path):
    """Everything that an object graph had is there afterwards, or named among the changes."""
    root = tf.Module()
    root.w = tf.Variable([1.0, 2.0])
    root.solver = solver(tf, counter="float32")
    done, _ = slimmed(tf, root, tmp_path, "shipped")
    before, after = (
        layout.read(tmp_path / name).meta_graph().object_graph_def for name in ("model", "out")
    )
    assert len(before.nodes) == len(after.nodes) and "not an integer" in done.kept[0]


def test_other_implementations_of_a_function_that_stays_stay_too(tf, tmp_path):
    """Keras 2 has an LSTM for GPUs that nothing refers to: the runtime swaps it in by an attribute
    of both functions.
    """
    root = tf.Module()
    inner = tf.function(lambda x: 2 * x)
    root.f = tf.function(lambda x: inner(x) + 1, input_signature=[tf.TensorSpec([None])])
    tf.saved_model.save(root, str(tmp_path / "model"))

    def implement_twice(message):
        library = message.meta_graphs[0].graph_def.library
        called = {
            node.attr["f"].func.name
            for f in library.function
            for node in f.node_def
            if "PartitionedCall" in node.op
        }
        cpu = next(
            f
            for f in library.function
            if f.signature.name in called and any(node.op == "Mul" for node in f.node_def)
        )
        cpu.attr["api_implements"].s, cpu.attr["api_preferred_device"].s = b"double", b"CPU"
        for name, implements in (("gpu", b"double"), ("unrelated", b"triple")):
            copy = library.function.add()
            copy.CopyFrom(cpu)
            copy.signature.name = name
            copy.attr["api_implements"].s, copy.attr["api_preferred_device"].s = implements, b"GPU"

    source = model_edits.edited(tmp_path / "model", tmp_path / "edited", implement_twice)
    edit(source, tmp_path / "out", slim)
    functions = layout.read(tmp_path / "out").meta_graph().graph_def.library.function
    names = {function.signature.name for function in functions}
    assert "gpu" in names and "unrelated" not in names
    assert reference_impl.load(tmp_path / "out").f([1.0]).numpy() == [3.0]
