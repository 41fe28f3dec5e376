"""Functional optimizers: rules that a loaded model can be trained by (OPT-*)."""

from __future__ import annotations

import numpy as np
import pytest
from model_edits import differences

import reference_impl
from reference_impl import errors
from savedmodel_tools.canonical.form import canonical

pytestmark = pytest.mark.tensorflow


def optimizers(tf):
    keras = tf.keras
    v1 = tf.compat.v1.train
    return {
        "sgd": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
        "adam": lambda: keras.optimizers.Adam(0.1, amsgrad=True, clipnorm=0.5),
        "schedule": lambda: keras.optimizers.Adam(
            keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)
        ),
        "rmsprop": lambda: keras.optimizers.RMSprop(0.1, momentum=0.5, centered=True),
        "adagrad": lambda: keras.optimizers.Adagrad(0.1),
        "v1 momentum": lambda: v1.MomentumOptimizer(0.1, 0.9),
        "v1 adam": lambda: v1.AdamOptimizer(0.1),
        "v1 rmsprop": lambda: v1.RMSPropOptimizer(0.1, momentum=0.3),
        "v1 adagrad": lambda: v1.AdagradOptimizer(0.1),
    }


NAMES = (
    "sgd",
    "adam",
    "schedule",
    "rmsprop",
    "adagrad",
    "v1 momentum",
    "v1 adam",
    "v1 rmsprop",
    "v1 adagrad",
)


def step(tf, optimizer, variables, factor):
    optimizer.apply_gradients([(tf.sin(variable * factor), variable) for variable in variables])


def trained(tf, make):
    root = tf.Module()
    root.a = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="a")
    root.b = tf.Variable([5.0, 6.0, 7.0], name="b")
    root.optimizer = make()
    step(tf, root.optimizer, [root.a, root.b], 1.0)
    return root


def save_with_rules(root, path):
    reference_impl.save(root, path, options=reference_impl.SaveOptions(functional_optimizers=True))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.clause("OPT-04", "OPT-05", "OPT-06", "OPT-07")
def test_OPT_04_steps_are_those_of_the_optimizer_that_was_saved(tf, name, tmp_path):
    root = trained(tf, optimizers(tf)[name])
    save_with_rules(root, tmp_path / "m")
    loaded = reference_impl.load(tmp_path / "m")
    for factor in (2.0, 3.0):
        step(tf, root.optimizer, [root.a, root.b], factor)
        step(tf, loaded.optimizer, [loaded.a, loaded.b], factor)
    # The same kernels in the same order; XLA or fusion would be another matter.
    np.testing.assert_allclose(loaded.a.numpy(), root.a.numpy(), rtol=1e-6)
    np.testing.assert_allclose(loaded.b.numpy(), root.b.numpy(), rtol=1e-6)

    again = reference_impl.load(tmp_path / "m")  # the next generation, and inside of a tf.function
    reference_impl.save(again, tmp_path / "two")
    second = reference_impl.load(tmp_path / "two")
    train = tf.function(lambda factor: step(tf, second.optimizer, [second.a, second.b], factor))
    train(tf.constant(2.0)), train(tf.constant(3.0))
    np.testing.assert_allclose(second.a.numpy(), root.a.numpy(), rtol=1e-6)
    reference_impl.save(reference_impl.load(tmp_path / "two"), tmp_path / "three")
    assert not differences(canonical(tmp_path / "two"), canonical(tmp_path / "three"))


@pytest.mark.parametrize("name", ["sgd", "rmsprop", "v1 momentum", "v1 adagrad"])
def test_OPT_05_variables_outside_of_the_model(tf, name, tmp_path):
    make = optimizers(tf)[name]
    save_with_rules(trained(tf, make), tmp_path / "m")
    loaded = reference_impl.load(tmp_path / "m")
    ours, theirs = tf.Variable([[[0.5], [2.0]]]), tf.Variable([[[0.5], [2.0]]])
    other = make()  # neither momentum nor averages know of steps taken with other variables
    for factor in (1.0, 2.0, 3.0):
        loaded.optimizer.apply([tf.sin(ours * factor), None], [ours, loaded.a])
        step(tf, other, [theirs], factor)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)
    assert loaded.optimizer.get_slot(ours, loaded.optimizer.get_slot_names()[0]).shape == ours.shape
    loaded.extra = ours
    reference_impl.save(loaded, tmp_path / "two")
    second = reference_impl.load(tmp_path / "two")
    second.optimizer.apply([tf.ones_like(second.extra)], [second.extra])
    loaded.optimizer.apply([tf.ones_like(ours)], [ours])
    np.testing.assert_allclose(second.extra.numpy(), ours.numpy(), rtol=1e-6)


