"""Clauses about the restore procedure (RP) and what the review decided (DR)."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import recorded

import reference_impl
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow

READERS = ("reference", "tensorflow")


def load(tf, directory, reader):
    return (
        reference_impl.load(directory)
        if reader == "reference"
        else tf.saved_model.load(str(directory))
    )


@pytest.fixture(scope="module")
def generic(tf):
    """The class of objects whose own class is unknown."""
    from reference_impl.kinds.user_object import LoadedObject

    return LoadedObject


@pytest.fixture(scope="module")
def export(tf, tmp_path_factory):
    """Aliases, a cycle, a shared child and function; a generator; a mutable table; three
    generations of it.
    """

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.child = tf.Module()
            self.child.parent = self
            self.child.v = tf.Variable([1.0, 2.0], name="v")
            self.alias = self.child
            self.many = [self.child, {"child": self.child}]
            self.random = tf.random.Generator.from_seed(7)
            self.counts = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0)
            self.half = tf.Variable(
                tf.constant([1.5, -2.5], tf.bfloat16), trainable=False, name="half"
            )
            self.partial = tf.Variable([[1], [2]], shape=tf.TensorShape([None, 1]), name="partial")
            self.mean = tf.Variable(
                0.5,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=tf.VariableAggregation.MEAN,
                trainable=False,
            )

        @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
        def f(self, x):
            return x * self.child.v

        @tf.function(input_signature=[])
        def draw(self):
            return self.random.uniform([2])

        @tf.function(input_signature=[tf.TensorSpec([], tf.int64)])
        def bump(self, key):
            self.counts.insert(key, self.counts.lookup(key) + 1)
            return self.counts.lookup(key)

    model = Model()
    model.child.f = model.f
    model.random.uniform([3])  # its state is not that of the seed any more
    model.bump(tf.constant(1, tf.int64))
    directory = tmp_path_factory.mktemp("export") / "m"
    reference_impl.save(model, directory, {"f": model.f})
    return directory, model.random.state.numpy().tolist(), model.draw().numpy().tolist()


@pytest.mark.clause("PRIM-02", "GOAL-11")
@pytest.mark.parametrize("reader", READERS)
def test_RP_01_and_05_the_same_structure_of_generic_objects(generic, tf, export, reader):
    directory, state, drawn = export
    loaded = load(tf, directory, reader)
    assert loaded.child is loaded.alias is loaded.many[0] is loaded.many[1]["child"]
    assert loaded.child.parent is loaded
    assert loaded.child.f is loaded.f
    assert not isinstance(
        loaded.random, tf.random.Generator
    )  # everything that is not named by the format is generic
    if reader == "reference":
        assert isinstance(loaded.random, generic) and isinstance(loaded.child, generic)
    assert loaded.random._state_var.numpy().tolist() == state
    assert loaded.draw().numpy().tolist() == drawn
    checkpoint = tf.train.Checkpoint(root=loaded)  # all are checkpointable
    assert any(
        "child/v" in name
        for name, _ in tf.train.list_variables(
            checkpoint.write(str(directory.parent / f"c_{reader}"))
        )
    )


@pytest.mark.clause("DIST-03")
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("generation", [1, 2])
def test_RP_03_variables_are_new_and_keep_their_attributes(
    tf, export, tmp_path, reader, generation
):
    directory = export[0]
    if generation == 2:
        reference_impl.save(reference_impl.load(directory), tmp_path / "m")
        directory = tmp_path / "m"
    first, second = load(tf, directory, reader), load(tf, directory, reader)
    first.child.v.assign([5.0, 6.0])
    assert second.child.v.numpy().tolist() == [1.0, 2.0]
    assert (
        second.half.dtype == tf.bfloat16
        and second.half.name == "half:0"
        and not second.half.trainable
    )
    assert tf.cast(second.half, tf.float32).numpy().tolist() == [1.5, -2.5]
    assert second.partial.shape.as_list() == [None, 1]
    second.partial.assign([[1], [2], [3]])
    assert second.mean.synchronization == tf.VariableSynchronization.ON_READ
    assert second.mean.aggregation == tf.VariableAggregation.MEAN


@pytest.mark.parametrize("reader", READERS)
def test_RP_06_two_loads_share_no_resource(tf, export, reader):
    first, second = (load(tf, export[0], reader) for _ in range(2))
    one = tf.constant(1, tf.int64)
    assert [int(first.bump(one)), int(first.bump(one)), int(second.bump(one))] == [2, 3, 2]


def test_RP_07_captures_are_bound_to_the_new_objects(tf, export):
    loaded = reference_impl.load(export[0])
    (concrete,) = loaded.f.concrete_functions
    assert [handle is loaded.child.v.handle for handle in concrete.captured_inputs] == [True]
    assert [variable is loaded.child.v for variable in concrete.variables] == [True]
    loaded.child.v.assign([10.0, 10.0])
    for call in (loaded.f, loaded.child.f, lambda x: loaded.signatures["f"](x)["output_0"]):
        assert call(tf.constant([1.0, 2.0])).numpy().tolist() == [10.0, 20.0]


@pytest.mark.clause("GOAL-09")
def test_RP_08_the_restore_function_gives_what_the_object_checkpoint_gives(tf, export):
    """Python reads the keys of objects, a session runs the function: every variable has the same
    value both ways.
    """
    directory = export[0]
    graph = layout.read(directory).meta_graph(None)
    nodes = {node.name: node for node in graph.graph_def.node}
    reads = {
        node.input[0]: name
        for name, node in nodes.items()
        if node.op == "ReadVariableOp" and "after" not in name
    }
    names = [name for name, node in nodes.items() if node.op == "VarHandleOp"]
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        v1.saved_model.loader.load(session, ["serve"], str(directory))
        by_function = dict(zip(names, session.run([f"{reads[name]}:0" for name in names])))
    loaded = reference_impl.load(directory)
    by_object = {variable.name.partition(":")[0]: variable.numpy() for variable in loaded.variables}
    assert set(by_function) == set(by_object)
    for name, value in by_object.items():
        np.testing.assert_array_equal(
            by_function[name].astype(np.float64), value.astype(np.float64)
        )


@pytest.mark.clause("NG-01")
def test_DR_02_load_gives_one_object(generic, tf, export, tmp_path):
    """Whatever was saved, and however many MetaGraphs there are."""
    assert isinstance(reference_impl.load(export[0]), generic)
    assert len(layout.read(export[0]).saved_model.meta_graphs) == 1
    both = recorded.model("serve_and_train")
    assert len(layout.read(both).saved_model.meta_graphs) == 2
    assert isinstance(reference_impl.load(both, "serve"), generic)
    variable = tf.Variable(3.0)
    reference_impl.save(variable, tmp_path / "m")
    assert isinstance(reference_impl.load(tmp_path / "m"), tf.Variable)


@pytest.mark.parametrize("tags", [None, "serve", ["serve"]])
def test_DR_06_signatures_and_variables_of_an_old_model(tf, tags):
    loaded = reference_impl.load(recorded.model("simple_save"), tags)
    assert list(loaded.signatures) == ["serving_default"] and len(loaded.variables) == 3


@pytest.mark.clause("RP-07", "DR-05")
def test_RP_07_an_op_that_is_unknown_here_troubles_its_callers_alone(tf, export, tmp_path):
    """Shipped TensorFlow imports every function of the library, and fails."""
    directory = shutil.copytree(export[0], tmp_path / "m")
    from reference_impl.format import schema

    message = schema.parse(schema.SavedModel, (directory / "saved_model.pb").read_bytes())
    for function in message.meta_graphs[0].graph_def.library.function:
        if "bump" in function.signature.name:
            function.node_def.add(name="odd", op="NobodyHasThisOp")
    (directory / "saved_model.pb").write_bytes(message.SerializeToString())
    with pytest.raises(
        (tf.errors.NotFoundError, RuntimeError, FileNotFoundError), match="NobodyHasThisOp"
    ):
        tf.saved_model.load(str(directory))
    loaded = reference_impl.load(directory)
    assert loaded.f(tf.constant([1.0, 1.0])).numpy().tolist() == [1.0, 2.0]
    assert loaded.signatures["f"](tf.constant([1.0, 1.0]))["output_0"].numpy().tolist() == [
        1.0,
        2.0,
    ]
    with pytest.raises(tf.errors.NotFoundError, match="NobodyHasThisOp"):
        loaded.bump(tf.constant(1, tf.int64))


def test_DR_08_a_keras_layer_runs_what_is_written(tf, export):
    """`TFSMLayer` sees the weights; it is Keras's own reader of this format."""
    keras = pytest.importorskip("keras", minversion="3")
    layer = keras.layers.TFSMLayer(str(export[0]), call_endpoint="f")
    assert layer(np.float32([1, 1])).numpy().tolist() == [1.0, 2.0]
    assert [weight.shape for weight in layer.trainable_weights] == [(2,)]
