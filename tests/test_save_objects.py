"""`reference_impl.save` of what people put on models: tables, strategies, optimizers, generators, datasets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import inventory
import pytest

import reference_impl
from reference_impl.format import layout

HERE = Path(__file__).parent

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


# The SignatureDef says what TensorFlow's own inference finds in the whole graph, and loaders learn it from the function
@pytest.mark.clause("ATTR-03")
def test_the_shape_of_a_tables_answer_is_known(tf, tmp_path):
    root = tf.Module()
    root.table = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, [0.0, 0.0])
    root.f = tf.function(lambda key: root.table.lookup(key), input_signature=[tf.TensorSpec([None], tf.string)])
    for _ in range(2):
        reference_impl.save(root, tmp_path / "m")
        info = layout.read(tmp_path / "m").meta_graph(None).signature_def["serving_default"].outputs["output_0"]
        assert [dim.size for dim in info.tensor_shape.dim] == [-1, 2]
        for load in (tf.saved_model.load, reference_impl.load):
            loaded = load(str(tmp_path / "m"))
            assert loaded.signatures["serving_default"].structured_outputs["output_0"].shape.as_list() == [None, 2]
        root = loaded


# On the way out replicas become one variable, on the way in one variable becomes replicas; functions mean what they did
@pytest.mark.clause("DIST-02", "DIST-03", "DIST-04")
def test_a_model_of_a_strategy_is_saved_as_one_without(tf, tmp_path):
    command = [sys.executable, str(HERE / "strategy_saves.py"), str(tmp_path)]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    answers = {"read": 6.0, "sum": 6.0, "mean": 4.5, "update": 5.0}
    for kind, answer in answers.items():
        expected = {"reference": [2.0, 3.0, 1.5, answer], "tf": [2.0, 3.0, 1.5, answer], "session": answer}
        assert found[kind] == found[f"{kind} in scope"] == expected
        assert found.get(f"{kind} expanded", expected) == expected or kind == "update"
    assert found["again"] == found["read"]
    assert "root.f updates 'mirrored:0' across replicas; do not expand" in found["update expanded"]
    assert "try saving a tf.function with input_signature instead" in found["concrete"]
    assert found["components"] == [["CPU:0", "CPU:1"]] * 3 and found["devices"] == ["CPU:0"] * 3 + ["CPU:1"] * 3
    assert found["plain devices"] == [""]


def test_RES_03_a_table_that_nobody_uses_is_in_the_graph(tf, tmp_path):
    """As in shipped exports: a reader that lists tables by node finds all of them."""

    class Table(tf.saved_model.experimental.TrackableResource):
        def _create_resource(self):
            return tf.raw_ops.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)

    module = tf.Module()
    module.tables = [Table(), Table()]
    reference_impl.save(module, tmp_path / "model")
    assert len(inventory.tables(tmp_path / "model", ["serve"])) == 2
    assert all(entries is None for *_, entries in inventory.tables(tmp_path / "model", ["serve"]))
