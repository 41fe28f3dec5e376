"""Clauses PRIM-06 and FN-14: what an export leaves out is named, and what is no loss is not."""

from __future__ import annotations

import collections
import dataclasses
import functools
import types
import warnings

import numpy as np
import pytest

import reference_impl
from reference_impl import errors

pytestmark = pytest.mark.tensorflow


@dataclasses.dataclass
class Data:
    held: object


class Slotted:
    __slots__ = ("held",)

    def __init__(self, held):
        self.held = held


class Helper:
    def __init__(self, held):
        self.deep = types.SimpleNamespace(held=[held])


def _class_attribute(tf):
    return type("WithClassAttribute", (tf.Module,), {"held": tf.Variable(1.0)})()


def _with(tf, value):
    root = tf.Module()
    root.x = value
    return root


LOST = {
    "tensor": (lambda tf: tf.constant([1.0]), "root.x (a tensor of float32)"),
    "ragged": (lambda tf: tf.ragged.constant([[1]]), "root.x (a RaggedTensor)"),
    "sparse": (lambda tf: tf.sparse.from_dense([[1]]), "root.x (a SparseTensor)"),
    "slices": (
        lambda tf: tf.IndexedSlices(tf.constant([1.0]), tf.constant([0])),
        "root.x (a IndexedSlices)",
    ),
    "tensor array": (
        lambda tf: tf.TensorArray(tf.float32, 1).write(0, 1.0),
        "root.x (a TensorArray)",
    ),
    "array": (lambda tf: np.ones([2]), "root.x (an array of float64)"),
    "list of tensors": (lambda tf: [1, tf.constant(1.0)], "root.x[1] (a tensor of float32)"),
    "dict of arrays": (lambda tf: {"a": {1: np.ones(1)}}, "root.x['a'][1] (an array of float64)"),
    "deque": (lambda tf: collections.deque([tf.Variable(1.0)]), "root.x[0] (a variable)"),
    "default dict": (
        lambda tf: collections.defaultdict(list, a=tf.Variable(1.0)),
        "root.x['a'] (a variable)",
    ),
    "view": (lambda tf: {"a": tf.Variable(1.0)}.values(), "root.x[0] (a variable)"),
    "set": (lambda tf: {_with(tf, tf.Variable(1.0))}, "root.x[0].x (a variable)"),
    "frozen set": (lambda tf: frozenset([_with(tf, tf.Variable(1.0))]), "root.x[0].x (a variable)"),
    "read-only dict": (
        lambda tf: types.MappingProxyType({"a": tf.Variable(1.0)}),
        "root.x['a'] (a variable)",
    ),
    "partial": (
        lambda tf: functools.partial(max, tf.Variable(1.0), key=1),
        "root.x[0] (a variable)",
    ),
    "data class": (lambda tf: Data(np.ones(1)), "root.x.held (an array of float64)"),
    "slots": (lambda tf: Slotted(tf.Variable(1.0)), "root.x.held (a variable)"),
    "object": (lambda tf: Helper(tf.Variable(1.0)), "root.x.deep.held[0] (a variable)"),
    "table in an object": (
        lambda tf: Slotted(tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)),
        "root.x.held (a MutableHashTable)",
    ),
}


@pytest.mark.parametrize("name", LOST)
def test_PRIM_06_an_attribute_with_numbers_that_is_not_written_is_refused_and_named(
    tf, tmp_path, name
):
    make, named = LOST[name]
    root = _with(tf, make(tf))
    with pytest.raises(errors.SaveError) as raised:
        reference_impl.save(root, tmp_path / "m")
    assert (
        named in str(raised.value)
        and raised.value.clause == "PRIM-06"
        and "strict=False" in str(raised.value)
    )
    assert not (tmp_path / "m").exists()
    with pytest.warns(UserWarning) as warned:
        reference_impl.save(root, tmp_path / "m", options=reference_impl.SaveOptions(strict=False))
    assert len(warned) == 1 and named in str(warned[0].message)
    for load in (reference_impl.load, tf.saved_model.load):
        assert not hasattr(load(str(tmp_path / "m")), "x") or name in (
            "list of tensors",
            "dict of arrays",
        )


