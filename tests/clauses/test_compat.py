"""Clauses about other readers and writers (COMPAT), read by genuine TF 1.15 where its environment
is on this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import recorded

import reference_impl
from compat_matrix.hosts.host import Host
from compat_matrix.runtimes import places, resolve
from compat_matrix.runtimes.runtime import Runtime
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def export(tf, tmp_path_factory):
    """Variables, an asset, tables of both kinds, control flow; moved away from where it was
    made.
    """
    folder = tmp_path_factory.mktemp("source")
    words = folder / "words.txt"
    words.write_text("ant\nbee\n")
    index = tf.lookup.TextFileIndex
    root = tf.Module()
    root.v = tf.Variable([1.0, 2.0], name="v")
    root.words = tf.saved_model.Asset(str(words))
    initializer = tf.lookup.TextFileInitializer(
        str(words), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
    )
    root.table = tf.lookup.StaticHashTable(initializer, -1)
    root.counts = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -5)
    root.counts.insert(tf.constant([0, 1], tf.int64), tf.constant([10, 11], tf.int64))
    root.dense = tf.lookup.experimental.DenseHashTable(
        tf.int64, tf.int64, -6, empty_key=-2, deleted_key=-3
    )
    root.dense.insert(tf.constant([1], tf.int64), tf.constant([21], tf.int64))

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def scale(x):
        value = root.v.read_value_no_copy() if hasattr(root.v, "read_value_no_copy") else root.v
        return {
            "y": x * value,
            "larger": tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * root.v, lambda: -x),
        }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def look(word):
        found = root.table.lookup(word)
        counts = {"count": root.counts.lookup(found), "dense": root.dense.lookup(tf.abs(found))}
        return {"id": found, **counts, "file": tf.io.read_file(root.words.asset_path)}

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def add(x):
        return {"v": root.v.assign_add(x)}

    root.scale, root.look, root.add = scale, look, add
    reference_impl.save(root, folder / "m", {"scale": scale, "look": look, "add": add})
    words.unlink()
    return Path(shutil.move(folder / "m", tmp_path_factory.mktemp("moved") / "m"))


def nodes(directory):
    graph = layout.read(directory).meta_graph(None).graph_def
    return [
        *graph.node,
        *(node for function in graph.library.function for node in function.node_def),
    ]


_TF1 = """
import json, sys, warnings
warnings.simplefilter("ignore")
import tensorflow as tf
v1 = tf.compat.v1
feeds = {"scale": {"x": [[3.0, 4.0]]}, "look": {"word": ["bee", "x"]}, "add": {"x": [10.0, 10.0]}}
out = {"version": tf.__version__}
with tf.Graph().as_default(), v1.Session() as session:
    meta_graph = v1.saved_model.loader.load(session, ["serve"], sys.argv[1])
    for key in ("scale", "look", "add", "scale"):
        signature = meta_graph.signature_def[key]
        fetches = {name: info.name for name, info in signature.outputs.items()}
        given = {signature.inputs[name].name: value for name, value in feeds[key].items()}
        found = session.run(fetches, given)
        out[key + ("_after" if key in out else "")] = {
            name: value.tolist() if hasattr(value, "tolist") else value.decode() for name, value in found.items()}
