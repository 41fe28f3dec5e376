"""What TensorFlow never delivered: registered types, initialization graphs, functional optimizers (REV-*, INIT-*, OPT-*)."""

from __future__ import annotations

import base64
import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import reference_impl
from reference_impl import errors
from reference_impl.format import errors as format_errors
from reference_impl.format import extension, layout, schema
from reference_impl.format.canonical import canonical

pytestmark = pytest.mark.tensorflow

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture
def registered():
    """Registers classes and takes the registrations back."""
    names = []

    def register(name, cls, **keywords):
        names.append(name)
        return reference_impl.register(name, cls, **keywords)

    yield register
    for name in names:
        reference_impl.unregister(name)


def extension_of(path):
    return extension.read(layout.read(path).saved_model.meta_graphs[0], str(path))


def rewrite(path, change):
    """Save the MetaGraph again after `change` was applied to it."""
    message = layout.read(path).saved_model
    change(message.meta_graphs[0])
    (Path(path) / "saved_model.pb").write_bytes(schema.serialize(message))


# Registered types


@pytest.fixture(scope="module")
def has_python(tf):
    class HasPython(tf.Module):
        phase = 0

        def __init__(self, scale=1):
            super().__init__()
            self.v = tf.Variable(1.0)
            self.scale = scale

        @tf.function
        def do(self, x, learning_phase):
            if learning_phase == 0:
                return x
            return x + self.v

        def __call__(self, x):
            return self.do(x, learning_phase=type(self).phase) * self.scale

    return HasPython


@pytest.fixture
def python_export(tf, has_python, registered, tmp_path):
    registered(
        "tests.HasPython", has_python, serialize=lambda obj: {"scale": obj.scale, "raw": b"\xff\x00", "nest": (1, [None, "a"])}
    )
    root = tf.Module()
    root.child = has_python(3)
    root.child.do(tf.constant(1.0), learning_phase=0)
    root.child.do(tf.constant(1.0), learning_phase=1)
    reference_impl.save(root, tmp_path / "m")
    return tmp_path / "m"


@pytest.mark.clause("REV-01", "REV-02", "REV-03", "REV-06")
def test_REV_01_each_object_has_a_type_of_its_own_with_functions_and_variables(tf, has_python, tmp_path):
    root = has_python()
    root.do(tf.constant(1.0), learning_phase=0)
    root.do(tf.constant(1.0), learning_phase=1)
    root.inner = tf.Module()
    root.inner.__call__ = tf.function(lambda x: x * 2.0, input_signature=[tf.TensorSpec([], tf.float32)])
    reference_impl.save(root, tmp_path / "m")
    loaded = reference_impl.load(tmp_path / "m")
    assert type(loaded) is not type(loaded.inner)
    assert isinstance(loaded, tf.Module) and isinstance(loaded.v, tf.Variable)
    assert loaded.inner(3.0).numpy() == 6.0 and not callable(loaded)  # the Python __call__ needs a registration
    assert [loaded.do(tf.constant(1.0), learning_phase=phase).numpy() for phase in (0, 1)] == [1.0, 2.0]
    with pytest.raises(errors.FunctionMatchError):
        loaded.do(tf.constant(1.0), learning_phase=2)


@pytest.mark.clause("REV-05", "RP-02")
def test_REV_05_python_call_around_a_function_works_after_loading(tf, has_python, python_export):
    loaded = reference_impl.load(python_export)
    assert type(loaded.child) is has_python
    assert loaded.child(tf.constant(1.0)).numpy() == 3.0
    has_python.phase = 1
    try:
        assert loaded.child(tf.constant(1.0)).numpy() == 6.0
        loaded.child.v.assign(5.0)
        assert loaded.child(tf.constant(1.0)).numpy() == 18.0
    finally:
        has_python.phase = 0
    assert (loaded.child.scale, loaded.child.raw, loaded.child.nest) == (3, b"\xff\x00", (1, [None, "a"]))


