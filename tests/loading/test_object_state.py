"""State that no function of a file restores: of registered checkpoint savers, and in the checkpoint
alone.
"""

from __future__ import annotations

import logging

import numpy as np
import pytest

import reference_impl
from reference_impl import errors
from reference_impl.format.container import layout

pytest.importorskip("tensorflow")
from reference_impl.loading.registered_savers import UnrestoredStateWarning

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def counter(tf):
    class Counter(tf.train.experimental.PythonState):
        def __init__(self, count):
            self.count = count

        def serialize(self):
            return str(self.count)

        def deserialize(self, string_value):
            self.count = int(string_value)

    return Counter


@pytest.fixture(scope="module")
def saver(tf):
    """A registered saver of a module, an object that is no variable: its number is in the
    checkpoint under a key of its own.
    """
    from tensorflow.python.saved_model import registration

    class Stacked(tf.Module):
        def __init__(self, number):
            super().__init__()
            self.number = number

    def write(trackables, file_prefix):
        values = [tf.constant(item.number) for item in trackables.values()]
        names = [f"{name}-number" for name in trackables]
        tf.raw_ops.SaveV2(
            prefix=file_prefix,
            tensor_names=names,
            shape_and_slices=[""] * len(names),
            tensors=values,
        )
        return file_prefix

    def restore(trackables, merged_prefix):
        for name, item in trackables.items():
            keys = {
                "tensor_names": [f"{name}-number"],
                "shape_and_slices": [""],
                "dtypes": [tf.float32],
            }
            (restored,) = tf.raw_ops.RestoreV2(prefix=merged_prefix, **keys)
            if tf.executing_eagerly():  # TensorFlow's save traces it too
                item.number = restored.numpy()

    settings = {
        "predicate": lambda item: isinstance(item, Stacked),
        "save_fn": write,
        "restore_fn": restore,
    }
    registration.register_checkpoint_saver(
        "object_state", "Stacked", **settings, strict_predicate_restore=False
    )
    return Stacked, restore


def stacked(tf, saver, tmp_path):
    root = tf.Module()
    root.v, root.deep = tf.Variable(2.0), tf.Module()
    root.stacked, root.deep.stacked = saver[0](3.0), saver[0](4.0)
    tf.saved_model.save(root, str(tmp_path / "m"))
    return tmp_path / "m"


def test_an_object_whose_saver_has_no_class_to_restore_is_named_in_a_warning(tf, saver, tmp_path):
    path = stacked(tf, saver, tmp_path)
    with pytest.warns(
        UnrestoredStateWarning, match=r"root\.stacked.*root\.deep\.stacked.*'object_state\.Stacked'"
    ) as caught:
        loaded = reference_impl.load(path)
    assert len(caught) == 1 and loaded.v.numpy() == 2.0 and not hasattr(loaded.stacked, "number")


def test_a_session_that_saves_the_model_writes_python_state_again(tf, counter, tmp_path):
    root = tf.Module()
    root.counter, root.v = counter(3), tf.Variable(1.0)
    reference_impl.save(root, tmp_path / "m")
    saver_def = layout.read(tmp_path / "m").meta_graph(None).saver_def
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.saved_model.load(session, ["serve"], str(tmp_path / "m"))
        session.run(
            saver_def.save_tensor_name, {saver_def.filename_tensor_name: str(tmp_path / "again")}
        )
    restored = tf.Module()
    restored.counter, restored.v = counter(0), tf.Variable(0.0)
    tf.train.Checkpoint(restored).restore(str(tmp_path / "again")).expect_partial()
    assert restored.counter.count == 3 and restored.v.numpy() == 1.0


def test_a_save_says_which_object_loaders_do_not_restore(tf, counter, tmp_path, caplog):
    root = tf.Module()
    root.parts = [counter(3)]
    with caplog.at_level(logging.WARNING):
        reference_impl.save(root, tmp_path / "m")
    assert "root.parts[0]: the Python state" in caplog.text


def test_python_state_that_cannot_be_serialised_names_its_object(tf, counter, tmp_path):
    class Broken(counter):
        def serialize(self):
            raise RuntimeError("the device is gone")

    root = tf.Module()
    root.parts = [Broken(3)]
    for strict in (True, False):
        with pytest.raises(
            errors.SaveError,
            match=r"root\.parts\[0\]: .*device",
        ):
            reference_impl.save(
                root, tmp_path / "m", options=reference_impl.SaveOptions(strict=strict)
            )


HOOKS = {
    "a Python number": lambda tf, variable: {"n": 3.0},
    "an array": lambda tf, variable: {"n": np.float32(3.0)},
    "a function": lambda tf, variable: {"n": lambda: variable + 1.0},
}


@pytest.mark.parametrize("kind", HOOKS)
def test_a_hook_that_gives_no_tensors_is_named_and_kept_without_strict(tf, tmp_path, kind):
    class Held(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = tf.Variable(2.0)

        def _serialize_to_tensors(self):
            return HOOKS[kind](tf, self.v)

        def _restore_from_tensors(self, restored):
            return self.v.assign(restored["n"])

    root = tf.Module()
    root.held = Held()
    with pytest.raises(
        errors.SaveError,
        match=r"root\.held: .*tensors",
    ):
        reference_impl.save(root, tmp_path / "m")
    with pytest.warns(UserWarning, match=r"checkpoint alone.*root\.held"):
        reference_impl.save(root, tmp_path / "m", options=reference_impl.SaveOptions(strict=False))
    reader = tf.train.load_checkpoint(str(tmp_path / "m" / "variables" / "variables"))
    assert reader.get_tensor("held/.ATTRIBUTES/n") == 3.0
    for load in (reference_impl.load, tf.saved_model.load):
        assert load(str(tmp_path / "m")).held.v.numpy() == 2.0


def test_older_hooks_that_give_a_variable_or_a_list_are_kept_without_strict(tf, tmp_path):
    class Spec:
        def __init__(self, name, tensor):
            self.name, self.tensor, self.dtype = name, tensor, tensor.dtype

    class Made:
        def __init__(self, name):
            self.specs = [Spec(name, tf.constant(4.0))]

    class Held(tf.Module):
        def __init__(self, variable):
            super().__init__()
            self.v = variable

        def _gather_saveables_for_checkpoint(self):
            return {"copy": self.v, "listed": lambda name: [Made(name)]}

    root = tf.Module()
    root.held = Held(tf.Variable(2.0))
    with pytest.raises(
        errors.SaveError,
        match=r"root\.held: .*'copy'",
    ):
        reference_impl.save(root, tmp_path / "m")
    with pytest.warns(UserWarning, match=r"root\.held"):
        reference_impl.save(root, tmp_path / "m", options=reference_impl.SaveOptions(strict=False))
    reader = tf.train.load_checkpoint(str(tmp_path / "m" / "variables" / "variables"))
    assert (
        reader.get_tensor("held/.ATTRIBUTES/copy"),
        reader.get_tensor("held/.ATTRIBUTES/listed"),
    ) == (2.0, 4.0)
