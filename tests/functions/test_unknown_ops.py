"""RP-07, DR-05: an op that a library registers after a failed call is known from then on, in every
way of calling and saving.
"""

from __future__ import annotations

import custom_op
import fresh_tensorflow
import pytest

pytestmark = [pytest.mark.tensorflow, pytest.mark.clause("RP-07", "DR-05")]

SAVED = """
import sys, tensorflow as tf
ops = tf.load_op_library(sys.argv[1])
scalar = [tf.TensorSpec([])]
root = tf.Module()
root.twice = tf.function(lambda x: ops.review_double(x), input_signature=scalar)
root.calls = tf.function(lambda x: root.twice(x) + 1.0, input_signature=scalar)
root.shared = tf.function(lambda x: ops.review_shared(shared_name="s") + x, input_signature=scalar)
tf.saved_model.save(root, sys.argv[2])
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    x = tf.compat.v1.placeholder(tf.float32, [], "x")
    y = tf.identity(ops.review_double(x), "y")
    builder = tf.compat.v1.saved_model.Builder(sys.argv[3])
    signature = tf.compat.v1.saved_model.predict_signature_def({"x": x}, {"y": y})
    builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature}, strip_default_attrs=True)
    builder.save()
"""
# Every way fails, then the library is loaded, then the way works for the same load and for another
# one.
CALLED = """
import sys, tensorflow as tf, reference_impl
WAYS = {
    "eager": lambda f: f(tf.constant(1.0)),
    "traced": lambda f: tf.function(lambda x: f(x), autograph=False)(tf.constant(1.0)),
    "taped": lambda f: taped(f),
    "graph": lambda f: f.concrete_functions[0].graph and f(tf.constant(1.0)),
}
def taped(f):
    with tf.GradientTape():
        return f(tf.constant(1.0))
library, model, name, way = sys.argv[1:]
before = reference_impl.load(model)
for _ in range(2):
    try:
        WAYS[way](getattr(before, name))
    except tf.errors.NotFoundError as error:
        assert error.clause == "DR-05" and "load_op_library" in str(error), error
    else:
        raise AssertionError("not refused")
tf.load_op_library(library)
print(*(float(WAYS[way](getattr(loaded, name))) for loaded in (before, reference_impl.load(model))))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return custom_op.build(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def models(library, tmp_path_factory):
    folder = tmp_path_factory.mktemp("late_ops")
    fresh_tensorflow.printed(SAVED, library, folder / "tf2", folder / "tf1")
    return folder


@pytest.mark.parametrize("way", ["eager", "traced", "taped", "graph"])
@pytest.mark.parametrize(("name", "result"), [("twice", "2.0 2.0"), ("calls", "3.0 3.0")])
def test_DR_05_the_library_helps_after_the_error_that_asked_for_it(
    library, models, name, result, way
):
    assert fresh_tensorflow.printed(CALLED, library, models / "tf2", name, way).strip() == result


def test_RP_06_a_resource_of_a_late_op_is_not_shared_by_two_loads(library, models):
    """The op returns the length of its shared name, which ends with the number of the load."""
    first, second = map(
        float, fresh_tensorflow.printed(CALLED, library, models / "tf2", "shared", "eager").split()
    )
    assert first == second == 1 + len("s__load1")


WRITTEN = """
import sys, tensorflow as tf, reference_impl
from reference_impl.format import schema
library, model, out = sys.argv[1:]
loaded = reference_impl.load(model)
try:
    loaded.twice(tf.constant(1.0))
except tf.errors.NotFoundError:
    tf.load_op_library(library)
reference_impl.save(loaded, out)
(graph,) = schema.parse(schema.SavedModel, open(out + "/saved_model.pb", "rb").read()).meta_graphs
print("ReviewDouble" in [op.name for op in graph.meta_info_def.stripped_op_list.op])
"""


def test_DR_05_a_late_op_is_described_in_what_is_saved(library, models, tmp_path):
    assert (
        fresh_tensorflow.printed(WRITTEN, library, models / "tf2", tmp_path / "out").strip()
        == "True"
    )


PRUNED = """
import sys, tensorflow as tf, reference_impl
from reference_impl.format import schema
library, model = sys.argv[1:]
file = model + "/saved_model.pb"
message = schema.parse(schema.SavedModel, open(file, "rb").read())
message.meta_graphs[0].meta_info_def.ClearField("stripped_op_list")  # as some exporters leave it
open(file, "wb").write(message.SerializeToString())
loaded = reference_impl.load(model)
try:
    loaded.prune("x:0", "y:0")(tf.constant(1.0))
except Exception as error:
    assert "ReviewDouble" in str(error), error
else:
    raise AssertionError("not refused")
tf.load_op_library(library)
print(float(loaded.prune("x:0", "y:0")(tf.constant(1.0))))
print(float(reference_impl.load(model).signatures["serving_default"](tf.constant(1.0))["y"]))
"""


def test_DR_05_a_late_op_of_a_tf_1_graph_is_known(library, models):
    assert fresh_tensorflow.printed(PRUNED, library, models / "tf1").split() == ["2.0", "2.0"]
