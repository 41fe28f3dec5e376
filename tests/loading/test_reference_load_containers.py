"""GOAL-02, GOAL-03: a loaded object as a part of a larger model."""

from __future__ import annotations

import fresh_tensorflow
import numpy as np
import pytest

import reference_impl
from reference_impl.format.container import layout

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


def test_GOAL_02_Keras_may_be_imported_after_the_load(tf, keras, directory):
    """In a process of its own, where the first assignment of all counts."""
    code = """if True:
        import sys
        import tensorflow
        import reference_impl
        keras = sys.modules.pop("keras", None)  # some releases of TensorFlow import it
        loaded = reference_impl.load(sys.argv[1])
        assert "keras" not in sys.modules
        sys.modules.update({"keras": keras} if keras else {})
        import keras
        layer = keras.layers.Layer()
        layer.inner = loaded
        later = keras.layers.Layer()
        later.inner = loaded.parts[0]
        later.other = 3
        print(len(layer.trainable_variables), len(layer.variables), len(later.variables))
    """
    done = fresh_tensorflow.run(code, directory)
    assert done.stdout.split() == ["2", "3", "1"], done.stderr[-2000:]


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
    monkeypatch.setattr("reference_impl.kinds.containers.adopted", lambda child, container: None)
    unseen = [save(tmp_path / f"unseen{i}", write) for i, write in enumerate((reference_impl.save, tf.saved_model.save))]
    assert [count for count, _ in seen] == [5, 5] and [count for count, _ in unseen] == [2, 2]
    assert [objects for _, objects in seen] == [objects for _, objects in unseen]


# Containers that collect the variables on their own, with our load in the place of tf.saved_model.load


@pytest.fixture(scope="module")
def exports(tf, directory, tmp_path_factory):
    """One model in the forms in which its variables are written: by attribute, and listed by Keras 3 and Keras 2."""
    keras, keras_2 = pytest.importorskip("keras", minversion="3"), pytest.importorskip("tf_keras")
    place = tmp_path_factory.mktemp("exports")
    for library, save in ((keras, lambda m, p: m.export(p, verbose=False)), (keras_2, lambda m, p: m.save(p, save_format="tf"))):
        layers = library.layers
        model = library.Sequential([library.Input((2,)), layers.Dense(3), layers.BatchNormalization(), layers.Dense(1)])
        model.compile("adam", "mse", metrics=["mae"])
        model.fit(np.ones([4, 2]), np.ones([4, 1]), verbose=0)  # now there are variables of an optimizer and of metrics
        save(model, str(place / library.__name__))
    return {"module": directory, "keras": place / "keras", "keras_2": place / "tf_keras"}


@pytest.fixture
def our_load(tf, monkeypatch):
    monkeypatch.setattr(tf.saved_model, "load", reference_impl.load)
    monkeypatch.setattr(tf.compat.v1.saved_model, "load_v2", reference_impl.load)


ENDPOINTS = {"module": "call", "keras": "serve", "keras_2": "serving_default"}
COUNTS = {"module": (2, 1), "keras": (6, 2), "keras_2": (6, 2)}


def counts(owner):
    """How many trainable and other variables an object has; each must be listed once."""
    lists = owner.variables, owner.trainable_variables, owner.non_trainable_variables
    for listed in lists:
        assert len({id(getattr(v, "_value", v)) for v in listed}) == len(listed)
    assert len(lists[0]) == len(lists[1]) + len(lists[2])
    return len(lists[1]), len(lists[2])


@pytest.mark.parametrize("kind", COUNTS)
def test_GOAL_03_every_container_sees_each_variable_once(tf, exports, kind):
    keras, keras_2 = pytest.importorskip("keras", minversion="3"), pytest.importorskip("tf_keras")
    loaded = reference_impl.load(exports[kind])
    assert counts(loaded) == COUNTS[kind]
    for container in (tf.Module(), keras.layers.Layer(), keras_2.layers.Layer()):
        container.inner = loaded
        assert counts(container) == COUNTS[kind], container
    loaded.more = tf.Variable(1.0)  # is not in a list of the file
    outer = tf.Module()
    outer.inner = loaded
    assert counts(outer) == (COUNTS[kind][0] + 1, COUNTS[kind][1])


