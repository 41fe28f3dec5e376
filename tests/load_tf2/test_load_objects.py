"""`reference_impl.load` of models of TensorFlow 2: the objects, their variables and containers."""

from __future__ import annotations

import collections

import numpy as np
import pytest
from made_models import edit, save

import reference_impl

pytestmark = pytest.mark.tensorflow


def test_RP_01_objects_have_the_structure_that_was_saved(tf, loaded):
    assert loaded.alias is loaded.dense
    assert loaded.parent is loaded
    assert loaded.parts[0] is loaded.dense
    assert loaded.parts[1]["bias"] is loaded.bias
    assert isinstance(loaded.parts, list) and isinstance(loaded.parts[1], dict)
    assert (
        isinstance(loaded.bias, tf.Variable)
        and loaded.bias.name == "bias:0"
        and loaded.bias.trainable
    )
    assert loaded.steps.numpy() == 7 and not loaded.steps.trainable
    with pytest.raises(AttributeError):
        loaded.multiply  # noqa: B018


def test_PRIM_06_tuples_and_namedtuples_come_back_as_such(loaded):
    inner = loaded.parts[2]
    assert isinstance(inner, tuple) and inner[0] is loaded.steps
    assert isinstance(inner[1], tuple) and inner[1]._fields == ("first", "second")
    assert inner[1].first is loaded.bias and inner[1].second is loaded.dense


def test_GOAL_02_and_03_variables_are_visible_to_the_object_and_to_what_contains_it(tf, original):
    loaded = reference_impl.load(original[1], options=reference_impl.LoadOptions(modules=True))
    assert {id(v) for v in loaded.trainable_variables} == {id(loaded.bias), id(loaded.dense.w)}
    assert {id(v) for v in loaded.variables} == {
        id(loaded.bias),
        id(loaded.dense.w),
        id(loaded.steps),
    }
    outer = tf.Module()
    outer.part = loaded
    assert len(outer.trainable_variables) == 2


def test_a_child_may_be_called_variables(tf, tmp_path):
    module = tf.train.Checkpoint(variables=[tf.Variable(1.0)], name=tf.Variable(2.0))
    loaded = reference_impl.load(save(tf, tmp_path, module))
    assert [v.numpy() for v in loaded.variables] == [1.0]
    assert loaded.name.numpy() == 2.0
    assert len(loaded.trainable_variables) == 2


def test_OPT_01_and_02_slot_variables_do_not_stop_a_load(tf, tmp_path):
    root = tf.Module()
    root.v = tf.Variable([1.0, 2.0])
    optimizer = tf.compat.v1.train.AdamOptimizer(0.1)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(root.v**2)
    optimizer.apply_gradients([(tape.gradient(loss, root.v), root.v)])
    root.optimizer = optimizer
    loaded = reference_impl.load(save(tf, tmp_path, root))
    slots = {
        name: value.numpy()
        for (variable, name), value in loaded.optimizer.slot_variables.items()
        if variable == loaded.v.ref()
    }
    assert sorted(slots) == ["m", "v"]
    np.testing.assert_array_equal(slots["m"], optimizer.get_slot(root.v, "m").numpy())
    assert [v.name for v in loaded.trainable_variables] == ["Variable:0"]


@pytest.mark.parametrize(
    "value",
    [
        np.float16([1.5]), np.array([b"a", b"bc", b""], object), np.array(True), np.complex64(1 + 2j), np.zeros([0, 3], np.int8),
        np.uint16(7), np.arange(1000, dtype=np.float64),
    ],
    ids=lambda value: str(value.dtype),
)  # fmt: skip
def test_RP_03_values_of_every_kind(tf, tmp_path, value):
    root = tf.Module()
    root.v = tf.Variable(tf.constant(value))
    loaded = reference_impl.load(save(tf, tmp_path, root)).v
    assert loaded.dtype == root.v.dtype and loaded.shape == root.v.shape
    np.testing.assert_array_equal(loaded.numpy(), root.v.numpy())


