"""Arguments of rarer types, through a save and a load by either implementation."""

from __future__ import annotations

import pytest

import reference_impl

pytestmark = [pytest.mark.tensorflow, pytest.mark.clause("PY-08")]


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture(params=["theirs", "ours", "again"])
def writer(request):
    """Who saves the model: TensorFlow, we, or we what TensorFlow saved."""
    return request.param


@pytest.fixture(params=["tensorflow", "reference"])
def reader(request):
    return request.param


@pytest.fixture
def through(tf, tmp_path, writer, reader):
    """Return a function that saves a model and loads it."""

    def both(root):
        (reference_impl if writer == "ours" else tf.saved_model).save(root, str(tmp_path / "model"))
        if writer == "again":
            reference_impl.save(reference_impl.load(tmp_path / "model"), tmp_path / "again")
        directory = str(tmp_path / ("again" if writer == "again" else "model"))
        return (reference_impl if reader == "reference" else tf.saved_model).load(directory)

    return both


def test_partitions_of_ragged_tensors(tf, through, reader):
    root = tf.Module()
    root.size = tf.function(lambda shape: shape[0])
    shape = tf.experimental.DynamicRaggedShape.from_lengths([2, (1, 2)])
    root.size(shape)
    loaded = through(root)
    specs = loaded.size.concrete_functions[0].structured_input_signature[0]
    assert type(specs[0]) is type(
        root.size.get_concrete_function(shape).structured_input_signature[0][0]
    )
    if (
        reader == "reference"
    ):  # a function that shipped TensorFlow has loaded cannot flatten this value
        assert int(loaded.size(tf.experimental.DynamicRaggedShape.from_lengths([2, (2, 1)]))) == 2


def test_values_of_replicas(tf, through):
    from tensorflow.python.distribute.values import PerReplica  # there is no public way to make one

    root = tf.Module()
    root.f = tf.function(lambda value: value.values[0] + value.values[1])
    root.f(PerReplica([tf.constant(1.0), tf.constant(2.0)]))
    assert float(through(root).f(PerReplica([tf.constant(3.0), tf.constant(4.0)]))) == 7.0


def test_bounds_of_specs(tf, through):
    """TF-Agents declares them."""
    from tensorflow.python.framework.tensor_spec import BoundedTensorSpec  # as its users do

    spec = BoundedTensorSpec([None], tf.float32, minimum=[0.0], maximum=[2.0], name="observation")
    root = tf.Module()
    root.f = tf.function(lambda x: x + 1.0, input_signature=[spec])
    loaded = through(root)
    assert (
        loaded.f.input_signature == (spec,)
        and type(loaded.f.input_signature[0]) is BoundedTensorSpec
    )
    assert loaded.f([3.0]).numpy().tolist() == [
        4.0
    ]  # TensorFlow does not compare values with the bounds


@pytest.mark.parametrize("name", ["f", "g"])
def test_a_value_that_an_op_cannot_convert_is_an_error_of_its_argument(tf, through, reader, name):
    """A range becomes a tensor by an op, which has no kernel for bytes."""
    root = tf.Module()
    root.f = tf.function(lambda x: x, input_signature=[tf.TensorSpec(None, tf.uint8)])
    root.g = root.f.get_concrete_function()
    loaded = through(root)
    expected = (
        TypeError if reader == "reference" else (TypeError, tf.errors.OpError)
    )  # the latter before 2.13
    with pytest.raises(expected, match="x"):
        getattr(loaded, name)(range(3))