def test_OPT_06_gradients_of_other_kinds_are_refused(tf, tmp_path):
    save_with_rules(trained(tf, optimizers(tf)["adam"]), tmp_path / "m")
    loaded = reference_impl.load(tmp_path / "m")
    sparse = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]), tf.constant([2, 2]))
    with pytest.raises(errors.UnsupportedModelError, match=r"sparse.*convert_to_tensor"):
        loaded.optimizer.apply([sparse], [loaded.a])
    double = tf.Variable(tf.ones([2], tf.float64))
    with pytest.raises(errors.UnsupportedModelError, match=r"float64.*float32"):
        loaded.optimizer.apply([tf.ones([2], tf.float64)], [double])
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        loaded.optimizer.apply([tf.ones([3])], [loaded.a])
    with pytest.raises(ValueError, match="1 gradients for 2 variables"):
        loaded.optimizer.apply([tf.ones([2, 2])], [loaded.a, loaded.b])
    assert loaded.a.numpy().tolist() == reference_impl.load(tmp_path / "m").a.numpy().tolist()


def test_OPT_07_a_rule_that_depends_on_shapes_is_not_exported(tf, tmp_path):
    keras = pytest.importorskip("keras", "3")  # others have no Adafactor, and another update_step

    class Centred(keras.optimizers.SGD):
        def update_step(self, gradient, variable, learning_rate):
            self.assign_sub(variable, learning_rate * gradient * float(len(variable.shape)))

    for make, text in [
        (lambda: keras.optimizers.Adafactor(0.1), "slots of another shape"),
        (lambda: Centred(0.1), "depends on the shape"),
        (lambda: keras.optimizers.Adam(0.1, global_clipnorm=1.0), "global_clipnorm"),
        (lambda: keras.optimizers.Adam(0.1, use_ema=True), "use_ema"),
    ]:
        root = trained(tf, make)
        with pytest.raises(errors.SaveError, match=text):
            save_with_rules(root, tmp_path / "m")
        options = reference_impl.SaveOptions(functional_optimizers=True, strict=False)
        with pytest.warns(UserWarning, match=text):
            reference_impl.save(root, tmp_path / "lenient", options=options)
        with pytest.raises(errors.UnsupportedModelError, match="update rule"):
            step(tf, reference_impl.load(tmp_path / "lenient").optimizer, [tf.Variable(1.0)], 1.0)


def test_OPT_01_slots_of_keras_3_are_children_and_nothing_else_to_shipped_readers(tf, tmp_path):
    """`tf.saved_model.load` refuses a slot variable that is a child of some object too."""
    root = tf.Module()
    root.w = tf.Variable([1.0, 2.0])
    root.optimizer = tf.keras.optimizers.Adam(0.1)
    root.optimizer.apply_gradients([(tf.constant([1.0, -1.0]), root.w)])
    reference_impl.save(root, tmp_path / "m")
    assert tf.saved_model.load(str(tmp_path / "m")).w.numpy().tolist() == root.w.numpy().tolist()
    assert reference_impl.load(tmp_path / "m").optimizer.get_slot_names() == [
        "momentums",
        "velocities",
    ]


@pytest.mark.clause("OPT-01", "OPT-02", "OPT-03", "V1-18")
def test_OPT_02_slots_are_found_by_variable_and_name(tf, tmp_path):
    root = trained(tf, optimizers(tf)["v1 adam"])
    reference_impl.save(root, tmp_path / "ours")
    tf.saved_model.save(root, str(tmp_path / "shipped"))
    for path in (tmp_path / "ours", tmp_path / "shipped"):
        loaded = reference_impl.load(path)
        assert loaded.optimizer.get_slot_names() == ["m", "v"]
        for name in ("m", "v"):
            expected = root.optimizer.get_slot(root.b, name).numpy()
            assert loaded.optimizer.get_slot(loaded.b, name).numpy().tolist() == expected.tolist()
        assert loaded.optimizer.get_slot(tf.Variable(1.0), "m") is None
        assert loaded.optimizer.beta1_power.numpy() == pytest.approx(
            0.81
        )  # a variable like any other
        with pytest.raises(errors.UnsupportedModelError, match="functional_optimizers=True"):
            loaded.optimizer.apply_gradients([])
    # Shipped TensorFlow cannot load slots where it puts them itself; ours it can.
    with pytest.raises(AttributeError, match="add_slot"):
        tf.saved_model.load(str(tmp_path / "shipped"))
    assert tf.saved_model.load(str(tmp_path / "ours")).a.numpy().tolist() == root.a.numpy().tolist()
    fresh = trained(tf, optimizers(tf)["v1 adam"])
    tf.train.Checkpoint(a=fresh.a, b=fresh.b, optimizer=fresh.optimizer).restore(
        str(tmp_path / "ours")
    ).expect_partial()
    assert (
        fresh.optimizer.get_slot(fresh.b, "m").numpy().tolist()
        == root.optimizer.get_slot(root.b, "m").numpy().tolist()
    )
    reference_impl.save(reference_impl.load(tmp_path / "shipped"), tmp_path / "again")
    assert not differences(canonical(tmp_path / "ours"), canonical(tmp_path / "again"))
