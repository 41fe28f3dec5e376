"""Functions without a structured signature: cut out of an imported graph, or with variables made
constants.
"""

import numpy as np
import pytest

import reference_impl
from reference_impl.format.container import layout

pytestmark = [pytest.mark.tensorflow, pytest.mark.clause("FN-05")]


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    return tensorflow


def frozen(tf):
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    v = tf.Variable([3.0, 4.0])
    function = tf.function(
        lambda b, a: {"difference": a * v - b},
        input_signature=[tf.TensorSpec([], name="b"), tf.TensorSpec([2], name="a")],
    )
    return convert_variables_to_constants_v2(function.get_concrete_function())


def imported(tf, feeds, fetches):
    """The standard recipe for a frozen GraphDef: a * [3, 4] - b."""
    with tf.Graph().as_default() as graph:
        b = tf.compat.v1.placeholder(tf.float32, [], "in/b")
        a = tf.compat.v1.placeholder(tf.float32, [2], "a")
        tf.subtract(a * tf.constant([3.0, 4.0]), b, name="difference")
    importer = tf.compat.v1.wrap_function(
        lambda: tf.graph_util.import_graph_def(graph.as_graph_def(), name=""), []
    )
    return importer.prune(feeds, fetches)


def pruned(tf):
    return imported(tf, ["in/b:0", "a:0"], "difference:0")


def pruned_dict(tf):
    return imported(tf, ["in/b:0", "a:0"], {"z": "difference:0", "again": "a:0"})


def results(tf, value):
    return [np.asarray(tensor).tolist() for tensor in tf.nest.flatten(value)]


MAKERS = [frozen, pruned, pruned_dict]
EXPECTED = {frozen: [[2.0, 7.0]], pruned: [[2.0, 7.0]], pruned_dict: [[1.0, 2.0], [2.0, 7.0]]}
PAIRS = [("reference", "tf2"), ("tf2", "reference"), ("reference", "reference")]


def implementations(tf):
    return {"tf2": tf.saved_model, "reference": reference_impl}


@pytest.mark.parametrize("writer, reader", PAIRS)
@pytest.mark.parametrize("make", MAKERS)
def test_flat_functions_are_saved_as_attributes_and_signatures(tf, tmp_path, make, writer, reader):
    root = tf.Module()
    root.f = make(tf)
    implementations(tf)[writer].save(root, str(tmp_path / "m"), signatures={"serve": root.f})
    loaded = implementations(tf)[reader].load(str(tmp_path / "m"))
    b, a = tf.constant(1.0), tf.constant([1.0, 2.0])
    assert results(tf, loaded.f(b, a)) == EXPECTED[make]
    assert loaded.f.structured_input_signature is None
    names = dict(zip(["in_b" if make is not frozen else "b", "a"], [b, a]))
    assert results(tf, loaded.signatures["serve"](**names)) == EXPECTED[make]


@pytest.mark.parametrize("make", MAKERS)
def test_three_generations_of_a_flat_function_are_bit_equal_and_differentiable(tf, tmp_path, make):
    root = tf.Module()
    root.f = make(tf)
    for generation in range(3):
        path = tmp_path / str(generation)
        reference_impl.save(root, path, signatures=root.f)
        root = reference_impl.load(path)
        (meta_graph,) = layout.read(path).saved_model.meta_graphs
        kinds = {
            function.canonicalized_input_signature.WhichOneof("kind")
            for name, function in meta_graph.object_graph_def.concrete_functions.items()
            if "wrapper" not in name
        }
        assert kinds == {"none_value"}
        a = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(a)
            y = tf.nest.flatten(root.f(tf.constant(1.0), a))[-1]
        assert tape.gradient(y, a).numpy().tolist() == [3.0, 4.0]


def test_a_flat_function_with_variables_and_one_without_results(tf, tmp_path):
    def graph(x):
        v = tf.compat.v1.get_variable("v", initializer=3.0, use_resource=True)
        tf.identity(x * v, name="y")
        v.assign_add(x, name="add")

    root = tf.Module()
    wrapped = tf.compat.v1.wrap_function(graph, [tf.TensorSpec([])])
    root.variables_of_graph = list(wrapped.graph.variables)
    elements = wrapped.graph.as_graph_element
    x = wrapped.inputs[0]
    root.times = wrapped.prune(x, elements("y:0"))
    (add,) = [
        operation
        for operation in wrapped.graph.get_operations()
        if operation.type == "AssignAddVariableOp"
    ]
    root.add = wrapped.prune(x, add)
    reference_impl.save(root, tmp_path / "m")
    for module in (reference_impl, tf.saved_model):
        loaded = module.load(str(tmp_path / "m"))
        assert loaded.times(tf.constant(2.0)).numpy() == 6.0
        loaded.add(tf.constant(1.0))
        assert loaded.times(tf.constant(2.0)).numpy() == 8.0


def test_functions_in_containers_are_not_rebuilt_by_a_load(tf, tmp_path, monkeypatch):
    """TensorFlow's containers ask what they hold for attributes of variables."""
    from reference_impl.functions.registered_function import RegisteredFunction

    root = tf.Module()
    root.f = pruned(tf)
    root.held = [root.f, {"f": root.f}, (root.f, root.f)]
    tf.saved_model.save(root, str(tmp_path / "m"))
    built = []
    monkeypatch.setattr(RegisteredFunction, "rebuilt", lambda self: built.append(self.saved_name))
    loaded = reference_impl.load(tmp_path / "m")
    assert not built and len(loaded.held) == 3


def test_a_flat_function_says_which_arguments_it_takes(tf, tmp_path):
    root = tf.Module()
    root.f = pruned(tf)
    reference_impl.save(root, tmp_path / "m")
    with pytest.raises(TypeError, match=r"it takes in/b: float32\[\], a: float32\[2\]"):
        reference_impl.load(tmp_path / "m").f(tf.constant(1.0))
