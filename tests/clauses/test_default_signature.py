"""The signature that nobody asked for (IMP-*)."""

from __future__ import annotations

import logging

import clause_errors
import numpy as np
import pytest
from made_modules import module

import reference_impl

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def said(caplog):
    """What saving says about the default signature."""
    caplog.set_level(logging.WARNING)
    return lambda: [
        record.getMessage() for record in caplog.records if record.name.startswith("reference_impl")
    ]


def keys_of(root, directory):
    reference_impl.save(root, directory)
    return sorted(reference_impl.load(directory).signatures)


@pytest.mark.clause("ATTR-05")
def test_IMP_01_the_only_function_is_the_default(tf, tmp_path, said):
    f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([])])

    class Callable(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([])])
        def __call__(self, x):
            return x

    untyped = tf.function(lambda x: x)
    for number, root in enumerate(
        [
            module(tf, f=f),
            Callable(),
            module(tf, f=untyped.get_concrete_function(tf.TensorSpec([]))),
        ]
    ):
        assert keys_of(root, tmp_path / str(number)) == ["serving_default"]
    untyped(tf.constant(1))
    assert keys_of(module(tf, f=f, untyped=untyped), tmp_path / "beside") == ["serving_default"]
    assert said() == []


def test_IMP_02_of_several_functions_none_is_the_default_and_that_is_said(tf, tmp_path, said):
    f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([])])
    g = tf.function(lambda x: x + 1.0, input_signature=[tf.TensorSpec([])])
    assert keys_of(module(tf, f=f, g=g), tmp_path / "two") == []
    assert keys_of(module(tf, one=f, other=f), tmp_path / "names") == []
    assert [
        "root.f and root.g could" in said()[0],
        "root.one and root.other could" in said()[1],
        len(said()),
    ] == [True, True, 2]


def test_IMP_03_functions_of_children_do_not_count(tf, tmp_path, said):
    f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([])])
    assert (
        keys_of(module(tf, child=module(tf, f=f), many=[f], by_name={"f": f}), tmp_path / "m") == []
    )
    assert said() == []


def test_IMP_06_a_function_that_cannot_be_the_default_is_no_error_and_that_is_said(
    tf, tmp_path, said
):
    f = tf.function(lambda x: {"a": [x]}, input_signature=[tf.TensorSpec([])])
    assert keys_of(module(tf, f=f), tmp_path / "m") == []
    assert len(said()) == 1 and "root.f " in said()[0]
    loaded = reference_impl.load(tmp_path / "m")
    assert float(loaded.f(tf.constant(2.0))["a"][0]) == 2.0


@pytest.mark.clause("SIG-13")
@pytest.mark.parametrize("strict", [True, False])
def test_IMP_06_a_default_of_a_structure_has_the_names_of_tensorflow_and_that_is_said(
    tf, tmp_path, said, strict
):
    """Nobody asked for it, so it is no error; without it no server could run the model.

    The same as an argument is refused.
    """
    spec = tf.TensorSpec([], tf.float32)
    root = module(tf, f=tf.function(lambda x: x[0] + x[1], input_signature=[[spec, spec]]))
    options = reference_impl.SaveOptions(strict=strict)
    reference_impl.save(root, tmp_path / "ours", options=options)
    assert len(said()) == 1 and "root.f" in said()[0] and "'x', 'x_1'" in said()[0]
    tf.saved_model.save(root, str(tmp_path / "theirs"))
    for path in (tmp_path / "ours", tmp_path / "theirs"):
        for load in (reference_impl.load, lambda path: tf.saved_model.load(str(path))):
            answer = load(path).signatures["serving_default"](
                x=tf.constant(1.0), x_1=tf.constant(2.0)
            )
            assert float(answer["output_0"]) == 3.0
    reference_impl.save(root, tmp_path / "none", {})
    assert not reference_impl.load(tmp_path / "none").signatures
    if strict:
        with clause_errors.raises(
            reference_impl.errors.SignatureError, "SIG-13", match=r"'x', 'x_1'.*strict=False"
        ):
            reference_impl.save(root, tmp_path / "asked", root.f, options)


