"""GOAL-02, GOAL-03: a loaded object as a part of a larger model."""

from __future__ import annotations

import fresh_tensorflow
import numpy as np
import pytest

import reference_impl

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
    model.call = tf.function(
        lambda x: x @ model.w + model.frozen + model.parts[0].b,
        input_signature=[tf.TensorSpec([None, 2])],
    )
    model.parts[0].twice = tf.function(lambda: model.parts[0].b * 2.0, input_signature=[])
    place = tmp_path_factory.mktemp("part") / "model"
    tf.saved_model.save(model, str(place))
    return place


@pytest.fixture
def loaded(directory):
    return reference_impl.load(directory)


def names(variables):
    return sorted(v.name.partition(":")[0] for v in variables)


def as_modules(place):
    return reference_impl.load(place, options=reference_impl.LoadOptions(modules=True))


def test_GOAL_03_variables_and_functions_of_the_root_and_of_a_module_around_it(tf, directory):
    outer, loaded = tf.Module(), as_modules(directory)
    outer.inner = loaded
    outer.own = tf.Variable(1.0, name="own")
    assert names(loaded.variables) == ["b", "frozen", "w"] and names(
        loaded.trainable_variables
    ) == ["b", "w"]
    assert names(outer.variables) == ["b", "frozen", "own", "w"] and names(
        outer.trainable_variables
    ) == ["b", "own", "w"]
    assert loaded.functions == {"call": loaded.call, "parts.0.twice": loaded.parts[0].twice}
    assert outer.submodules == (loaded, loaded.parts[0]) and loaded.name == "loaded"


def test_GOAL_03_an_object_that_is_no_module_lists_its_variables_as_one_that_is(
    tf, directory, loaded
):
    module = as_modules(directory)
    for name in ("variables", "trainable_variables", "non_trainable_variables"):
        assert [v.name for v in getattr(loaded, name)] == [v.name for v in getattr(module, name)]
    assert loaded.submodules == (loaded.parts[0],) and module.submodules == (module.parts[0],)
    for owner in (loaded, module):
        owner.added = tf.Module()
        owner.added.extra, owner.added.back = (
            tf.Variable(1.0, name="extra"),
            owner,
        )  # a circle, and an object of another class
    assert names(loaded.variables) == names(module.variables) == ["b", "extra", "frozen", "w"]
    assert loaded.functions.keys() == module.functions.keys() == {"call", "parts.0.twice"}


def test_an_object_made_by_calling_the_class_of_a_module_is_one(tf, directory):
    module = as_modules(directory)
    made = type(module)()
    assert isinstance(made, tf.Module) and names(made.variables) == names(module.variables)
    assert made.w is not module.w and not isinstance(
        type(reference_impl.load(directory))(), tf.Module
    )


# A layer or a model around a loaded object, which is frozen there for shipped TensorFlow


KERAS = ("keras", "tf_keras")


@pytest.fixture(params=KERAS)
def any_keras(tf, request):
    library = pytest.importorskip(
        request.param, minversion="3" if request.param == "keras" else None
    )
    library.utils.set_random_seed(1)
    return library


def around(library, inner, place="attribute"):
    """A model of `library` that calls `inner`, which is an attribute of it, or of a layer of it, or
    an element of a list.
    """

    class Outer(library.Model if place == "model" else library.layers.Layer):
        def __init__(self):
            super().__init__()
            self.dense = library.layers.Dense(1, use_bias=False)
            if place == "list":
                self.parts = [inner, self.dense]
            else:
                self.inner = inner

        def call(self, x):
            return self.dense(inner.call(x))

    outer = Outer()
    return outer if place == "model" else library.Sequential([library.Input((2,)), outer])


def fit(library, model):
    x = np.random.default_rng(1).random((32, 2), "float32")
    model.compile(library.optimizers.SGD(0.05), "mse")
    model.fit(x, x @ np.array([[3.0], [-1.0]], "float32"), epochs=2, verbose=0)
    return [np.asarray(weight) for weight in model.get_weights()]


@pytest.mark.parametrize("place", ["attribute", "model", "list"])
def test_a_frozen_backbone_stays_frozen_in_both_libraries(
    tf, any_keras, directory, place, tmp_path
):
    """What is trained, counted, and written to a weight file is what it is with
    `tf.saved_model.load`.
    """
    models = []
    for number, load in enumerate((tf.saved_model.load, reference_impl.load)):
        any_keras.utils.set_random_seed(1)
        inner = load(str(directory))
        model = around(any_keras, inner, place)
        weights = fit(any_keras, model)
        np.testing.assert_array_equal(inner.w.numpy(), [[1.0], [2.0]])
        assert inner.parts[0].b.numpy() == [0.0]
        model.save_weights(str(tmp_path / f"{number}.weights.h5"))
        models.append((model, weights))
    (theirs, wanted), (ours, weights) = models
    assert len(weights) == len(wanted) == 1
    np.testing.assert_array_equal(weights[0], wanted[0])
    ours.load_weights(str(tmp_path / "0.weights.h5"))
    theirs.load_weights(str(tmp_path / "1.weights.h5"))


