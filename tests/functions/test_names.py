"""FN-05, RES-14: names that look like those of a loaded model are the author's own, whatever the
process has loaded before.
"""

from __future__ import annotations

import fresh_tensorflow
import pytest

pytestmark = [pytest.mark.tensorflow, pytest.mark.clause("FN-05", "RES-14")]

PROGRAM = """
import sys, tensorflow as tf, reference_impl
from reference_impl.format import schema

def made(name):
    root = tf.Module()
    def push(x):
        queue = tf.raw_ops.FIFOQueueV2(component_types=[tf.float32], shared_name=name)
        tf.raw_ops.QueueEnqueueV2(handle=queue, components=[x])
        return x
    root.f = tf.function(push, input_signature=[tf.TensorSpec([])])
    return root

def names(out):
    (graph,) = schema.parse(schema.SavedModel, open(out + "/saved_model.pb", "rb").read()).meta_graphs
    nodes = (node for function in graph.graph_def.library.function for node in function.node_def)
    return {node.attr["shared_name"].s.decode() for node in nodes if node.op == "FIFOQueueV2"}

folder = sys.argv[1]
reference_impl.save(made("queue"), folder + "/first")
loaded = reference_impl.load(folder + "/first")  # load 1
if sys.argv[2] == "called":
    loaded.f(1.0)
root = made("other__load1" if sys.argv[2] == "called" else "queue__load1")
root.f(1.0)
reference_impl.save(root, folder + "/own")
print(*names(folder + "/own"))
both = tf.Module()
both.loaded, both.g = loaded, tf.function(lambda x: loaded.f(x), input_signature=[tf.TensorSpec([])])
reference_impl.save(both, folder + "/both")
print(*names(folder + "/both"))
"""


@pytest.mark.parametrize(
    ("history", "name"), [("called", "other__load1"), ("not called", "queue__load1")]
)
def test_RES_14_a_name_that_ends_like_one_of_a_load_is_kept(tmp_path, history, name):
    own, both = fresh_tensorflow.printed(PROGRAM, tmp_path, history).split()
    assert own == name
    assert both == "queue"