@pytest.mark.parametrize("name", ["variables", "trainable_variables"])
def test_GOAL_03_one_list_alone_hides_no_variable_beside_it(tf, name, tmp_path):
    """Reusable SavedModels have both lists; an attribute of one of these names says nothing of the others."""
    saved = tf.train.Checkpoint(**{name: [tf.Variable(1.0)]}, other=tf.Variable(2.0), fixed=tf.Variable(3.0, trainable=False))
    reference_impl.save(saved, tmp_path / "m")
    outer = tf.Module()
    outer.inner = reference_impl.load(tmp_path / "m")
    assert sorted(float(v) for v in outer.variables if v.dtype == tf.float32) == [1.0, 2.0, 3.0]
    assert sorted(float(v) for v in outer.trainable_variables if v.dtype == tf.float32) == [1.0, 2.0]


@pytest.mark.parametrize("kind", COUNTS)
def test_DR_08_a_step_of_TFSMLayer_is_that_of_tensorflow(tf, keras, exports, kind, monkeypatch):
    def step():
        layer = keras.layers.TFSMLayer(str(exports[kind]), call_endpoint=ENDPOINTS[kind])
        x = np.array([[1.0, 2.0], [0.5, -1.0]], "float32")
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_sum(part**2) for part in tf.nest.flatten(layer(x))])
        optimizer = keras.optimizers.SGD(0.01)
        optimizer.apply_gradients(zip(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables))
        return counts(layer), {v.name: v.numpy() for v in layer.variables}

    theirs = step()
    monkeypatch.setattr(tf.saved_model, "load", reference_impl.load)
    ours = step()
    assert ours[0] == theirs[0] and list(ours[1]) == list(theirs[1])  # in the order in which .keras files store them
    for name, value in theirs[1].items():
        np.testing.assert_array_equal(ours[1][name], value, err_msg=name)


@pytest.mark.parametrize("trainable", [True, False])
def test_GOAL_03_hub_KerasLayer_has_the_variables_once(tf, our_load, exports, trainable):
    hub = pytest.importorskip("tensorflow_hub")
    layer = hub.KerasLayer(str(exports["keras_2"]), trainable=trainable)
    assert counts(layer) == ((6, 2) if trainable else (0, 8))
    assert counts(hub.KerasLayer(reference_impl.load(exports["keras_2"]), trainable=trainable)) == counts(layer)


def test_GOAL_03_a_layer_with_its_own_variables_for_a_part_of_the_model_keeps_those_only(tf, keras, loaded):
    before, after = keras.layers.Layer(), keras.layers.Layer()
    own = keras.Variable(loaded.w, name="w")
    before.own, before.inner = own, loaded
    after.inner, after.own = loaded, own
    assert names(before.variables) == names(after.variables) == ["w"]


@pytest.mark.parametrize("name", ["values", "by_name"])
def test_the_time_of_a_long_container_grows_with_its_length_and_it_still_notices_changes(tf, tmp_path, monkeypatch, name):
    """Containers of TensorFlow keep a copy of themselves. A copy for each element takes the square of the length."""
    root = tf.Module()
    root.values = [tf.Variable(float(number)) for number in range(300)]
    root.by_name = {f"{number:04}": value for number, value in enumerate(root.values)}
    reference_impl.save(root, tmp_path / "m")
    kind, copies = type(getattr(root, name)), []
    update = kind._update_snapshot

    def counted(self):
        update(self)
        snapshots = ("_last_wrapped_list_snapshot", "_self_last_wrapped_dict_snapshot")
        copies.append(next(found for found in (getattr(self, name, None) for name in snapshots) if found is not None))

    monkeypatch.setattr(kind, "_update_snapshot", counted)
    loaded = reference_impl.load(tmp_path / "m")
    assert sum({id(copy): len(copy) for copy in copies}.values()) <= 300
    found, key = getattr(loaded, name), {"values": 300, "by_name": "0300"}[name]
    assert [float(value) for value in (found if name == "values" else found.values())] == list(range(300))
    added = tf.Variable(300.0)
    found.append(added) if name == "values" else found.update({key: added})
    reference_impl.save(loaded, tmp_path / "again")
    assert float(getattr(reference_impl.load(tmp_path / "again"), name)[key]) == 300.0
    if name == "values":
        found._storage.append(added)
    else:
        found.__wrapped__["more"] = added
    with pytest.raises(ValueError, match="modified outside"):
        tf.train.Checkpoint(root=loaded).write(str(tmp_path / "checkpoint"))
