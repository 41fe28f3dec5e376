"""GOAL-02, GOAL-03: a loaded object as a part of a larger model."""

from __future__ import annotations

import numpy as np
import pytest

import reference_impl
from reference_impl.format import layout

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def directory(tf, tmp_path_factory):
    model = tf.Module()
    model.w = tf.Variable([[1.0], [2.0]], name="w")
    model.frozen = tf.Variable([0.5], trainable=False, name="frozen")
    model.parts = [tf.Module()]
    model.parts[0].b = tf.Variable([0.0], name="b")
    model.call = tf.function(lambda x: x @ model.w + model.frozen + model.parts[0].b, input_signature=[tf.TensorSpec([None, 2])])
    model.parts[0].twice = tf.function(lambda: model.parts[0].b * 2.0, input_signature=[])
    place = tmp_path_factory.mktemp("part") / "model"
    tf.saved_model.save(model, str(place))
    return place


@pytest.fixture
def loaded(directory):
    return reference_impl.load(directory)


def names(variables):
    return sorted(v.name.partition(":")[0] for v in variables)


def test_GOAL_03_variables_and_functions_of_the_root_and_of_a_module_around_it(tf, loaded):
    outer = tf.Module()
    outer.inner = loaded
    outer.own = tf.Variable(1.0, name="own")
    assert names(loaded.variables) == ["b", "frozen", "w"] and names(loaded.trainable_variables) == ["b", "w"]
    assert names(outer.variables) == ["b", "frozen", "own", "w"] and names(outer.trainable_variables) == ["b", "own", "w"]
    assert loaded.functions == {"call": loaded.call, "parts.0.twice": loaded.parts[0].twice}


@pytest.fixture
def keras(tf):
    keras = pytest.importorskip("keras", minversion="3")
    keras.utils.set_random_seed(1)
    return keras


@pytest.fixture
def layer(keras, loaded):
    class Outer(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.inner = loaded
            self.part = loaded.parts[0]  # its variable is there already
            self.dense = keras.layers.Dense(1, use_bias=False)

        def call(self, x):
            return self.dense(self.inner.call(x))

    return Outer()


def test_GOAL_02_and_03_a_layer_of_Keras_3_sees_and_trains_the_variables(tf, keras, layer, loaded, tmp_path):
    assert names(layer.trainable_variables) == ["b", "w"] and names(layer.non_trainable_variables) == ["frozen"]
    assert {id(v.value) for v in layer.variables} == {id(loaded.w), id(loaded.frozen), id(loaded.parts[0].b)}
    model = keras.Sequential([keras.Input((2,)), layer])
    x = np.random.default_rng(1).random((32, 2), "float32")
    before = {v.name: v.numpy() for v in loaded.variables}
    model.compile(keras.optimizers.SGD(0.05), "mse")
    model.fit(x, x @ np.array([[3.0], [-1.0]], "float32"), epochs=2, verbose=0)
    changed = {v.name for v in loaded.variables if not np.array_equal(v.numpy(), before[v.name])}
    assert changed == {"w:0", "b:0"}
    reference_impl.save(layer, tmp_path / "layer")
    again = reference_impl.load(tmp_path / "layer")
    np.testing.assert_array_equal(again.inner.w.numpy(), loaded.w.numpy())
    np.testing.assert_array_equal(again.inner.call(x).numpy(), loaded.call(x).numpy())


def test_GOAL_02_a_layer_is_trained_once_by_an_optimizer_who_meets_a_variable_twice(tf, keras, loaded):
    class Outer(keras.layers.Layer):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

    one, two = Outer(loaded), Outer(loaded.parts[0])
    both = keras.Sequential([one, two])
    assert names(both.trainable_variables) == ["b", "w"]
    one.trainable = False
    assert names(both.trainable_variables) == [] and names(both.variables) == ["b", "frozen", "w"]


def test_GOAL_02_an_attribute_of_a_built_layer_is_seen_too(tf, keras, loaded):
    dense = keras.layers.Dense(1)
    keras.Sequential([keras.Input((2,)), dense])
    dense.extra = loaded
    assert len(dense.trainable_variables) == 4
    with pytest.raises(ValueError, match="already built"):
        dense.more = keras.layers.Dense(1)  # the lock is back


def test_GOAL_02_nothing_extra_is_on_disk(tf, keras, directory, tmp_path, monkeypatch):
    def save(place, write):
        dense = keras.layers.Dense(1)
        keras.Sequential([keras.Input((2,)), dense])
        dense.extra = reference_impl.load(directory)
        write(dense, str(place))
        graph = layout.read(place).meta_graph().object_graph_def
        return len(dense.variables), sorted(
            (node.WhichOneof("kind"), c.local_name) for node in graph.nodes for c in node.children
        )

    seen = [save(tmp_path / f"seen{i}", write) for i, write in enumerate((reference_impl.save, tf.saved_model.save))]
    monkeypatch.setattr("reference_impl.loading.containers.adopted", lambda child, container: None)
    unseen = [save(tmp_path / f"unseen{i}", write) for i, write in enumerate((reference_impl.save, tf.saved_model.save))]
    assert [count for count, _ in seen] == [5, 5] and [count for count, _ in unseen] == [2, 2]
    assert [objects for _, objects in seen] == [objects for _, objects in unseen]