def test_PRIM_06_a_constraint_and_a_class_attribute_are_named(tf, tmp_path):
    root = tf.Module()
    root.v = tf.Variable(1.0, constraint=lambda value: value)
    root.part = _class_attribute(tf)
    with pytest.raises(errors.SaveError, match=r"root\.v\.constraint \(the constraint.*root\.part\.held \(a variable\)|"
                       r"root\.part\.held \(a variable\).*root\.v\.constraint"):  # fmt: skip
        reference_impl.save(root, tmp_path / "m")


def test_FN_14_python_values_are_no_loss(tf, tmp_path, recwarn):
    """Nor is a second way to a variable that is written: its value is there."""
    root = tf.Module("name")
    root.v, root.table = (
        tf.Variable(1.0),
        tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1),
    )
    root.number, root.text, root.numpy_number, root.dtype = 1, "text", np.float32(2.0), tf.float32
    root.function, root.cls, root.shape, root.spec = (
        max,
        Helper,
        tf.TensorShape([1]),
        tf.TensorSpec([1]),
    )
    root.config, root.values = Data([1, 2, {"a": None}]), collections.deque([1.0, "x"])
    root.again, root.helper = collections.deque([root.v]), Helper(root.v)
    root.keyed = {root.v.ref(): 1}
    root.opaque = Helper(np.ones(3))  # an object of the user's, which may hold anything
    root.f = tf.function(lambda x: x * root.v, input_signature=[tf.TensorSpec([])])
    with root.name_scope:
        root.inner = tf.Variable(2.0)
    reference_impl.save(root, tmp_path / "m")
    reference_impl.save(reference_impl.load(tmp_path / "m"), tmp_path / "n")
    reference_impl.save(tf.saved_model.load(str(tmp_path / "m")), tmp_path / "o")
    assert not [warning for warning in recwarn if "not trackable" in str(warning.message)]


def test_FN_14_an_array_that_is_a_constant_of_a_function_is_in_the_file(tf, tmp_path):
    root = tf.Module()
    root.small, root.large, root.mean = (
        tf.constant([1.5, 2.5]),
        tf.range(1000.0),
        np.array([[0.25]]),
    )
    root.words, root.sparse = np.array(["a", "b"]), tf.sparse.from_dense([[0.0, 4.0]])
    root.f = tf.function(
        lambda x: (
            x + root.small,
            x + root.large[0] * root.mean,
            root.words,
            tf.sparse.to_dense(root.sparse),
        ),
        input_signature=[tf.TensorSpec([])],
    )
    reference_impl.save(root, tmp_path / "m", signatures={})
    root.other = np.array([[0.75]])
    with pytest.raises(errors.SaveError, match=r"root\.other \(.* float64\)\. Make"):
        reference_impl.save(root, tmp_path / "n", signatures={})


def test_PRIM_06_what_libraries_keep_for_themselves_is_no_loss(tf, tmp_path):
    keras = pytest.importorskip("keras", "3")

    class Scaled(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.dense, self.units = keras.layers.Dense(2, kernel_constraint="non_neg"), 2

        def call(self, x):
            return self.dense(x)

    class Centred(keras.layers.Normalization):
        """Keras gives it the attributes `input_mean` and `mean`, which are an array and a
        tensor.
        """

    normalization = keras.layers.Normalization()
    normalization.adapt(np.arange(8.0).reshape(2, 4))
    centred = Centred(mean=np.arange(4.0), variance=np.ones(4))
    model = keras.Sequential(
        [
            keras.Input([4]),
            normalization,
            centred,
            Scaled(),
            keras.layers.Dropout(0.5),
            keras.layers.LSTMCell(3),
        ][:5]
    )
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(np.ones([4, 4]), np.ones([4, 2]), verbose=0)
    root = tf.Module()
    root.model, root.history = model, keras.callbacks.History()
    root.serve = tf.function(lambda x: model(x), input_signature=[tf.TensorSpec([None, 4])])
    root.generator, root.initial = tf.random.Generator.from_seed(1), tf.initializers.GlorotUniform()
    root.strategy = tf.distribute.get_strategy()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        reference_impl.save(root, tmp_path / "m")

    class Anchored(Scaled):
        def __init__(self):
            super().__init__()
            self.anchors = np.ones([2])

    root.model = Anchored()
    root.model(tf.ones([1, 4]))
    root.serve = tf.function(lambda x: root.model(x), input_signature=[tf.TensorSpec([None, 4])])
    with pytest.raises(errors.SaveError, match=r"root\.model\.anchors .*float64"):
        reference_impl.save(root, tmp_path / "n")
