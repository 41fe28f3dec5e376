"""What one test sets for its process is not there in the next one."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("turn", ["first", "second"])
def test_no_test_finds_the_seed_of_another(turn):
    import tensorflow as tf

    @tf.function
    def draw():
        return tf.random.uniform([])

    (node,) = [
        node
        for node in draw.get_concrete_function().graph.get_operations()
        if node.type == "RandomUniform"
    ]
    assert node.get_attr("seed") == 0
    tf.random.set_seed(3)