def test_REV_04_registered_name_is_written_as_shipped_files_have_it(tf, python_export, tmp_path):
    nodes = layout.read(python_export).saved_model.meta_graphs[0].object_graph_def.nodes
    assert [node.registered_name for node in nodes if node.registered_name] == ["tests.HasPython"]
    assert all(node.user_object.identifier == "_generic_user_object" for node in nodes if node.registered_name)
    shipped = tf.saved_model.load(str(python_export))
    assert shipped.child.do(tf.constant(1.0), learning_phase=1).numpy() == 2.0
    reference_impl.save(reference_impl.load(python_export), tmp_path / "again")
    assert not canonical(python_export).diff(canonical(tmp_path / "again"))


def test_REV_04_unknown_name_is_a_generic_object_and_a_warning(tf, has_python, python_export, tmp_path):
    reference_impl.unregister("tests.HasPython")
    try:
        with pytest.warns(UserWarning, match=r"root\.child was saved as 'tests\.HasPython'.*reference_impl\.register"):
            loaded = reference_impl.load(python_export)
        assert loaded.child.do(tf.constant(1.0), learning_phase=1).numpy() == 2.0
        assert not callable(loaded.child)
        reference_impl.save(loaded, tmp_path / "again")  # nothing is lost by who does not know the class
    finally:
        reference_impl.register("tests.HasPython", has_python)
    again = reference_impl.load(tmp_path / "again").child
    assert type(again) is has_python
    assert (again.scale, again.raw) == (3, b"\xff\x00")


def test_REV_04_registration_is_refused_for_taken_or_foreign_names(tf, has_python, registered):
    class Other(tf.Module):
        pass

    registered("tests.Taken", Other)
    for name, cls, error, text in [
        ("tests.Taken", has_python, ValueError, "is taken by"),
        ("tests.Second", Other, ValueError, "registered already, as 'tests.Taken'"),
        ("NoPackage", has_python, ValueError, "a package and a name"),
        ("tf.StaticHashTable", has_python, ValueError, "belong to TensorFlow"),
        ("tests.Third", "a string", TypeError, "only a class"),
    ]:
        with pytest.raises(error, match=text):
            reference_impl.register(name, cls)

    @reference_impl.register("tests.Decorated")
    class Decorated(tf.Module):
        pass

    assert isinstance(Decorated, type)
    reference_impl.unregister("tests.Decorated")


def test_REV_04_revive_makes_the_object_and_children_replace_what_it_made(tf, registered, tmp_path):
    class Scaler(tf.Module):
        def __init__(self, size):
            super().__init__()
            self.size = size
            self.w = tf.Variable(tf.zeros([size]))

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def __call__(self, x):
            return x * self.w

        def describe(self):
            return f"{self.size}: {self.w.numpy().tolist()}"

    registered("tests.Scaler", Scaler, serialize=lambda obj: {"size": obj.size}, revive=lambda cls, state: cls(**state))
    scaler = Scaler(2)
    scaler.w.assign([3.0, 4.0])
    for generation in ("one", "two", "three"):
        reference_impl.save(scaler, tmp_path / generation)
        scaler = reference_impl.load(tmp_path / generation)
        assert isinstance(scaler, Scaler)
        assert scaler.describe() == "2: [3.0, 4.0]"
        assert scaler(2.0).numpy().tolist() == [6.0, 8.0]
        assert scaler.signatures["serving_default"](tf.constant(2.0))["output_0"].numpy().tolist() == [6.0, 8.0]
    assert not canonical(tmp_path / "two").diff(canonical(tmp_path / "three"))


