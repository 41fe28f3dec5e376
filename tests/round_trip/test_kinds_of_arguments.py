"""Arguments of rarer types, through a save and a load by either implementation."""

from __future__ import annotations

import pytest

import reference_impl

pytestmark = [pytest.mark.tensorflow, pytest.mark.clause("PY-08")]


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def generations(tf, tmp_path, root):
    """Yield the model as both implementations load it, saved by TensorFlow, by us, and by us again."""
    tf.saved_model.save(root, str(tmp_path / "theirs"))
    reference_impl.save(root, tmp_path / "ours")
    reference_impl.save(reference_impl.load(tmp_path / "theirs"), tmp_path / "again")
    for name in ("theirs", "ours", "again"):
        yield tf.saved_model.load(str(tmp_path / name))
        yield reference_impl.load(tmp_path / name)


def test_partitions_of_ragged_tensors(tf, tmp_path):
    root = tf.Module()
    root.size = tf.function(lambda shape: shape[0])
    shape = tf.experimental.DynamicRaggedShape.from_lengths([2, (1, 2)])
    root.size(shape)
    for loaded in generations(tf, tmp_path, root):
        specs = loaded.size.concrete_functions[0].structured_input_signature[0]
        assert type(specs[0]) is type(root.size.get_concrete_function(shape).structured_input_signature[0][0])
        if not isinstance(loaded, reference_impl.kinds.user_object.LoadedObject):
            continue  # a function that shipped TensorFlow has loaded cannot flatten this value
        assert int(loaded.size(tf.experimental.DynamicRaggedShape.from_lengths([2, (2, 1)]))) == 2


def test_values_of_replicas(tf, tmp_path):
    from tensorflow.python.distribute.values import PerReplica  # there is no public way to make one

    root = tf.Module()
    root.f = tf.function(lambda value: value.values[0] + value.values[1])
    root.f(PerReplica([tf.constant(1.0), tf.constant(2.0)]))
    for loaded in generations(tf, tmp_path, root):
        assert float(loaded.f(PerReplica([tf.constant(3.0), tf.constant(4.0)]))) == 7.0


def test_bounds_of_specs(tf, tmp_path):
    """TF-Agents declares them."""
    from tensorflow.python.framework.tensor_spec import BoundedTensorSpec  # as its users do

    spec = BoundedTensorSpec([None], tf.float32, minimum=[0.0], maximum=[2.0], name="observation")
    root = tf.Module()
    root.f = tf.function(lambda x: x + 1.0, input_signature=[spec])
    for loaded in generations(tf, tmp_path, root):
        assert loaded.f.input_signature == (spec,) and type(loaded.f.input_signature[0]) is BoundedTensorSpec
        assert loaded.f([3.0]).numpy().tolist() == [4.0]  # TensorFlow does not compare values with the bounds


@pytest.mark.parametrize("name", ["f", "g"])
def test_a_value_that_an_op_cannot_convert_is_an_error_of_its_argument(tf, tmp_path, name):
    """A range becomes a tensor by an op, which has no kernel for bytes."""
    root = tf.Module()
    root.f = tf.function(lambda x: x, input_signature=[tf.TensorSpec(None, tf.uint8)])
    root.g = root.f.get_concrete_function()
    for loaded in generations(tf, tmp_path, root):
        with pytest.raises(TypeError, match="x"):
            getattr(loaded, name)(range(3))
