"""The OpDefs beside the evaluator are those of TensorFlow 2.21."""

from __future__ import annotations

import pytest


@pytest.mark.tensorflow
def test_the_file_is_what_the_generator_writes():
    tf = pytest.importorskip("tensorflow")
    if not tf.version.VERSION.startswith("2.21."):
        pytest.skip("the file holds the OpDefs of TensorFlow 2.21")
    from docs import op_definitions  # it imports TensorFlow

    assert op_definitions.content() == op_definitions.OUT.read_text(encoding="utf-8")
