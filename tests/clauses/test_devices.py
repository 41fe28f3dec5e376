"""Clauses about devices (DEV), in one process with two CPUs: what is stored, and where calls of
loaded functions run.
"""

from __future__ import annotations

import json
from pathlib import Path

import fresh_tensorflow
import pytest

import reference_impl
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow

_PROGRAM = """
import json, sys
import tensorflow as tf
import reference_impl

(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
root = tf.Module()
root.v = tf.Variable([1.0, 2.0])
traces = []

@tf.function
def free(x):
    traces.append(1)
    return x * root.v

@tf.function(input_signature=[tf.TensorSpec([2])])
def pinned(x):
    with tf.device("/device:CPU:1"):
        inner = x + 1.0
    return inner * 2.0

root.free, root.pinned = free, pinned
x = tf.constant([3.0, 4.0])
with tf.device("CPU:1"):
    free(x)
with tf.device("CPU:0"):
    free(x)
free(x)
reference_impl.save(root, sys.argv[1])
out = {"traces": len(traces), "saved": len(root.free._list_all_concrete_functions())}

def where(load, device):
    loaded = load(sys.argv[1])
    with tf.device(device):
        result = loaded.free(x)
    return [result.device[-5:], loaded.v.device[-5:], result.numpy().tolist()]

out["called"] = {device: where(reference_impl.load, device) for device in ("CPU:0", "CPU:1")}
with tf.device("CPU:1"):
    loaded = reference_impl.load(sys.argv[1])
out["loaded in a scope"] = loaded.v.device[-5:]
out["pinned"] = [load(sys.argv[1]).pinned(x).numpy().tolist() for load in (reference_impl.load, tf.saved_model.load)]
print(json.dumps(out))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """What the program saw, and the model that it wrote."""
    directory = tmp_path_factory.mktemp("devices") / "m"
    done = fresh_tensorflow.run(_PROGRAM, directory)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout), directory


def devices(directory):
    """Function -> the devices that its nodes name; "" for the main graph."""
    graph = layout.read(directory).meta_graph(None).graph_def
    named = {"": {node.device for node in graph.node}}
    for function in graph.library.function:
        named[function.signature.name.removeprefix("__inference_")] = {
            node.device for node in function.node_def
        }
    return named


def test_DEV_01_a_trace_made_in_a_device_scope_names_no_device(run):
    """The trace was made under CPU:1.

    Only the save and restore ops of shipped TensorFlow name a device; ours do not.
    """
    named = {name: found for name, found in devices(run[1]).items() if "pinned" not in name}
    assert any("free" in name for name in named)
    assert set().union(*named.values()) == {""}


def test_DEV_02_a_call_in_a_device_scope_runs_there(run):
    called = run[0]["called"]
    assert {device: result[0] for device, result in called.items()} == {
        "CPU:0": "CPU:0",
        "CPU:1": "CPU:1",
    }
    assert {tuple(result[2]) for result in called.values()} == {(3.0, 8.0)}
    assert run[0]["loaded in a scope"] == "CPU:1"


def test_DEV_03_and_05_a_device_named_in_the_body_is_in_the_file(run):
    (found,) = [found for name, found in devices(run[1]).items() if name.startswith("pinned")]
    assert found == {"", "/device:CPU:1"}
    assert run[0]["pinned"] == [[8.0, 10.0]] * 2


def test_DEV_03_and_05_a_device_that_is_missing_here_is_no_obstacle(tf):
    """A TF 1.x model with nodes on GPU:0, where there is none: soft placement, in Python."""
    loaded = reference_impl.load(Path(__file__).parents[2] / "fixtures_v1" / "gpu_pinned" / "model")
    assert len(loaded.signatures) > 0
    for signature in loaded.signatures.values():
        specs = signature.structured_input_signature[1]
        given = {
            name: tf.ones([2 if size is None else size for size in spec.shape], spec.dtype)
            for name, spec in specs.items()
        }
        assert all(value.shape.rank is not None for value in signature(**given).values())


def test_DEV_04_one_trace_serves_all_devices(run):
    assert (run[0]["traces"], run[0]["saved"]) == (1, 1)
    objects = layout.read(run[1]).meta_graph(None).object_graph_def
    (free,) = [node.function for node in objects.nodes if node.HasField("function") and
               "free" in node.function.concrete_functions[0]]  # fmt: skip
    assert len(free.concrete_functions) == 1
