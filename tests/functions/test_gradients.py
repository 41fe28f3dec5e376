"""A TF 1.x model names its Python gradients and brings none: a re-export keeps the names by which a
program knows them.
"""

import pytest

import reference_impl
from reference_impl.format.container import layout

pytestmark = [pytest.mark.tensorflow, pytest.mark.clause("FMT-14")]


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    return tensorflow


def export(tf, folder, gradient):
    """y = x * v, where x * v has a gradient of that name."""
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph, v1.Session() as session:
        x = v1.placeholder(tf.float32, [], "x")
        v = v1.get_variable("v", initializer=2.0, use_resource=True)
        with graph.gradient_override_map({"Identity": gradient}):
            y = tf.identity(x * v, "y")
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, str(folder), {"x": x}, {"y": y})
    return folder


def names(folder):
    (graph,) = layout.read(folder).saved_model.meta_graphs
    nodes = [node for function in graph.graph_def.library.function for node in function.node_def]
    return {
        node.attr["_gradient_op_type"].s.decode()
        for node in nodes
        if "_gradient_op_type" in node.attr
    }


def differentiated(tf, signature, variable):
    with tf.GradientTape() as tape:
        y = signature(x=tf.constant(3.0))["y"]
    return float(tape.gradient(y, variable))


def test_a_registered_gradient_is_found_by_each_generation(tf, tmp_path):
    if "TestTimesTen" not in REGISTERED:
        tf.RegisterGradient("TestTimesTen")(lambda operation, upstream: upstream * 10.0)
        REGISTERED.append("TestTimesTen")
    path = export(tf, tmp_path / "0", "TestTimesTen")
    for generation in range(3):
        loaded = reference_impl.load(path)
        assert differentiated(tf, loaded.signatures["serving_default"], loaded.variables[0]) == 30.0
        path = tmp_path / f"{generation + 1}"
        reference_impl.save(loaded, path)
        assert names(path) == {"TestTimesTen"}


def test_a_registered_gradient_of_any_op_is_saved(tf, tmp_path):
    """Guided backpropagation gives another gradient to Relu."""
    if "TestGuided" not in REGISTERED:
        tf.RegisterGradient("TestGuided")(lambda operation, upstream: upstream * 5.0)
        REGISTERED.append("TestGuided")

    @tf.function(input_signature=[tf.TensorSpec([])])
    def guided(x):
        with tf.compat.v1.get_default_graph().gradient_override_map({"Relu": "TestGuided"}):
            return {"y": tf.nn.relu(x * root.v)}

    root = tf.Module()
    root.v, root.guided = tf.Variable(2.0), guided
    reference_impl.save(root, tmp_path / "m", signatures=guided)
    loaded = reference_impl.load(tmp_path / "m")
    assert differentiated(tf, loaded.signatures["serving_default"], loaded.v) == 15.0


REGISTERED: list[str] = []  # a process registers a name once


def test_a_name_that_nothing_stands_for_is_not_given_to_a_gradient_that_is_there(tf, tmp_path):
    """The old name becomes a refusal, else the old model would be differentiated by the new one's
    function.
    """
    old = reference_impl.load(export(tf, tmp_path / "old", "CustomGradient-0"))

    @tf.custom_gradient
    def tripled(value):
        return tf.identity(value), lambda upstream: upstream * 3.0

    root = tf.Module()
    root.old, root.v = old, tf.Variable(2.0)
    root.new = tf.function(
        lambda x: {"y": tripled(x * root.v)}, input_signature=[tf.TensorSpec([], name="x")]
    )
    reference_impl.save(
        root,
        tmp_path / "both",
        signatures={"old": old.signatures["serving_default"], "new": root.new},
    )
    assert len(names(tmp_path / "both")) == 2
    again = reference_impl.load(tmp_path / "both")
    assert differentiated(tf, again.signatures["new"], again.v) == 9.0
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"no gradient here: .*CustomGradient-0"
    ):
        differentiated(tf, again.signatures["old"], again.old.variables[0])