@pytest.mark.parametrize("value", [object(), {1: 2}, np.float32(1), {"a": b"deep"}])
def test_REV_04_what_serialize_gives_must_be_plain(tf, registered, tmp_path, value):
    class Odd(tf.Module):
        pass

    registered("tests.Odd", Odd, serialize=lambda obj: {"value": value})
    with pytest.raises(errors.SaveError, match=r"'value'; only plain values and bytes"):
        reference_impl.save(Odd(), tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_REV_04_revive_must_give_the_class(tf, has_python, python_export):
    reference_impl.unregister("tests.HasPython")
    reference_impl.register("tests.HasPython", has_python, revive=lambda cls, state: tf.Module())
    with pytest.raises(errors.UnsupportedModelError, match="did not give an object of that class"):
        reference_impl.load(python_export)


# Initialization graphs


@pytest.fixture(scope="module")
def net_class(tf):
    class Net(tf.Module):
        def __init__(self, units):
            super().__init__()
            self.units = units
            self.var = None
            self.noise = None

        def build(self, x):
            self.var = tf.Variable(x * tf.ones(self.units))
            self.noise = tf.Variable(tf.random.normal([self.units]), trainable=False)
            self.sum = tf.Variable(self.noise + 1.0)

        @tf.function
        def do(self, x):
            if self.var is None:
                self.build(x)
            return x + self.var

        @tf.function
        def noisy(self):
            return self.noise + 0.0

        @tf.function
        def total(self):
            return self.sum + 0.0

    return Net


@pytest.fixture(scope="module")
def net_export(tf, net_class, tmp_path_factory):
    tf.random.set_seed(None)  # one that an earlier test set would be traced into the functions
    root = tf.Module()
    root.net = net_class(5)
    root.net.do(tf.constant(1.0))
    root.net.noisy()
    root.net.total()
    root.net.var.assign([1.0, 2.0, 3.0, 4.0, 5.0])
    path = tmp_path_factory.mktemp("init") / "net"
    reference_impl.save(root, path)
    return path


@pytest.mark.clause("INIT-01", "INIT-02", "INIT-03", "INIT-04", "INIT-08")
def test_INIT_03_the_creating_method_initialises_a_new_object(tf, net_export):
    imported = reference_impl.load(net_export)
    assert imported.net.var.numpy().tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    new = type(imported)()
    assert type(new) is type(imported) and type(new.net) is type(imported.net)
    assert new.net is not imported.net and new.net.var is not imported.net.var
    assert not new.net.var.is_initialized()
    assert new.net.do(tf.constant(2.0)).numpy().tolist() == [4.0] * 5
    assert new.net.var.numpy().tolist() == [2.0] * 5
    assert new.net.do(tf.constant(3.0)).numpy().tolist() == [5.0] * 5  # once
    assert imported.net.var.numpy().tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_INIT_07_new_variables_are_like_the_loaded_ones(net_export):
    imported = reference_impl.load(net_export)
    new = type(imported)()
    for name in ("var", "noise", "sum"):
        old, made = getattr(imported.net, name), getattr(new.net, name)
        assert (made.shape, made.dtype, made.trainable, made.name) == (old.shape, old.dtype, old.trainable, old.name)
        assert not made.is_initialized()


def test_INIT_08_initialisation_is_automatic_and_happens_once(tf, net_export):
    cls = type(reference_impl.load(net_export))
    one, two = cls(), cls()
    first = one.net.noisy().numpy()
    assert (first == one.net.noisy().numpy()).all()
    assert (first != two.net.noisy().numpy()).all()  # another object, another draw
    three = cls()
    assert (three.net.total().numpy() == three.net.noise.numpy() + 1.0).all()  # made of another variable, which comes first
    four = cls()
    four.net.noise.assign(tf.zeros([5]))  # what has a value keeps it
    assert four.net.total().numpy().tolist() == [1.0] * 5


def test_INIT_08_inside_of_another_function_and_with_gradients(tf, net_export):
    new = type(reference_impl.load(net_export))()
    assert tf.function(lambda: new.net.noisy() * 2.0)().shape == [5]
    other = type(new)()
    with pytest.raises(errors.UninitializedVariableError, match=r"root\.net\.var.*outside of any tf\.function"):
        tf.function(lambda x: other.net.do(x), autograph=False)(tf.constant(1.0))
    with tf.GradientTape() as tape:
        result = tf.reduce_sum(other.net.do(tf.constant(2.0)))
    assert tape.gradient(result, other.net.var).numpy().tolist() == [1.0] * 5


@pytest.mark.clause("INIT-05", "INIT-08")
def test_INIT_05_an_eager_variable_needs_an_initializer(tf, tmp_path):
    def make():
        root = tf.Module()
        root.v = tf.Variable(tf.ones([3]))
        root.f = tf.function(lambda: root.v * 2.0, input_signature=[])
        root.put = tf.function(lambda x: root.v.assign(x), input_signature=[tf.TensorSpec([3])])
        return root

    reference_impl.save(make(), tmp_path / "without")
    new = type(reference_impl.load(tmp_path / "without"))()
    with pytest.raises(errors.UninitializedVariableError, match=r"root\.v has no value.*reference_impl\.initializer"):
        new.f()
    new.put([1.0, 2.0, 3.0])  # a function may well give it one
    assert new.f().numpy().tolist() == [2.0, 4.0, 6.0]
    restored = type(new)()
    tf.train.Checkpoint(restored).restore(str(tmp_path / "without")).expect_partial()
    assert restored.f().numpy().tolist() == [2.0] * 3

    root = make()
    assert reference_impl.initializer(root.v, lambda: tf.fill([3], 7.0)) is root.v
    reference_impl.save(root, tmp_path / "with")
    assert reference_impl.load(tmp_path / "with").f().numpy().tolist() == [2.0] * 3
    assert type(reference_impl.load(tmp_path / "with"))().f().numpy().tolist() == [14.0] * 3
    reference_impl.initializer(root.v, lambda: tf.fill([2], 7.0))
    with pytest.raises(errors.SaveError, match=r"root\.v.*shape \(2,\)"):
        reference_impl.save(root, tmp_path / "wrong")
    with pytest.raises(TypeError, match="initializer"):
        reference_impl.initializer(root.v, 5.0)


def test_INIT_05_functions_without_their_variables_cannot_be_made_anew(tf, tmp_path):
    root = tf.Module()
    root.v = tf.Variable(1.0, name="v")
    root.part = tf.Module()
    root.part.f = tf.function(lambda: root.v + 1.0, input_signature=[])
    reference_impl.save(root, tmp_path / "m")
    loaded = reference_impl.load(tmp_path / "m")
    with pytest.raises(errors.UnsupportedModelError, match=r"root\.part can be made: its functions use root\.v"):
        type(loaded.part)()
    assert type(loaded)().part.f.concrete_functions  # the whole has both


def test_INIT_06_the_class_takes_no_arguments(net_export):
    cls = type(reference_impl.load(net_export))
    with pytest.raises(TypeError, match="takes no arguments"):
        cls(5)
    with pytest.raises(TypeError, match="takes no arguments"):
        cls(units=5)


@pytest.mark.clause("INIT-09", "INIT-10")
def test_INIT_09_a_decorated_init_makes_the_class_take_tensors(tf, tmp_path):
    class Inner(tf.Module):
        @tf.function
        def __init__(self, start):
            if not hasattr(self, "w"):
                super().__init__()
                self.w = tf.Variable(start * 2.0)

    class Outer(tf.Module):
        @tf.function
        def __init__(self, start):
            if not hasattr(self, "v"):
                super().__init__()
                self.v = tf.Variable(start + 1.0)

    try:
        outer = Outer(tf.constant([1.0]))
    except TypeError:
        pytest.skip("tf.functions that return None return a tensor in this TensorFlow")  # 2.12
    outer.inner = Inner(tf.constant([5.0]))
    reference_impl.save(outer, tmp_path / "m")
    cls = type(reference_impl.load(tmp_path / "m"))
    new = cls(tf.constant([3.0]))
    assert new.v.numpy().tolist() == [4.0]
    assert not new.inner.w.is_initialized()
    with pytest.raises(TypeError):
        cls()
    tf.saved_model.load(str(tmp_path / "m"))


def test_INIT_02_tables_and_files_of_other_writers(tf, tmp_path):
    root = tf.Module()
    root.v = tf.Variable([1, 2])
    root.parts = [tf.Variable(3), {"a": tf.Variable(4)}]
    keys = tf.constant(["a", "b"])
    root.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, tf.constant([1, 2])), -1)
    root.find = tf.function(lambda x: root.table.lookup(x), input_signature=[tf.TensorSpec([], tf.string)])
    tf.saved_model.save(root, str(tmp_path / "m"), signatures=root.find)
    loaded = reference_impl.load(tmp_path / "m")
    new = type(loaded)()
    assert new.find("b").numpy() == 2
    assert new.signatures["serving_default"](tf.constant("a"))["output_0"].numpy() == 1
    assert not new.parts[1]["a"].is_initialized() and new.parts[0].shape == []
    new.v.assign([5, 6])
    assert loaded.v.numpy().tolist() == [1, 2]


