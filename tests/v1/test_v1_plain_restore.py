"""Restoring a TF 1.x model: values that a Saver restores as they are are read; everything else runs
as the graph says.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import reference_impl
from reference_impl import errors
from reference_impl.format import schema

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tensorflow

v1 = tf.compat.v1
SIZE = 1 << 15


def exported(folder, make):
    """A SavedModel of TF 1.x.

    `make` builds the graph and returns its result and a Saver, or None for the usual one.
    """
    builder = v1.saved_model.Builder(str(folder))
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [], name="x")
        result, saver = make(x)
        session.run(v1.global_variables_initializer())
        signature = v1.saved_model.predict_signature_def({"x": x}, {"y": result})
        builder.add_meta_graph_and_variables(
            session, ["serve"], {"serving_default": signature}, saver=saver
        )
    builder.save()
    return folder


def variable(name, values, **options):
    return v1.get_variable(name, initializer=np.asarray(values), use_resource=False, **options)


def answers(folder, x=2.0):
    """What ours and a session answer."""
    found = reference_impl.load(folder).signatures["serving_default"](x=tf.constant(x))["y"].numpy()
    with v1.Graph().as_default(), v1.Session() as session:
        v1.saved_model.load(session, ["serve"], str(folder))
        return found, session.run("result:0", {"x:0": x})


def test_plain_variables_are_read_and_mapped_on_request(tmp_path):
    def make(x):
        weights, step = (
            variable("a_weights", np.arange(SIZE, dtype=np.float32)),
            variable("step", np.float32(3)),
        )
        return tf.identity(tf.reduce_sum(weights) * x + step, name="result"), None

    folder = exported(tmp_path / "model", make)
    ours, theirs = answers(folder)
    assert ours == theirs
    loaded = reference_impl.load(folder, options=reference_impl.LoadOptions(weights="mapped"))
    maps = Path("/proc/self/maps")
    shard = next((folder / "variables").glob("*.data-*"))
    if maps.exists() and tf.config.list_logical_devices() == tf.config.list_logical_devices("CPU"):
        lines = [
            line.split()
            for line in maps.read_text(encoding="utf-8").splitlines()
            if line.endswith(str(shard))
        ]
        assert [line[1] for line in lines] == ["rw-p"]
    (weights,) = (variable for variable in loaded.variables if "weights" in variable.name)
    np.testing.assert_array_equal(weights.numpy(), np.arange(SIZE, dtype=np.float32))


def test_what_a_restore_transforms_is_not_read_as_it_is(tmp_path):
    """A Saver whose restore multiplies what it reads: all of it runs."""
    saveable = pytest.importorskip("tensorflow.python.training.saving.saveable_object")

    class Doubled(saveable.SaveableObject):
        def __init__(self, held):
            super().__init__(held, [saveable.SaveSpec(held, "", "held")], "held")

        def restore(self, restored_tensors, restored_shapes):
            return v1.assign(self.op, restored_tensors[0] * 2.0)

    def make(x):
        held, other = variable("held", np.float32([1, 2, 3])), variable("other", np.float32(5))
        return tf.identity(held * x + other, name="result"), v1.train.Saver([Doubled(held), other])

    ours, theirs = answers(exported(tmp_path / "model", make))
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(ours, np.float32([1, 2, 3]) * 4 + 5)


def test_parts_of_a_partitioned_variable_are_restored_beside_plain_ones(tmp_path):
    def make(x):
        rows = v1.get_variable(
            "rows",
            [9, 4],
            initializer=v1.initializers.random_normal(seed=1),
            partitioner=v1.fixed_size_partitioner(3),
        )
        other = variable("other", np.float32([4, 3, 2, 1]))
        return tf.identity(
            v1.nn.embedding_lookup(rows, [0, 4, 8], partition_strategy="div") * x + other,
            name="result",
        ), None

    ours, theirs = answers(exported(tmp_path / "model", make))
    np.testing.assert_array_equal(ours, theirs)


def test_a_table_is_filled_from_the_checkpoint_beside_plain_variables(tmp_path):
    def make(x):
        table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, -1.0)
        scale = variable("scale", np.float32(7))
        insert = table.insert(tf.constant([1, 2], tf.int64), tf.constant([10.0, 20.0]))
        v1.get_default_session().run(insert)
        return tf.identity(
            table.lookup(tf.constant([1, 2, 3], tf.int64)) * x * scale, name="result"
        ), None

    ours, theirs = answers(exported(tmp_path / "model", make))
    np.testing.assert_array_equal(ours, theirs)


def test_a_damaged_value_is_refused_by_its_key(tmp_path):
    def make(x):
        return tf.identity(
            tf.reduce_sum(variable("weights", np.arange(SIZE, dtype=np.float32))) * x, name="result"
        ), None

    folder = exported(tmp_path / "model", make)
    shard = next((folder / "variables").glob("*.data-*"))
    data = bytearray(shard.read_bytes())
    data[4000] ^= 1
    shard.write_bytes(data)
    with pytest.raises(errors.ChecksumError) as caught:
        reference_impl.load(folder)
    assert "weights" in str(caught.value)
    assert isinstance(caught.value, tf.errors.DataLossError)


@pytest.mark.filterwarnings(
    "ignore::reference_impl.safety.machine_ops.MachineOpWarning"
)  # without inputs nobody knows the file that is read
@pytest.mark.parametrize(
    "damage", ["other dtype", "fewer keys", "no inputs", "an Assign without a value"]
)
def test_a_damaged_restore_is_refused_by_us_or_by_the_op_that_runs(tmp_path, damage):
    def make(x):
        weights, other = (
            variable("weights", np.arange(3, dtype=np.float32)),
            variable("other", np.float32(3)),
        )
        return tf.identity(tf.reduce_sum(weights) * x + other, name="result"), None

    folder = exported(tmp_path / "model", make)
    file = folder / "saved_model.pb"
    model = schema.SavedModel.FromString(file.read_bytes())
    nodes = {node.name: node for node in model.meta_graphs[0].graph_def.node}
    keys = nodes["save/RestoreV2/tensor_names"].attr["value"].tensor
    if damage == "other dtype":
        keys.CopyFrom(
            schema.TensorProto(
                dtype=schema.DT_INT32, int_val=[1, 2], tensor_shape={"dim": [{"size": 2}]}
            )
        )
    elif damage == "fewer keys":
        keys.CopyFrom(
            schema.TensorProto(
                dtype=schema.DT_STRING, string_val=[b"other"], tensor_shape={"dim": [{"size": 1}]}
            )
        )
    elif damage == "no inputs":
        del nodes["save/RestoreV2"].input[:]
    else:
        del nodes["save/Assign"].input[1:]
    file.write_bytes(schema.serialize(model))
    with pytest.raises((reference_impl.SavedModelError, tf.errors.OpError)):
        reference_impl.load(folder)
