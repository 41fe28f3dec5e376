"""The bytes of an export do not depend on the counters of the process (found by ``matrix run
--pasts``).
"""

from __future__ import annotations

from pathlib import Path

import pytest

import reference_impl
from reference_impl.format.names import base_name

tf = pytest.importorskip("tensorflow")

pytestmark = pytest.mark.tensorflow
FIXTURES = Path(__file__).parents[2] / "fixtures_v1"


def capture_of_a_called_function():
    root = tf.Module()
    root.v = tf.Variable(2.0)
    spec = [tf.TensorSpec([], tf.float32)]
    inner = tf.function(lambda x: x * root.v, input_signature=spec)
    root.f = tf.function(lambda x: inner(x) + 1.0, input_signature=spec)
    return root


def static_tables():
    root = tf.Module()
    for name in ("one", "two"):
        given = tf.lookup.KeyValueTensorInitializer(
            tf.constant([100, 200], tf.int64), tf.constant([0, 1], tf.int64)
        )
        setattr(root, name, tf.lookup.StaticHashTable(given, -1))
    root.f = tf.function(
        lambda x: root.one.lookup(root.two.lookup(x)),
        input_signature=[tf.TensorSpec([None], tf.int64)],
    )
    return root


def gradient_of_a_loop():
    root = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int32)])
    def f(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in tf.range(n):
                y = y * y
            if n > 3:
                y = y + 1.0
        return tape.gradient(y, x)

    root.f = f
    return root


@pytest.mark.parametrize("build", [capture_of_a_called_function, static_tables, gradient_of_a_loop])
def test_an_export_is_the_same_after_the_counter_has_moved(tmp_path, build):
    from tensorflow.python.framework import ops

    reference_impl.save(build(), tmp_path / "before")
    for _ in range(1234):
        ops.uid()
    reference_impl.save(build(), tmp_path / "after")
    before, after = (
        (tmp_path / name / "saved_model.pb").read_bytes() for name in ("before", "after")
    )
    assert before == after


def test_a_table_that_tensorflow_loaded_keeps_no_number_of_the_load(tmp_path):
    exports = []
    for name in ("before", "after"):
        loaded = tf.saved_model.load(str(FIXTURES / "table_no_init" / "model"))
        reference_impl.save(
            loaded, tmp_path / name, signatures=dict(sorted(loaded.signatures.items()))
        )
        exports.append((tmp_path / name / "saved_model.pb").read_bytes())
    assert exports[0] == exports[1]
    assert b"hash_table_vocabulary.txt_-2_-1" in exports[0] and b"_load_" not in exports[0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cond_true_7", "cond_true"),
        ("cond_false_259_grad_1871", "cond_false_grad"),
        ("while_body_222_rewritten", "while_body_rewritten"),
        ("while_body_2_grad_4_rewritten", "while_body_grad_rewritten"),
        ("__inference_layer_1_grad_2", "layer_1_grad"),
    ],
)
def test_the_stem_of_a_name_has_no_number_of_the_process(name, expected):
    assert base_name(name) == expected
