"""Every kind of object that TensorFlow saves as the root of a model keeps its signatures, when it
is loaded and saved again.
"""

from __future__ import annotations

import collections

import pytest

import reference_impl

pytestmark = pytest.mark.tensorflow
Pair = collections.namedtuple("Pair", ["v", "w"])


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def variable(tf, tmp_path):
    root = tf.Variable(3.0)
    return root, lambda x: x + root


def table(tf, tmp_path):
    content = tf.lookup.KeyValueTensorInitializer(tf.constant([1, 2], tf.int64), [4.0, 5.0])
    root = tf.lookup.StaticHashTable(content, -1.0)
    return root, lambda x: root.lookup(tf.cast(x, tf.int64))


def table_with_content(tf, tmp_path):
    root = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, -1.0)
    root.insert(tf.constant([1], tf.int64), [4.0])
    return root, lambda x: root.lookup(tf.cast(x, tf.int64))


def asset(tf, tmp_path):
    (tmp_path / "words.txt").write_text("ant")
    root = tf.saved_model.Asset(str(tmp_path / "words.txt"))
    return (
        root,
        lambda x: x + tf.cast(tf.strings.length(tf.io.read_file(root.asset_path)), tf.float32),
    )


def concrete_function(tf, tmp_path):
    number = tf.constant(3.0)
    root = tf.function(
        lambda x: x + number, input_signature=[tf.TensorSpec([])]
    ).get_concrete_function()
    return root, lambda x: x + number


def module(tf, tmp_path):
    root = tf.Module()
    root.v = tf.Variable(3.0)
    return root, lambda x: x + root.v


ROOTS = [variable, table, table_with_content, asset, concrete_function, module]


@pytest.mark.parametrize("reader", ["reference", "tensorflow"])
@pytest.mark.parametrize("writer", ["reference", "tensorflow"])
@pytest.mark.parametrize("kind", ROOTS, ids=lambda kind: kind.__name__)
def test_a_root_keeps_its_signatures(tf, tmp_path, kind, writer, reader):
    root, function = kind(tf, tmp_path)
    signature = tf.function(function, input_signature=[tf.TensorSpec([], name="x")])
    save = {"reference": reference_impl.save, "tensorflow": tf.saved_model.save}[writer]
    load = {"reference": reference_impl.load, "tensorflow": tf.saved_model.load}[reader]
    save(root, str(tmp_path / "first"), signatures={"answer": signature})
    loaded = reference_impl.load(tmp_path / "first")
    assert list(loaded.signatures) == ["answer"]
    reference_impl.save(loaded, tmp_path / "second")
    again = load(str(tmp_path / "second"))
    assert float(again.signatures["answer"](x=tf.constant(1.0))["output_0"]) == 4.0


def test_a_concrete_function_is_called_as_before(tf, tmp_path):
    root, _ = concrete_function(tf, tmp_path)
    reference_impl.save(root, tmp_path / "model")
    for load in (reference_impl.load, tf.saved_model.load):
        loaded = load(str(tmp_path / "model"))
        assert float(loaded(tf.constant(1.0))) == float(loaded(x=tf.constant(1.0))) == 4.0
        assert not loaded.signatures


def test_a_tuple_with_signatures_is_still_a_tuple(tf, tmp_path):
    """Shipped TensorFlow loads a list, without signatures."""
    holder = tf.Module()
    holder.pair = Pair(tf.Variable(3.0), tf.Variable(1.0))
    signature = tf.function(lambda x: x + holder.pair.v, input_signature=[tf.TensorSpec([])])
    reference_impl.save(holder.pair, tmp_path / "first", signature)
    reference_impl.save(reference_impl.load(tmp_path / "first"), tmp_path / "second")
    for name in ("first", "second"):
        loaded = reference_impl.load(tmp_path / name)
        assert len(loaded) == 2 and float(loaded.v) == 3.0
        assert float(loaded.signatures["serving_default"](tf.constant(1.0))["output_0"]) == 4.0
