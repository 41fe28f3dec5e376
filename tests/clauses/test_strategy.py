"""Clauses about distribution strategies (DIST): what is written under one, in a process with two
CPUs; loading: DIST-01.
"""

from __future__ import annotations

import fresh_tensorflow
import pytest

import reference_impl
from reference_impl.errors import SaveError
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow

_PROGRAM = """
import sys
import tensorflow as tf
import reference_impl

(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    root = tf.Module()
    root.v = tf.Variable([2.0, 3.0])
    root.mean = tf.Variable(
        0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.MEAN, trainable=False
    )
root.f = tf.function(lambda x: x * root.v, input_signature=[tf.TensorSpec([2])])

@tf.function
def step():
    replica = tf.distribute.get_replica_context().replica_id_in_sync_group
    root.mean.assign(tf.cast(replica, tf.float32) + 1.0)

strategy.run(step)
reference_impl.save(root, sys.argv[1])
with strategy.scope():
    again = reference_impl.load(sys.argv[1])
strategy.run(lambda: again.mean.assign(tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32) * 4.0))
reference_impl.save(again, sys.argv[2])
"""


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """Written inside of a strategy, and written again after loading inside of it, when the replicas
    held 0 and 4.
    """
    folder = tmp_path_factory.mktemp("strategy")
    done = fresh_tensorflow.run(_PROGRAM, folder / "first", folder / "second")
    assert done.returncode == 0, done.stderr[-2000:]
    return folder / "first", folder / "second"


@pytest.mark.clause("DIST-03")
@pytest.mark.parametrize("generation", [0, 1])
def test_DIST_02_and_04_an_export_of_a_strategy_is_not_tied_to_it(both, exports, tf, generation):
    """It loads without; a variable that is read over all replicas has their mean, and its
    annotations.
    """
    mean = [1.5, 2.0][generation]
    for loaded in both(exports[generation]):
        assert float(loaded.mean) == mean
        assert loaded.f(tf.constant([1.0, 1.0])).numpy().tolist() == [2.0, 3.0]
        assert loaded.signatures["serving_default"](tf.constant([1.0, 1.0]))[
            "output_0"
        ].numpy().tolist() == [
            2.0,
            3.0,
        ]
        assert loaded.mean.synchronization == tf.VariableSynchronization.ON_READ
        assert loaded.mean.aggregation == tf.VariableAggregation.MEAN
    graph = layout.read(exports[generation]).meta_graph(None).graph_def
    nodes = [
        *graph.node,
        *(node for function in graph.library.function for node in function.node_def),
    ]
    assert {node.device for node in nodes} == {""}
    assert sum(node.op == "VarHandleOp" for node in graph.node) == 2
    assert reference_impl.load(exports[generation]).v.numpy().tolist() == [2.0, 3.0]


def test_DIST_02_a_variable_of_shards_is_loaded_whole_and_is_refused_by_save(tf, both, tmp_path):
    """As partitioners of parameter servers make them; TensorFlow runs the functions' code again to
    save one.
    """
    root, parts = (
        tf.Module(),
        [tf.Variable([1.0, 2.0], name="v/part_0"), tf.Variable([3.0, 4.0], name="v/part_1")],
    )
    root.v = tf.__internal__.distribute.ShardedVariable(parts, name="v")
    root.look = tf.function(
        lambda i: tf.nn.embedding_lookup(root.v, i),
        input_signature=[tf.TensorSpec([None], tf.int32)],
    )
    tf.saved_model.save(root, str(tmp_path / "theirs"))
    for loaded in both(tmp_path / "theirs"):
        assert isinstance(loaded.v, tf.Variable) and loaded.v.numpy().tolist() == [
            1.0,
            2.0,
            3.0,
            4.0,
        ]
        assert loaded.look(tf.constant([0, 3])).numpy().tolist() == [1.0, 4.0]
    with pytest.raises(
        SaveError,
        match=(r"root\.v: .*2 shards: .*tf\.convert_to_tensor"),
    ):
        reference_impl.save(root, tmp_path / "ours")
    whole = tf.Module()
    whole.v = tf.Variable(tf.convert_to_tensor(root.v))  # as the message says
    whole.look = tf.function(
        lambda i: tf.gather(whole.v, i), input_signature=[tf.TensorSpec([None], tf.int32)]
    )
    reference_impl.save(whole, tmp_path / "ours")
    for loaded in both(tmp_path / "ours"):
        assert loaded.look(tf.constant([0, 3])).numpy().tolist() == [1.0, 4.0]