def test_INIT_02_generations_and_canonical_form(tf, net_export, tmp_path):
    reference_impl.save(reference_impl.load(net_export), tmp_path / "two")
    reference_impl.save(reference_impl.load(tmp_path / "two"), tmp_path / "three")
    assert not canonical(tmp_path / "two").diff(canonical(tmp_path / "three"))
    new = type(reference_impl.load(tmp_path / "three"))()
    new.net.do(tf.constant(2.0))
    new.net.total()
    reference_impl.save(new, tmp_path / "four")
    last = reference_impl.load(tmp_path / "four")
    assert last.net.var.numpy().tolist() == [2.0] * 5
    assert type(last)().net.do(tf.constant(4.0)).numpy().tolist() == [8.0] * 5
    assert tf.saved_model.load(str(tmp_path / "four")).net.do(tf.constant(1.0)).numpy().tolist() == [3.0] * 5

    def forget(meta_graph):
        found = extension_of(net_export)
        del found.initial_values[1:]
        meta_graph.collection_def[extension.KEY].bytes_list.value[:] = [base64.b64encode(schema.serialize(found))]

    rewrite(tmp_path / "two", forget)
    text = "\n".join(map(str, canonical(tmp_path / "three").diff(canonical(tmp_path / "two"))))
    assert "initial value" in text