def test_a_module_around_a_loaded_object_sees_what_it_sees_with_tensorflow(tf, directory):
    for load in (tf.saved_model.load, reference_impl.load):
        outer = tf.Module()
        outer.inner, outer.own = load(str(directory)), tf.Variable(1.0, name="own")
        assert names(outer.variables) == ["own"] and outer.submodules == ()


def test_no_class_of_keras_is_changed_by_a_load(tf, directory):
    """In a process of its own, where the first assignment of all counts; Keras may be imported
    after the load.
    """
    code = """if True:
        import sys
        import tensorflow
        import reference_impl
        keras = sys.modules.pop("keras", None)  # some releases of TensorFlow import it
        loaded = reference_impl.load(sys.argv[1])
        assert "keras" not in sys.modules
        sys.modules.update({"keras": keras} if keras else {})
        import keras
        before = dict(vars(keras.layers.Layer))
        layer = keras.layers.Layer()
        layer.inner = loaded
        later = keras.layers.Layer()
        later.inner = loaded.parts[0]
        later.other = 3
        changed = [name for name, value in vars(keras.layers.Layer).items() if before.get(name) is not value]
        print(len(layer.variables), len(later.variables), changed)
    """
    done = fresh_tensorflow.run(code, directory)
    assert done.stdout.split() == ["0", "0", "[]"], done.stderr[-2000:]


def test_GOAL_02_a_layer_of_Keras_2_trains_a_module_that_was_asked_for(tf, directory):
    keras_2 = pytest.importorskip("tf_keras")
    loaded = as_modules(directory)
    fit(keras_2, around(keras_2, loaded))
    assert not np.array_equal(loaded.w.numpy(), [[1.0], [2.0]]) and loaded.frozen.numpy() == [0.5]


@pytest.fixture
def keras(tf):
    keras = pytest.importorskip("keras", minversion="3")
    keras.utils.set_random_seed(1)
    return keras


