"""`reference_impl.fast.variables` against `reference_impl.kinds.variable`: the same variables, the
same errors.
"""

from __future__ import annotations

import shutil
import threading

import pytest

import reference_impl
from reference_impl import errors
from reference_impl.format import schema
from reference_impl.format.container import layout

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tensorflow

from reference_impl.fast import variables as fast_variables  # noqa: E402  # imports TensorFlow

LARGE = 1 << 19  # elements, 2 MiB


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A SavedModel of TensorFlow with variables of many dtypes, shapes and roles."""
    root = tf.Module()
    root.large = [tf.Variable(tf.range(LARGE, dtype=tf.float32) + n) for n in range(3)]
    root.halves = tf.Variable(tf.cast(tf.range(LARGE), tf.bfloat16), name="a/b")
    root.same = [tf.Variable(tf.fill([2, 3], float(n)), name="same") for n in range(4)]
    root.scalar = tf.Variable(3, dtype=tf.int64, trainable=False)
    root.empty = tf.Variable(tf.zeros([0, 7]))
    root.text = tf.Variable(["some", "words"])
    root.flag = tf.Variable(True, name="")
    root.open = tf.Variable([1.0, 2.0], shape=[None])
    root.any = tf.Variable([[1.0]], shape=tf.TensorShape(None))
    root.sum = tf.Variable(
        1.0,
        aggregation=tf.VariableAggregation.SUM,
        synchronization=tf.VariableSynchronization.ON_WRITE,
    )
    path = tmp_path_factory.mktemp("variables") / "model"
    tf.saved_model.save(root, str(path))
    return path


def load(path, **options):
    with tf.device("CPU"):
        return reference_impl.load(path, options=reference_impl.LoadOptions(**options))


def described(root):
    """What can be seen of every variable, by path."""
    found = {}
    for path, variable in sorted(variables_of(root).items()):
        handle = variable.handle
        found[path] = (
            type(variable),
            variable.name,
            handle._name,
            variable.dtype,
            variable.shape,
            variable.trainable,
            variable.synchronization,
            variable.aggregation,
            variable.device,
            handle._handle_data,
            variable.numpy().tolist(),
        )
    return found


def variables_of(root):
    return {
        "scalar": root.scalar,
        "empty": root.empty,
        "text": root.text,
        "flag": root.flag,
        "open": root.open,
        "any": root.any,
        "sum": root.sum,
        "halves": root.halves,
        **{f"large.{n}": item for n, item in enumerate(root.large)},
        **{f"same.{n}": item for n, item in enumerate(root.same)},
    }


def test_variables_are_the_same(model, monkeypatch):
    made = []
    whole = fast_variables.make_all

    def noted(load):
        found = whole(load)
        made.append(len(found))
        return found

    monkeypatch.setattr(fast_variables, "make_all", noted)
    fast = load(model)
    assert made == [len(variables_of(fast))]
    assert described(fast) == described(load(model, fast=False))
    assert len(made) == 1, "fast=False must not use the twin"


def test_an_environment_variable_switches_the_twin_off(model, monkeypatch):
    monkeypatch.setenv("SAVEDMODEL_COMPAT_PLAIN", "1")
    monkeypatch.setattr(fast_variables, "make_all", lambda load: pytest.fail("used"))
    assert load(model).scalar.numpy() == 3


def test_variables_are_independent(model):
    root = load(model)
    root.same[0].assign_add(tf.ones([2, 3]))
    assert root.same[0].numpy().tolist() == [[1.0] * 3] * 2
    assert root.same[1].numpy().tolist() == [[1.0] * 3] * 2
    assert root.same[2].numpy().tolist() == [[2.0] * 3] * 2
    ids = {id(variable.handle) for variable in root.same}
    assert len({variable._unique_id for variable in root.same}) == len(ids) == 4


def test_a_name_scope_of_the_caller_is_put_before_the_names(model):
    with tf.name_scope("outer"):
        fast, plain = load(model), load(model, fast=False)
    assert fast.halves.name == plain.halves.name


def flipped(model, path, marks):
    """A copy of a model with one byte changed in each of the values that begin with a mark."""
    shutil.copytree(model, path)
    (shard,) = (path / "variables").glob("variables.data-*")
    data = bytearray(shard.read_bytes())
    for mark in marks:
        data[data.index(mark)] ^= 1
    shard.write_bytes(data)
    return path


def failure(path, **options):
    before = threading.active_count()
    with pytest.raises(errors.SavedModelError) as caught:
        load(path, **options)
    assert threading.active_count() == before
    return type(caught.value), str(caught.value), caught.value.node


@pytest.mark.parametrize("numbers", [[0], [1], [2, 0]])
def test_errors_of_damaged_values_are_the_same(model, tmp_path, numbers):
    marks = [(tf.range(LARGE, dtype=tf.float32) + n).numpy().tobytes()[-64:] for n in numbers]
    damaged = flipped(model, tmp_path / "damaged", marks)
    assert failure(damaged) == failure(damaged, fast=False)


@pytest.mark.parametrize("change", ["dtype", "shape", "key"])
def test_errors_of_wrong_descriptions_are_the_same(model, tmp_path, change):
    path = tmp_path / "wrong"
    shutil.copytree(model, path)
    message = layout.read(path).saved_model
    nodes = message.meta_graphs[0].object_graph_def.nodes
    wrong = [node.variable for node in nodes if node.HasField("variable")][-2:]
    for variable in wrong:
        if change == "dtype":
            variable.dtype = schema.DT_DOUBLE
        elif change == "shape":
            variable.shape.dim.add(size=9)
    if change == "key":
        name = next(c for c in nodes[0].children if nodes[c.node_id].HasField("variable"))
        name.local_name = "elsewhere"
    (path / "saved_model.pb").write_bytes(schema.serialize(message))
    assert failure(path) == failure(path, fast=False)
    partial = {"allow_partial_checkpoint": True}
    fast, plain = load(path, **partial), load(path, fast=False, **partial)
    assert len(vars(fast)) == len(vars(plain))
    assert fast.scalar.name == plain.scalar.name