def test_INIT_02_a_class_keeps_no_variable_alive(net_export):
    imported = reference_impl.load(net_export)
    new = type(imported)()
    new.net.noisy()
    cls, dead = type(imported), [weakref.ref(imported.net.var), weakref.ref(new.net.noise)]
    gc.collect()
    gc.disable()
    try:
        del imported, new
        assert [ref() for ref in dead] == [None, None]
    finally:
        gc.enable()
    assert cls().net.noisy().shape == [5]


# Optimizers


def optimizers(tf):
    keras = tf.keras
    v1 = tf.compat.v1.train
    return {
        "sgd": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
        "adam": lambda: keras.optimizers.Adam(0.1, amsgrad=True, clipnorm=0.5),
        "schedule": lambda: keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)),
        "rmsprop": lambda: keras.optimizers.RMSprop(0.1, momentum=0.5, centered=True),
        "adagrad": lambda: keras.optimizers.Adagrad(0.1),
        "v1 momentum": lambda: v1.MomentumOptimizer(0.1, 0.9),
        "v1 adam": lambda: v1.AdamOptimizer(0.1),
        "v1 rmsprop": lambda: v1.RMSPropOptimizer(0.1, momentum=0.3),
        "v1 adagrad": lambda: v1.AdagradOptimizer(0.1),
    }


NAMES = ("sgd", "adam", "schedule", "rmsprop", "adagrad", "v1 momentum", "v1 adam", "v1 rmsprop", "v1 adagrad")


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
    assert not canonical(tmp_path / "two").diff(canonical(tmp_path / "three"))


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
    with pytest.raises(errors.UnsupportedModelError, match=r"no update rule for float64.*float32"):
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
        with pytest.raises(errors.UnsupportedModelError, match="without the update rule"):
            step(tf, reference_impl.load(tmp_path / "lenient").optimizer, [tf.Variable(1.0)], 1.0)


def test_OPT_01_slots_of_keras_3_are_children_and_nothing_else_to_shipped_readers(tf, tmp_path):
    """`tf.saved_model.load` refuses a slot variable that is a child of some object too."""
    root = tf.Module()
    root.w = tf.Variable([1.0, 2.0])
    root.optimizer = tf.keras.optimizers.Adam(0.1)
    root.optimizer.apply_gradients([(tf.constant([1.0, -1.0]), root.w)])
    reference_impl.save(root, tmp_path / "m")
    assert tf.saved_model.load(str(tmp_path / "m")).w.numpy().tolist() == root.w.numpy().tolist()
    assert reference_impl.load(tmp_path / "m").optimizer.get_slot_names() == ["momentums", "velocities"]


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
        assert loaded.optimizer.beta1_power.numpy() == pytest.approx(0.81)  # a variable like any other
        with pytest.raises(errors.UnsupportedModelError, match="functional_optimizers=True"):
            loaded.optimizer.apply_gradients([])
    # Shipped TensorFlow cannot load slots where it puts them itself; ours it can.
    with pytest.raises(AttributeError, match="add_slot"):
        tf.saved_model.load(str(tmp_path / "shipped"))
    assert tf.saved_model.load(str(tmp_path / "ours")).a.numpy().tolist() == root.a.numpy().tolist()
    fresh = trained(tf, optimizers(tf)["v1 adam"])
    tf.train.Checkpoint(a=fresh.a, b=fresh.b, optimizer=fresh.optimizer).restore(str(tmp_path / "ours")).expect_partial()
    assert fresh.optimizer.get_slot(fresh.b, "m").numpy().tolist() == root.optimizer.get_slot(root.b, "m").numpy().tolist()
    reference_impl.save(reference_impl.load(tmp_path / "shipped"), tmp_path / "again")
    assert not canonical(tmp_path / "ours").diff(canonical(tmp_path / "again"))


