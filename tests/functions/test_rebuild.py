"""Functions that TensorFlow traced again from what we loaded: the same functions, generation after
generation.
"""

import re

import pytest

from reference_impl.format.container import layout
from savedmodel_tools.canonical.form import canonical

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def generations(tmp_path_factory):
    """A model with an effect before its result, an inner function, and a literal; saved four times
    by tf.saved_model.save.
    """
    import tensorflow as tf

    import reference_impl

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.total = tf.Variable(0.0)
            self.scale = tf.Variable(2.0)
            self.words = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
            self.words.insert(["a"], [7])

        @tf.function(input_signature=[tf.TensorSpec([], tf.string, name="My-Input")])
        def find(self, word):
            return self.words.lookup(word)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def add(self, values):
            self.total.assign_add(tf.reduce_sum(values))
            return {"total": self.total, "scaled": self.inner(values)}

        @tf.function
        def inner(self, values, twice=True):
            return values * self.scale * (2.0 if twice else 1.0)

    folder = tmp_path_factory.mktemp("generations")
    model = Model()
    tf.saved_model.save(model, str(folder / "0"), signatures={"add": model.add, "find": model.find})
    for number in range(1, 5):
        loaded = reference_impl.load(folder / str(number - 1))
        tf.saved_model.save(loaded, str(folder / str(number)), signatures=loaded.signatures)
    return folder


def functions(directory):
    library = layout.read(directory).meta_graph(["serve"]).graph_def.library
    return {
        function.signature.name: sorted(node.op for node in function.node_def)
        for function in library.function
    }


def test_GOAL_13_traced_again_from_the_second_generation_on_nothing_changes(generations):
    assert canonical(generations / "3").hash == canonical(generations / "2").hash
    assert canonical(generations / "4").hash == canonical(generations / "3").hash


def test_GOAL_13_traced_again_bodies_and_names_do_not_grow(generations):
    first, last = functions(generations / "1"), functions(generations / "4")
    bodies = [
        body for name, body in first.items() if "wrapper" not in name and "traced" not in name
    ]
    assert len(bodies) >= 2
    assert all(body in last.values() for body in bodies)
    assert not [name for name in last if name.count("__inference_") > 1]


def test_the_effect_still_comes_before_the_result(generations):
    import numpy as np
    import tensorflow as tf

    loaded = tf.saved_model.load(str(generations / "4"))
    answer = loaded.signatures["add"](values=tf.constant([1.0, 2.0]))
    assert answer["total"].numpy() == 3.0
    np.testing.assert_array_equal(answer["scaled"], [4.0, 8.0])


def shared_names(directory):
    """The shared names of tables without their numbers, which count what this process has made so
    far.
    """
    library = layout.read(directory).meta_graph(["serve"]).graph_def.library
    nodes = (node for function in library.function for node in function.node_def)
    return [
        re.sub(rb"\d+", b"N", node.attr["shared_name"].s)
        for node in nodes
        if node.op == "MutableHashTableV2"
    ]


def test_RP_06_the_shared_name_of_a_table_does_not_grow(generations):
    assert shared_names(generations / "4") == shared_names(generations / "1") != []


def test_SIG_07_an_input_keeps_a_name_that_python_does_not_allow(generations):
    import tensorflow as tf

    loaded = tf.saved_model.load(str(generations / "4"))
    assert loaded.signatures["find"](tf.constant("a"))["output_0"].numpy() == 7
    signature = layout.read(generations / "4").meta_graph(["serve"]).signature_def["find"]
    assert list(signature.inputs) == ["My-Input"]