@pytest.mark.parametrize("name", ["bfloat16", "qint8", "float8_e5m2"])
def test_RP_03_dtypes_that_numpy_lacks(tf, tmp_path, name):
    dtype = tf.dtypes.as_dtype(name)
    value = (
        tf.quantization.quantize([0.0, 1.0], 0.0, 1.0, dtype).output
        if name == "qint8"
        else tf.cast([1.0, 2.0, -3.0], dtype)
    )
    root = tf.Module()
    try:
        root.v = tf.Variable(value)
    except tf.errors.InvalidArgumentError:
        pytest.skip(f"TensorFlow {tf.__version__} has no variables of {name}")
    loaded = reference_impl.load(save(tf, tmp_path, root)).v
    assert loaded.dtype == dtype and loaded.numpy().tobytes() == value.numpy().tobytes()


def test_a_variable_of_partial_shape_may_change_its_shape(tf, tmp_path):
    root = tf.Module()
    root.v = tf.Variable([[1.0]], shape=tf.TensorShape([None, None]))
    loaded = reference_impl.load(save(tf, tmp_path, root)).v
    assert loaded.shape.as_list() == [None, None]
    loaded.assign(tf.zeros([3, 2]))
    assert loaded.numpy().shape == (3, 2)


def test_an_attribute_may_have_any_name_that_a_loaded_object_uses_itself(tf, tmp_path):
    """Of the class of a plain object and of that of an optimizer."""
    plain = {
        name
        for name in dir(reference_impl.load(_saved(tf, tf.Module(), tmp_path / "plain")))
        if not name.startswith("_")
    }
    plain -= {
        "signatures",
        "tensorflow_version",
        "tensorflow_git_version",
        "graph_debug_info",
        "extra_assets",
    }
    names = sorted(plain | {"slot_variables", "get_slot", "apply", "apply_gradients"})
    root = tf.train.Checkpoint()
    root.of_optimizer = tf.train.Checkpoint()
    for index, name in enumerate(names):
        for part in (root, root.of_optimizer):
            part._track_trackable(tf.Variable(float(index)), name)
            vars(part)[name] = part._lookup_dependency(name)
    loaded = reference_impl.load(_saved(tf, root, tmp_path / "m"))
    for index, name in enumerate(names):
        assert getattr(loaded, name).numpy() == getattr(loaded.of_optimizer, name).numpy() == index
    assert not hasattr(reference_impl.load(tmp_path / "plain"), "slot_variables")


@pytest.mark.parametrize("name", ["class", "_private", "not a name"])
def test_a_namedtuple_with_a_field_that_python_does_not_take_is_a_tuple(tf, tmp_path, name):
    root = tf.Module()
    root.pair = collections.namedtuple("Pair", ["one", "two"])(tf.Variable(1.0), tf.Variable(2.0))
    directory = _saved(tf, root, tmp_path / "m")
    assert reference_impl.load(directory).pair._fields == ("one", "two")

    def rename(meta_graph):
        for node in meta_graph.object_graph_def.nodes:
            for child in node.children:
                if child.local_name == "two":
                    child.local_name = name

    edit(directory, rename)
    pair = reference_impl.load(directory).pair
    assert not hasattr(pair, "_fields") and [item.numpy() for item in pair] == [1.0, 2.0]


def test_private_names_belong_to_the_model(tf, tmp_path):
    """Names that loaded objects once had for themselves: their variables are among those of the
    model, and can be saved.
    """
    names = ("_kept", "_keras_identity", "_optimizer", "_rules", "_slots", "_unlisted")
    root = tf.Module()
    root.part = tf.Module()
    for index, name in enumerate(names):
        setattr(root, name, tf.Variable(float(index)))
        setattr(root.part, name, tf.Module())
        getattr(root.part, name).signatures = tf.Variable(float(-index))
    reference_impl.save(root, tmp_path / "saved")
    loaded = reference_impl.load(_saved(tf, root, tmp_path / "m"))
    reference_impl.save(loaded, tmp_path / "again")
    for path in ("m", "saved", "again"):
        found = reference_impl.load(tmp_path / path)
        assert len(found.variables) == len(root.variables) == 2 * len(names), path
        assert [getattr(found, name).numpy() for name in names] == list(range(len(names)))


def _saved(tf, root, path):
    tf.saved_model.save(root, str(path))
    return path