def test_GOAL_02_and_03_a_layer_of_Keras_3_trains_the_variables_of_a_SavedModelLayer(
    tf, keras, directory, tmp_path
):
    from savedmodel_compat.keras import SavedModelLayer

    part = SavedModelLayer(directory, "call")
    loaded = part.resolved_object

    class Outer(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.inner, self.dense = part, keras.layers.Dense(1, use_bias=False)

        def call(self, x):
            return self.dense(self.inner(x))

    layer = Outer()
    model = keras.Sequential([keras.Input((2,)), layer])
    own = [v for v in part.variables if any(v.value is variable for variable in loaded.variables)]
    assert (
        names(part.trainable_variables) == ["b", "w"]
        and names(part.non_trainable_variables) == ["frozen"]
        and len(own) == 3
    )
    before = {v.name: v.numpy() for v in loaded.variables}
    fit(keras, model)
    changed = {v.name for v in loaded.variables if not np.array_equal(v.numpy(), before[v.name])}
    assert changed == {"w:0", "b:0"}
    reference_impl.save(layer, tmp_path / "layer")
    for load in (reference_impl.load, tf.saved_model.load):
        again = load(str(tmp_path / "layer")).inner._loaded
        np.testing.assert_array_equal(again.w.numpy(), loaded.w.numpy())
        np.testing.assert_array_equal(
            again.call(tf.ones([1, 2])).numpy(), loaded.call(tf.ones([1, 2])).numpy()
        )


# Containers that collect the variables on their own, with our load in the place of
# tf.saved_model.load


@pytest.fixture(scope="module")
def exports(tf, directory, tmp_path_factory):
    """One model in the forms in which its variables are written: by attribute, and listed by Keras
    3 and Keras 2.
    """
    keras, keras_2 = pytest.importorskip("keras", minversion="3"), pytest.importorskip("tf_keras")
    place = tmp_path_factory.mktemp("exports")
    for library, save in (
        (keras, lambda m, p: m.export(p, verbose=False)),
        (keras_2, lambda m, p: m.save(p, save_format="tf")),
    ):
        layers = library.layers
        model = library.Sequential(
            [library.Input((2,)), layers.Dense(3), layers.BatchNormalization(), layers.Dense(1)]
        )
        model.compile("adam", "mse", metrics=["mae"])
        model.fit(
            np.ones([4, 2]), np.ones([4, 1]), verbose=0
        )  # now there are variables of an optimizer and of metrics
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
    frozen, loaded = reference_impl.load(exports[kind]), as_modules(exports[kind])
    assert counts(frozen) == counts(loaded) == COUNTS[kind]
    for container, sees in (
        (tf.Module(), True),
        (keras_2.layers.Layer(), True),
        (keras.layers.Layer(), False),
    ):
        container.inner = frozen
        assert counts(container) == (0, 0), container
        container.inner = loaded
        assert counts(container) == (COUNTS[kind] if sees else (0, 0)), container
    loaded.more = tf.Variable(1.0)  # is not in a list of the file
    outer = tf.Module()
    outer.inner = loaded
    assert counts(outer) == (COUNTS[kind][0] + 1, COUNTS[kind][1])


@pytest.mark.parametrize("name", ["variables", "trainable_variables"])
def test_GOAL_03_one_list_alone_hides_no_variable_beside_it(tf, name, tmp_path):
    """Reusable SavedModels have both lists; an attribute of one of these names says nothing of the
    others.
    """
    saved = tf.train.Checkpoint(
        **{name: [tf.Variable(1.0)]},
        other=tf.Variable(2.0),
        fixed=tf.Variable(3.0, trainable=False),
    )
    reference_impl.save(saved, tmp_path / "m")
    outer = tf.Module()
    outer.inner = as_modules(tmp_path / "m")
    assert sorted(float(v) for v in outer.variables if v.dtype == tf.float32) == [1.0, 2.0, 3.0]
    assert sorted(float(v) for v in outer.trainable_variables if v.dtype == tf.float32) == [
        1.0,
        2.0,
    ]


@pytest.mark.parametrize("kind", COUNTS)
def test_DR_08_a_step_of_TFSMLayer_is_that_of_tensorflow(tf, keras, exports, kind, monkeypatch):
    def step():
        layer = keras.layers.TFSMLayer(str(exports[kind]), call_endpoint=ENDPOINTS[kind])
        x = np.array([[1.0, 2.0], [0.5, -1.0]], "float32")
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_sum(part**2) for part in tf.nest.flatten(layer(x))])
        optimizer = keras.optimizers.SGD(0.01)
        optimizer.apply_gradients(
            zip(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables)
        )
        return counts(layer), {v.name: v.numpy() for v in layer.variables}

    theirs = step()
    monkeypatch.setattr(tf.saved_model, "load", reference_impl.load)
    ours = step()
    assert ours[0] == theirs[0] and list(ours[1]) == list(
        theirs[1]
    )  # in the order in which .keras files store them
    for name, value in theirs[1].items():
        np.testing.assert_array_equal(ours[1][name], value, err_msg=name)


@pytest.mark.parametrize("trainable", [True, False])
def test_GOAL_03_hub_KerasLayer_has_the_variables_once(tf, our_load, exports, trainable):
    hub = pytest.importorskip("tensorflow_hub")
    layer = hub.KerasLayer(str(exports["keras_2"]), trainable=trainable)
    assert counts(layer) == ((6, 2) if trainable else (0, 8))
    assert counts(
        hub.KerasLayer(reference_impl.load(exports["keras_2"]), trainable=trainable)
    ) == counts(layer)


def test_GOAL_03_a_layer_with_its_own_variable_for_a_part_of_the_model_has_it_once(
    tf, keras, loaded
):
    before, after = keras.layers.Layer(), keras.layers.Layer()
    own = keras.Variable(loaded.w, name="w")
    before.own, before.inner = own, loaded
    after.inner, after.own = loaded, own
    assert names(before.variables) == names(after.variables) == ["w"]


@pytest.mark.parametrize("name", ["values", "by_name"])
def test_the_time_of_a_long_container_grows_with_its_length_and_it_still_notices_changes(
    tf, tmp_path, monkeypatch, name
):
    """Containers of TensorFlow keep a copy of themselves.

    A copy for each element takes the square of the length.
    """
    root = tf.Module()
    root.values = [tf.Variable(float(number)) for number in range(300)]
    root.by_name = {f"{number:04}": value for number, value in enumerate(root.values)}
    reference_impl.save(root, tmp_path / "m")
    kind, copies = type(getattr(root, name)), []
    update = kind._update_snapshot

    def counted(self):
        update(self)
        snapshots = ("_last_wrapped_list_snapshot", "_self_last_wrapped_dict_snapshot")
        copies.append(
            next(
                found
                for found in (getattr(self, name, None) for name in snapshots)
                if found is not None
            )
        )

    monkeypatch.setattr(kind, "_update_snapshot", counted)
    loaded = reference_impl.load(tmp_path / "m")
    assert sum({id(copy): len(copy) for copy in copies}.values()) <= 300
    found, key = getattr(loaded, name), {"values": 300, "by_name": "0300"}[name]
    assert [float(value) for value in (found if name == "values" else found.values())] == list(
        range(300)
    )
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
