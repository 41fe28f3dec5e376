"""Initialization graphs: new objects of the class of a loaded one (INIT-*)."""

from __future__ import annotations

import base64
import gc
import weakref

import pytest
from extensions import extension_of, rewrite
from model_edits import differences

import reference_impl
from reference_impl import errors
from reference_impl.format import extension, schema
from savedmodel_tools.canonical.form import canonical

pytestmark = pytest.mark.tensorflow


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
        assert (made.shape, made.dtype, made.trainable, made.name) == (
            old.shape,
            old.dtype,
            old.trainable,
            old.name,
        )
        assert not made.is_initialized()


def test_INIT_08_initialisation_is_automatic_and_happens_once(tf, net_export):
    cls = type(reference_impl.load(net_export))
    one, two = cls(), cls()
    first = one.net.noisy().numpy()
    assert (first == one.net.noisy().numpy()).all()
    assert (first != two.net.noisy().numpy()).all()  # another object, another draw
    three = cls()
    assert (
        three.net.total().numpy() == three.net.noise.numpy() + 1.0
    ).all()  # made of another variable, which comes first
    four = cls()
    four.net.noise.assign(tf.zeros([5]))  # what has a value keeps it
    assert four.net.total().numpy().tolist() == [1.0] * 5


def test_INIT_08_inside_of_another_function_and_with_gradients(tf, net_export):
    new = type(reference_impl.load(net_export))()
    assert tf.function(lambda: new.net.noisy() * 2.0)().shape == [5]
    other = type(new)()
    with pytest.raises(errors.UninitializedVariableError, match=r"root\.net\.var.*tf\.function"):
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
    with pytest.raises(
        errors.UninitializedVariableError,
        match=r"root\.v .*reference_impl\.initializer",
    ):
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
    with pytest.raises(errors.UnsupportedModelError, match=r"root\.part .*root\.v"):
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
    root.table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(keys, tf.constant([1, 2])), -1
    )
    root.find = tf.function(
        lambda x: root.table.lookup(x), input_signature=[tf.TensorSpec([], tf.string)]
    )
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
    assert not differences(canonical(tmp_path / "two"), canonical(tmp_path / "three"))
    new = type(reference_impl.load(tmp_path / "three"))()
    new.net.do(tf.constant(2.0))
    new.net.total()
    reference_impl.save(new, tmp_path / "four")
    last = reference_impl.load(tmp_path / "four")
    assert last.net.var.numpy().tolist() == [2.0] * 5
    assert type(last)().net.do(tf.constant(4.0)).numpy().tolist() == [8.0] * 5
    assert (
        tf.saved_model.load(str(tmp_path / "four")).net.do(tf.constant(1.0)).numpy().tolist()
        == [3.0] * 5
    )

    def forget(meta_graph):
        found = extension_of(net_export)
        del found.initial_values[1:]
        meta_graph.collection_def[extension.KEY].bytes_list.value[:] = [
            base64.b64encode(schema.serialize(found))
        ]

    rewrite(tmp_path / "two", forget)
    text = "\n".join(differences(canonical(tmp_path / "three"), canonical(tmp_path / "two")))
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