tf.compat.v1.enable_eager_execution()
loaded = tf.saved_model.load_v2(sys.argv[1])
out["v"] = loaded.v.numpy().tolist()
out["called"] = loaded.scale(tf.constant([[1.0, 1.0]]))["y"].numpy().tolist()
print(json.dumps(out))
"""


@pytest.fixture(scope="module")
def tf1():
    """The interpreter of the environment that the fixtures are made in."""
    try:
        return resolve.resolve("tf1.15").python
    except places.NotInstalled as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("generation", ["saved", "saved again"])
def test_COMPAT_04_tensorflow_1_15_runs_what_is_written(tf1, export, tmp_path, generation):
    """The v1 loader in a Session and `load_v2`."""
    if generation == "saved again":
        reference_impl.save(reference_impl.load(export), tmp_path / "m")
        export = tmp_path / "m"
    command = [str(tf1), "-c", _TF1, str(export)]
    environment = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "TF2_BEHAVIOR")
    }
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == {
        "version": "1.15.5",
        "scale": {"y": [[3.0, 8.0]], "larger": [[3.0, 8.0]]},
        "look": {"id": [1, -1], "count": [11, -5], "dense": [21, 21], "file": "ant\nbee\n"},
        "add": {"v": [11.0, 12.0]},
        "scale_after": {"y": [[33.0, 48.0]], "larger": [[33.0, 48.0]]},
        "v": [1.0, 2.0],
        "called": [[1.0, 2.0]],
    }


REEXPORTED = [
    "half_plus_two",
    "index_table_oov",
    "mutable_hash_table",
    "while_loop",
    "keras_functional_save",
    "string_ops",
]


def test_COMPAT_04_tensorflow_1_15_runs_its_own_models_after_a_re_export(tf1, tmp_path):
    """Reference variables, tables, loops and Keras layers went through our loading and saving: the
    recorded answers.
    """
    with Host(tmp_path / "host", {"tf1": Runtime("tf1", tf1, "1.15.5")}) as host:
        for fixture in REEXPORTED:
            reference_impl.save(reference_impl.load(recorded.model(fixture)), tmp_path / fixture)
            with host.model(
                host.worker("tf1", "v1_session_worker"),
                tmp_path / fixture,
                ["serve"],
                300.0,
                shared=False,
            ) as model:
                recorded.check(fixture, recorded.worker(model, tmp_path))


def test_COMPAT_04_nothing_is_written_that_only_newer_readers_know(tf, export):
    """The two that TF 2.21 adds by itself: an attribute without a meaning, an op that only saves a
    copy.
    """
    assert {"VarHandleOp", "ReadVariableOp"} <= {node.op for node in nodes(export)}
    assert not [
        node.name
        for node in nodes(export)
        if "debug_name" in node.attr or node.op == "DisableCopyOnRead"
    ]
    edges = [name for node in nodes(export) for name in node.input if "DisableCopyOnRead" in name]
    functions = layout.read(export).meta_graph(None).graph_def.library.function
    assert (
        edges
        + [
            name
            for function in functions
            for name in function.control_ret
            if "DisableCopyOnRead" in name
        ]
        == []
    )
    assert reference_impl.load(export).scale(tf.constant([[3.0, 4.0]]))["y"].numpy().tolist() == [
        [3.0, 8.0]
    ]


def test_COMPAT_04_hints_of_a_loaded_model_are_left_out_too(tf, tmp_path):
    root = tf.Module()
    root.v = tf.Variable(2.0)
    if not hasattr(root.v, "read_value_no_copy"):
        pytest.skip("this TensorFlow has no read without a copy")
    root.f = tf.function(
        lambda x: x * root.v.read_value_no_copy(), input_signature=[tf.TensorSpec([])]
    )
    tf.saved_model.save(root, str(tmp_path / "theirs"))
    assert [node for node in nodes(tmp_path / "theirs") if node.op == "DisableCopyOnRead"]
    for name, load in (("one", reference_impl.load), ("two", tf.saved_model.load)):
        reference_impl.save(load(str(tmp_path / "theirs")), tmp_path / name)
        assert not [
            node
            for node in nodes(tmp_path / name)
            if node.op == "DisableCopyOnRead" or "debug_name" in node.attr
        ]
        assert (
            float(
                tf.saved_model.load(str(tmp_path / name)).signatures["serving_default"](
                    tf.constant(3.0)
                )["output_0"]
            )
            == 6.0
        )


@pytest.mark.clause("GOAL-14", "DR-06")
@pytest.mark.parametrize(
    "fixture", ["simple_save", "hash_table_v2", "control_flow_v2", "string_ops", "conv_batch_norm"]
)
def test_COMPAT_02_models_of_tensorflow_1_are_imported_and_answer(tf, fixture):
    """All fixtures are rows of the matrix; here those that a session made, by their recorded
    answers.
    """
    recorded.check(fixture, recorded.asks(tf, reference_impl.load(recorded.model(fixture))))


@pytest.mark.parametrize(
    "fixture", ["estimator_linear_regressor", "estimator_dnn_classifier", "estimator_custom"]
)
def test_COMPAT_03_exports_of_estimators_answer(tf, fixture):
    """`tf.estimator` is gone since TF 2.16; what it exported is not."""
    loaded = reference_impl.load(recorded.model(fixture))
    assert {"predict", "serving_default"} & set(loaded.signatures)
    recorded.check(fixture, recorded.asks(tf, loaded))


@pytest.mark.clause("RP-10", "DR-04")
def test_COMPAT_06_a_session_sees_signatures_and_the_init_op_alone(tf, export):
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph, v1.Session() as session:
        meta_graph = v1.saved_model.loader.load(session, ["serve"], str(export))
        assert sorted(meta_graph.signature_def) == ["__saved_model_init_op", "add", "look", "scale"]
        assert meta_graph.HasField("object_graph_def")  # beside the fields that a session looks at
        called = {
            op.get_attr("f").name
            for op in graph.get_operations()
            if op.type.endswith("PartitionedCall")
        }
        library = {function.signature.name for function in graph.as_graph_def().library.function}
        assert called < library
        found = session.run(
            meta_graph.signature_def["look"].outputs["count"].name, {"look_word:0": [b"bee", b"x"]}
        )
        assert found.tolist() == [11, -5]