# The place in the file


def test_extension_is_untrusted(tf, net_export, tmp_path):
    reference_impl.save(reference_impl.load(net_export), tmp_path / "m")
    good = extension_of(tmp_path / "m")

    def put(change):
        changed = schema.Extension()
        changed.CopyFrom(good)
        change(changed)
        data = base64.b64encode(schema.serialize(changed))
        rewrite(tmp_path / "m", lambda graph: graph.collection_def[extension.KEY].bytes_list.value.__setitem__(0, data))

    first = lambda e: e.initial_values[0]  # noqa: E731
    for change, text in [
        (lambda e: setattr(first(e), "node_id", 10**6), "refers to node 1000000"),
        (lambda e: setattr(first(e), "node_id", -1), "refers to node -1"),
        (lambda e: setattr(first(e), "node_id", 0), "no variable"),
        (lambda e: setattr(first(e), "function", "nobody"), "no function 'nobody'"),
        (lambda e: first(e).inputs.add(argument=3), "are described"),
        (lambda e: e.optimizers.add(node_id=0).slots.add(variable=0, name="m", value=0), "is no variable"),
        (lambda e: e.optimizers.add(node_id=0).shared.append(99999), "refers to node 99999"),
    ]:
        put(change)
        for read in (reference_impl.load, canonical):
            with pytest.raises(format_errors.MalformedError, match=text):
                read(tmp_path / "m")
        assert any(text in problem for problem in reference_impl.inspect(tmp_path / "m").problems)
    rewrite(tmp_path / "m", lambda graph: graph.collection_def[extension.KEY].bytes_list.value.__setitem__(0, b"\xff*"))
    with pytest.raises(format_errors.MalformedError, match="base64"):
        reference_impl.load(tmp_path / "m")
    put(lambda e: setattr(e, "min_consumer", 2))
    with pytest.warns(UserWarning, match="for readers of version 2"):
        loaded = reference_impl.load(tmp_path / "m")
    assert loaded.net.do(tf.constant(1.0)).numpy().tolist() == [2.0, 3.0, 4.0, 5.0, 6.0]
    put(lambda e: setattr(first(e).inputs[0], "argument", 40))
    with pytest.raises(format_errors.SavedModelError):
        type(reference_impl.load(tmp_path / "m"))().net.do(tf.constant(1.0))


def test_extension_is_only_there_when_it_says_something(tf, net_export, tmp_path):
    root = tf.Module()
    root.v = tf.Variable(1.0)
    reference_impl.save(root, tmp_path / "m")
    assert extension.KEY not in layout.read(tmp_path / "m").saved_model.meta_graphs[0].collection_def
    details = [node.details for node in reference_impl.inspect(net_export).meta_graphs[0].objects]
    assert sum("initial_value" in item for item in details) == 3


def test_session_readers_do_not_notice(tf, net_export):
    v1 = tf.compat.v1
    for scope in (None, "imported"):
        with v1.Session(graph=tf.Graph()) as session:
            v1.saved_model.loader.load(session, ["serve"], str(net_export), import_scope=scope)
            name = "/".join(filter(None, (scope, "Variable/Read/ReadVariableOp:0")))
            assert session.run(name).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


def blocks():
    """(first line, text) of the Python blocks of the page."""
    parts = (ROOT / "docs" / "beyond_tensorflow.md").read_text().split("```python\n")
    return [part.split("```")[0] for part in parts[1:]]


def test_examples_of_the_documentation_run(tf, tmp_path):
    program = "\n".join(blocks())
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_examples_exist():
    assert len(blocks()) >= 4
