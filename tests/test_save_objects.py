"""`reference_impl.save` of what people put on models: tables, strategies, optimizers, generators, datasets."""

from __future__ import annotations

import pytest

import reference_impl
from reference_impl.format import layout

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