@pytest.mark.clause("SIG-13")
def test_IMP_06_names_of_their_own_and_single_tensors_need_no_word(tf, tmp_path, said):
    named = [[tf.TensorSpec([], tf.float32, "a"), tf.TensorSpec([], tf.float32, "b")]]
    assert keys_of(
        module(tf, f=tf.function(lambda x: x[0] + x[1], input_signature=named)), tmp_path / "named"
    ) == ["serving_default"]
    assert said() == []


@pytest.fixture(scope="module")
def keras():
    return pytest.importorskip("keras", minversion="3")


def default_inputs(root, directory):
    """Name -> shape of the default signature's inputs, None where there is no signature."""
    reference_impl.save(root, directory)
    signatures = reference_impl.load(directory).signatures
    if not signatures:
        return None
    return {
        name: spec.shape.as_list()
        for name, spec in signatures["serving_default"].structured_input_signature[1].items()
    }


@pytest.mark.clause("ATTR-10")
def test_IMP_04_and_05_keras_models_say_their_own_default(tf, keras, tmp_path):
    """A functional model has one, a subclassed one when it was called, with the shapes of that call
    (as shipped).
    """
    inputs_ = keras.Input((3,))
    functional = keras.Model(inputs_, keras.layers.Dense(2)(inputs_))
    assert default_inputs(functional, tmp_path / "functional") == {"inputs": [None, 3]}

    class Subclass(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(2)

        def call(self, x):
            return self.dense(x)

    model = Subclass()
    assert default_inputs(model, tmp_path / "new") is None
    model(np.ones((1, 3), np.float32))
    assert default_inputs(model, tmp_path / "called") == {"inputs": [1, 3]}
    reference_impl.save(functional, tmp_path / "own", {})  # the user's word counts more
    assert list(reference_impl.load(tmp_path / "own").signatures) == []


def _of_inputs(keras, kind):
    """A Keras model of two inputs in a dict or a list, and what it is called with."""
    inputs_ = [keras.Input((2,), name="first"), keras.Input((3,), name="second")]
    outputs = keras.layers.Dense(1)(keras.layers.Concatenate()(inputs_[::-1]))
    given = [np.float32([[1, 2]]), np.float32([[3, 4, 5]])]
    if kind == "list":
        return keras.Model(inputs_, outputs), given
    return keras.Model({"second": inputs_[1], "first": inputs_[0]}, {"out": outputs}), {
        "first": given[0],
        "second": given[1],
    }


@pytest.mark.clause("SIG-13")
@pytest.mark.parametrize("kind", ["list", "dict"])
@pytest.mark.parametrize("how", ["save", "export"])
def test_IMP_04_keras_models_of_several_inputs_have_the_signature_that_tensorflow_writes(
    tf, keras, tmp_path, monkeypatch, kind, how
):
    model, given = _of_inputs(keras, kind)
    flat = tf.nest.flatten(given)

    def write(save, path):
        if how == "save":
            save(model, str(path))
            return
        monkeypatch.setattr(tf.saved_model, "save", save)
        model.export(str(path), verbose=False)
        monkeypatch.undo()

    write(tf.saved_model.save, tmp_path / "theirs")
    write(reference_impl.save, tmp_path / "ours")
    expected = np.asarray(tf.nest.flatten(model(given))[0])
    for load in (reference_impl.load, tf.saved_model.load):
        theirs, ours = (load(str(tmp_path / name)).signatures for name in ("theirs", "ours"))
        assert sorted(ours) == sorted(theirs) and "serving_default" in ours
        names = sorted(theirs["serving_default"].structured_input_signature[1])
        assert sorted(ours["serving_default"].structured_input_signature[1]) == names
        by_size = {
            spec.shape[1]: name
            for name, spec in ours["serving_default"].structured_input_signature[1].items()
        }
        answer = ours["serving_default"](
            **{by_size[value.shape[1]]: tf.constant(value) for value in flat}
        )
        assert [value.numpy().tolist() for value in answer.values()] == [expected.tolist()]
