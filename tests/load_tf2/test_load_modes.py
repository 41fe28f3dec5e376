"""`reference_impl.load` of models of TensorFlow 2: options, graph mode, strategies."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import fresh_tensorflow
import numpy as np
import pytest
from made_models import edit, save

import reference_impl

pytestmark = pytest.mark.tensorflow


def test_options_without_a_checkpoint(tf, original, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(original[1], copy)
    shutil.rmtree(copy / "variables")
    with pytest.raises(
        FileNotFoundError, match=r"variables\.index: root\..*: no such file"
    ) as missing:
        reference_impl.load(copy)
    assert "put variables/ back beside saved_model.pb" in str(missing.value)
    loaded = reference_impl.load(
        copy, options=tf.saved_model.LoadOptions(experimental_skip_checkpoint=True)
    )
    assert not loaded.bias.is_initialized() and loaded.bias.shape == [2]
    assert loaded.look(["bee"]).numpy().tolist() == [
        1
    ]  # tables that are filled by their initialiser need no checkpoint
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
    loaded = reference_impl.load(
        directory, options=tf.saved_model.LoadOptions(allow_partial_checkpoint=True)
    )
    assert loaded.kept.numpy() == 1.0 and not loaded.gone.is_initialized()


def test_options_function_aliases(tf, tmp_path):
    root = tf.Module()
    from reference_impl.load_options import LoadOptions

    root.f, root.g = tf.function(lambda x: x + 1), tf.function(lambda x: x * 2)
    for value in (1.0, [1.0]):
        root.f(tf.constant(value)), root.g(tf.constant(value))
    directory = save(
        tf, tmp_path, root, options=tf.saved_model.SaveOptions(function_aliases={"whole": root.f})
    )

    def add(
        meta_graph,
        # TensorFlow itself writes the alias of a single trace under a name that it then does not
        # use
    ):
        g = next(node for node in meta_graph.object_graph_def.nodes if node.HasField("function") and
                 node.function.concrete_functions[0] not in meta_graph.meta_info_def.function_aliases)  # fmt: skip
        meta_graph.meta_info_def.function_aliases[g.function.concrete_functions[0]] = "part"

    edit(directory, add)
    asked = LoadOptions(load_function_aliases=True)
    loaded = reference_impl.load(directory, options=asked)
    assert loaded.function_aliases["whole"] is loaded.f
    assert loaded.function_aliases["part"] == [loaded.g.concrete_functions[0]]
    assert not hasattr(reference_impl.load(directory), "function_aliases")


# Graph mode and strategies


def test_COMPAT_01_loading_in_graph_mode(tf, original):
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        loaded = reference_impl.load(original[1])
        x = tf.compat.v1.placeholder(tf.float32, [1, 2])
        y = loaded(x)
        (gradient,) = tf.gradients(y, [x])
        found, counted = (
            loaded.look(tf.constant(["bee", "wasp"])),
            loaded.count(tf.constant(["bee"])),
        )
        assert len(graph.get_collection("asset_filepaths")) == 1
        assert {"w:0", "bias:0"} <= {v.name for v in tf.compat.v1.global_variables()}
        assert not tf.compat.v1.trainable_variables() and loaded.dense.w.trainable
        session.run(
            [tf.compat.v1.global_variables_initializer(), tf.compat.v1.tables_initializer()]
        )
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
    from reference_impl.load_options import LoadOptions

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
from reference_impl.load_options import LoadOptions

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
        0.0,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.MEAN,
        trainable=False,
    )
    spec = [tf.TensorSpec([2])]
    root.f = tf.function(lambda x: x * root.v + root.steps.assign_add(x[0]), input_signature=spec)
    root.g = tf.function(lambda x: x * root.v, input_signature=spec)
    directory = save(tf, tmp_path, root, signatures={})
    done = fresh_tensorflow.run(_STRATEGY, directory)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == [
        "[[3.0, 4.0], [6.0, 8.0]]",  # each replica has its own counter
        "[[1.0, 1.0], [2.0, 2.0]]",
        "[1.0, 2.0]",
        "[[2.0, 3.0], [2.0, 3.0]]",
        "2",  # variables without a value are distributed too
    ]


_MODULES = """
import sys
import reference_impl
loaded = reference_impl.load(sys.argv[1])
loaded.signatures["serving_default"], loaded.trainable_variables, type(loaded)()
print(*sorted(name for name in sys.modules if name.startswith(("reference_impl.v1", "reference_impl.saving"))))
"""


def test_a_load_of_tf2_imports_neither_the_reader_of_tf1_nor_the_writer(tf, tmp_path):
    root = tf.Module()
    root.v = tf.Variable(2.0)
    root.f = tf.function(lambda x: x * root.v, input_signature=[tf.TensorSpec([])])
    directory = save(tf, tmp_path, root)
    command = [sys.executable, "-c", _MODULES, str(directory)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == []
