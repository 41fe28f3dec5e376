"""RES-01: who keeps whom alive. A function holds what it needs, and no cycle holds a variable."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

import reference_impl

pytestmark = pytest.mark.tensorflow

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def directory(tf, tmp_path_factory):
    """Variables, tables, a loop, a custom gradient with a capture of its own, and a function inside
    a child.
    """
    model = tf.Module()
    model.child = tf.Module()
    w = model.child.w = tf.Variable([1.0, 2.0])
    factor = model.factor = tf.Variable(7.0)
    model.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), -1)
    model.counts = tf.lookup.experimental.MutableHashTable(tf.string, tf.int32, 0)

    @tf.custom_gradient
    def steep(x):
        return x + 0.0, lambda dy: dy * factor

    @tf.function(input_signature=[tf.TensorSpec([2], name="x")])
    def call(x):
        return tf.while_loop(lambda i, _: i < 1, lambda i, y: (i + 1, y * w), (0, steep(x)))[1]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
    def look(words):
        return model.table.lookup(words) + model.counts.lookup(words)

    model.call, model.look = call, look
    model.child.call = tf.function(lambda x: call(x) + w, input_signature=[tf.TensorSpec([2])])
    place = tmp_path_factory.mktemp("owned") / "model"
    tf.saved_model.save(model, str(place), signatures={"call": call, "look": look})
    return place


def _gradient(tf, function, *sources):
    with tf.GradientTape() as tape:
        tape.watch(x := tf.ones([2]))
        y = function(x)
    return tape.gradient(y, [x, *sources])


USES = {
    "nothing": lambda tf, m, tmp: None,
    "calls": lambda tf, m, tmp: (
        m.call([1.0, 1.0]),
        m.child.call([1.0, 1.0]),
        m.look(["a"]),
        m.signatures["look"](["a"]),
    ),
    "a graph": lambda tf, m, tmp: [
        f.concrete_functions[0].graph for f in (m.call, m.child.call, m.look)
    ],
    "gradients": lambda tf, m, tmp: _gradient(tf, m.child.call, m.child.w),
    "an outer function": lambda tf, m, tmp: tf.function(
        lambda x: _gradient(tf, m.call), autograph=False
    )(tf.ones([2])),
    "a signature's gradient": lambda tf, m, tmp: _gradient(
        tf, lambda x: m.signatures["call"](x=x)["output_0"], m.child.w
    ),
    "saving": lambda tf, m, tmp: reference_impl.save(m, tmp / "again"),
    "TensorFlow's saving": lambda tf, m, tmp: tf.saved_model.save(m, str(tmp / "again")),
}


@pytest.mark.parametrize("use", USES)
def test_RES_01_del_of_the_root_frees_everything_without_the_garbage_collector(
    tf, directory, tmp_path, use
):
    loaded = reference_impl.load(directory)
    gc.collect()
    gc.disable()  # already now: a collection at the right moment would hide a cycle
    try:
        USES[use](tf, loaded, tmp_path)
        owned = (
            loaded,
            loaded.child,
            loaded.child.w,
            loaded.factor,
            loaded.table,
            loaded.counts,
            loaded.call,
            loaded.child.call,
        )
        alive = [
            weakref.ref(o)
            for o in (
                *owned,
                loaded.call.concrete_functions[0],
                loaded.call.concrete_functions[0].library,
            )
        ]
        del loaded, owned
        assert [o() for o in alive] == [None] * len(alive)
    finally:
        gc.enable()


def test_RES_01_a_function_of_a_temporary_has_all_it_needs(tf, directory):
    def load():
        return reference_impl.load(directory)

    x = tf.ones([2])
    assert load().call(x).numpy().tolist() == [1.0, 2.0]
    assert load().child.call(x).numpy().tolist() == [2.0, 4.0]
    assert load().look(tf.constant(["a", "b"])).numpy().tolist() == [1, -1]
    assert load().signatures["look"](tf.constant(["a"]))["output_0"].numpy().tolist() == [1]
    assert load().call.get_concrete_function()(x).numpy().tolist() == [1.0, 2.0]
    functions = [
        load().call,
        load().child.call,
        load().look.concrete_functions[0],
        load().signatures["call"],
    ]
    gc.collect()
    assert [
        tf.nest.flatten(f(g))[0].shape.rank
        for f, g in zip(functions, [x, x, tf.constant(["a"]), x])
    ] == [1] * 4
    # The gradient's own capture too.
    assert [g.numpy().tolist() for g in _gradient(tf, load().call)] == [[7.0, 14.0]]


def test_RES_01_a_function_keeps_only_what_it_needs(tf, directory):
    loaded = reference_impl.load(directory)
    look, variable, table = loaded.look, weakref.ref(loaded.child.w), weakref.ref(loaded.table)
    gc.disable()
    try:
        del loaded
        assert variable() is None and table() is not None
        del look
        assert table() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("case", ["half_plus_two", "hash_table_v2", "mutable_hash_table"])
def test_RES_01_the_same_for_TF1_models(tf, case):
    loaded = reference_impl.load(FIXTURES / case / "model")
    signature = next(iter(loaded.signatures.values()))
    state = [weakref.ref(o) for o in (*loaded.variables, *loaded.resources)]
    root = weakref.ref(loaded)
    gc.disable()
    try:
        del loaded
        assert root() is None and any(o() is not None for o in state)
        del signature
        assert all(o() is None for o in state)
    finally:
        gc.enable()
