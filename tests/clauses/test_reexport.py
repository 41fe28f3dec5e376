"""Clauses about exporting again what was imported (REX): the example with protos, generations,
edited attributes.
"""

from __future__ import annotations

import pytest

import reference_impl

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def first(tf, tmp_path_factory):
    """A net that was exported without a signature."""

    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.bias = tf.Variable(1.0)

        @tf.function
        def infer(self, labels, training, x1, x2):
            return labels, x1 + self.bias, x2 + (2.0 if training else 1.0)

        @tf.function
        def unused(self, x):
            return x - self.bias

    net = Net()
    net.infer(
        tf.zeros([2, 1], tf.int64),
        training=False,
        x1=tf.zeros([2, 3]),
        x2=tf.zeros([2, 1], tf.float64),
    )
    net.unused(tf.constant(0.0))
    directory = tmp_path_factory.mktemp("first") / "m"
    reference_impl.save(net, directory)
    return directory


def with_protos(tf, net):
    """The function that the RFC adds to a loaded net (float64 is no type of parse_example)."""

    @tf.function(input_signature=[tf.TensorSpec([2], tf.string)])
    def infer_from_proto(serialized):
        features = {
            "labels": tf.io.FixedLenFeature([1], tf.int64),
            "x1": tf.io.FixedLenFeature([3], tf.float32),
            "x2": tf.io.FixedLenFeature([1], tf.float32),
        }
        parsed = tf.io.parse_example(serialized, features)
        return net.infer(
            parsed["labels"], training=False, x1=parsed["x1"], x2=tf.cast(parsed["x2"], tf.float64)
        )

    return infer_from_proto


def examples(tf):
    def example(label, x1, x2):
        feature = {
            "labels": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            "x1": tf.train.Feature(float_list=tf.train.FloatList(value=x1)),
            "x2": tf.train.Feature(float_list=tf.train.FloatList(value=[x2])),
        }
        return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()

    return tf.constant([example(7, [1, 2, 3], 0.5), example(8, [4, 5, 6], 1.5)])


@pytest.fixture(scope="module")
def second(tf, first, tmp_path_factory):
    net = reference_impl.load(first)
    net.infer_from_proto = with_protos(tf, net)
    directory = tmp_path_factory.mktemp("second") / "m"
    reference_impl.save(net, directory, net.infer_from_proto)
    return directory


def load(tf, directory, reader):
    return (
        reference_impl.load(directory)
        if reader == "reference"
        else tf.saved_model.load(str(directory))
    )


READERS = ("reference", "tensorflow")


@pytest.mark.parametrize("reader", READERS)
def test_REX_01_a_function_that_calls_a_loaded_one_becomes_the_signature(tf, second, reader):
    loaded = load(tf, second, reader)
    assert list(loaded.signatures) == ["serving_default"]
    answer = loaded.signatures["serving_default"](serialized=examples(tf))
    assert {name: value.numpy().tolist() for name, value in answer.items()} == {
        "output_0": [[7], [8]],
        "output_1": [[2.0, 3.0, 4.0], [5.0, 6.0, 7.0]],
        "output_2": [[1.5], [2.5]],
    }


@pytest.mark.parametrize("reader", READERS)
def test_REX_02_the_functions_that_were_there_stay(tf, first, second, reader):
    loaded = load(tf, second, reader)
    assert [len(f.concrete_functions) for f in (loaded.infer, loaded.unused)] == [1, 1]
    given = {"training": False, "x1": tf.zeros([2, 3]), "x2": tf.zeros([2, 1], tf.float64)}
    results = [
        root.infer(tf.zeros([2, 1], tf.int64), **given)
        for root in (reference_impl.load(first), loaded)
    ]
    before, after = ([tensor.numpy().tolist() for tensor in result] for result in results)
    assert before == after


def ten_times(tf, inner):
    return tf.function(lambda x: inner(x) * 10.0, input_signature=[tf.TensorSpec([2], tf.string)])


def test_REX_03_generations_share_one_state(tf, second, tmp_path):
    """Each generation adds a function that calls the one before; the one variable drives them
    all.
    """
    third = reference_impl.load(second)
    third.ten = ten_times(tf, lambda x: third.infer_from_proto(x)[1])
    reference_impl.save(third, tmp_path / "3")
    fourth = reference_impl.load(tmp_path / "3")
    fourth.hundred = ten_times(tf, fourth.ten)
    reference_impl.save(fourth, tmp_path / "4")
    for reader in READERS:
        last = load(tf, tmp_path / "4", reader)
        assert list(last.signatures) == [
            "serving_default"
        ]  # still that of the second generation (ATTR-06)
        last.bias.assign(100.0)
        given = examples(tf)
        assert last.infer_from_proto(given)[1].numpy().tolist() == [
            [101.0, 102.0, 103.0],
            [104.0, 105.0, 106.0],
        ]
        assert last.hundred(given).numpy()[0].tolist() == [10100.0, 10200.0, 10300.0]
        assert last.signatures["serving_default"](serialized=given)["output_1"].numpy()[
            0
        ].tolist() == [101.0, 102.0, 103.0]


@pytest.mark.parametrize("reader", READERS)
def test_REX_04_attributes_may_be_deleted_or_replaced_before(tf, first, tmp_path, reader):
    net = reference_impl.load(first)
    del net.unused
    net.infer = tf.function(lambda x: x * net.bias, input_signature=[tf.TensorSpec([])])
    net.bias = tf.Variable(5.0)
    net.more = tf.Variable(7.0)
    reference_impl.save(net, tmp_path / "m")
    loaded = load(tf, tmp_path / "m", reader)
    assert not hasattr(loaded, "unused")
    assert float(loaded.infer(tf.constant(2.0))) == 10.0
    assert [float(loaded.bias), float(loaded.more)] == [5.0, 7.0]
    assert list(loaded.signatures) == []  # it was loaded with none, and that is kept (ATTR-06)
