"""Clauses about the messages on disk (FMT) and what another program can do with them (DR-01); bytes
follow shipped TensorFlow.
"""

from __future__ import annotations

import collections
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import reference_impl
from reference_impl import errors
from reference_impl.format import schema
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow

ROOT = Path(__file__).parents[2]
READERS = ("reference", "tensorflow")
Point = collections.namedtuple("Point", ["x", "y"])


def load(tf, directory, reader):
    return (
        reference_impl.load(directory)
        if reader == "reference"
        else tf.saved_model.load(str(directory))
    )


@pytest.fixture(scope="module")
def model(tf, tmp_path_factory):
    """All kinds of nodes of the object graph, and arguments of all kinds."""
    file = tmp_path_factory.mktemp("source") / "words.txt"
    file.write_text("ant\n")
    root = tf.Module()
    root.v = tf.Variable(
        [1.0, 2.0], name="weights", trainable=False, aggregation=tf.VariableAggregation.MEAN
    )
    root.part = tf.Module()
    root.part.w = tf.Variable(3, shape=tf.TensorShape(None), dtype=tf.int64)
    root.parts = [root.part, {"v": root.v}]
    root.file = tf.saved_model.Asset(str(file))
    root.counts = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -5)
    constant = tf.constant([10.0, 20.0])

    @tf.custom_gradient
    def scaled(x):
        return x * 2.0, lambda dy: dy * 100.0 * tf.reduce_sum(x)

    @tf.function
    def f(x, scale=1.0, *more, mode="add", **options):
        y = scaled(x) * scale + constant + root.v
        return {"point": Point(y, [x, (y,)]), "more": list(more), "none": None}

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64)])
    def count(key):
        return root.counts.lookup(key)

    x = tf.constant([1.0, 1.0])
    f(x)
    f(x, 3.0, mode=None)
    f(Point(x, x).x, 2, tf.constant(1), mode="add", extra=(True, tf.float32))
    root.f, root.again, root.count = f, f, count
    root.concrete = count.get_concrete_function()
    return root


@pytest.fixture(scope="module")
def export(model, tmp_path_factory):
    directory = tmp_path_factory.mktemp("export") / "m"
    reference_impl.save(model, directory, {"count": model.count})
    return directory


@pytest.fixture(scope="module")
def graph(export):
    return layout.read(export).meta_graph(None)


def node_at(graph, *names):
    """The number and message of an object, by its path from the root."""
    number = 0
    for name in names:
        (number,) = [
            c.node_id for c in graph.object_graph_def.nodes[number].children if c.local_name == name
        ]
    return number, graph.object_graph_def.nodes[number]


def test_FMT_01_a_graph_of_objects_stands_beside_that_of_the_checkpoint(tf, export, graph):
    """Of the RFC's extended checkpoint graph came two: SavedObjectGraph in the MetaGraph,
    TrackableObjectGraph in the bundle.
    """
    kinds = {node.WhichOneof("kind") for node in graph.object_graph_def.nodes}
    assert kinds == {
        "user_object",
        "variable",
        "function",
        "bare_concrete_function",
        "asset",
        "constant",
        "resource",
        "captured_tensor",
    }
    identifiers = {
        node.user_object.identifier
        for node in graph.object_graph_def.nodes
        if node.HasField("user_object")
    }
    assert identifiers == {
        "_generic_user_object",
        "trackable_list_wrapper",
        "trackable_dict_wrapper",
        "signature_map",
    }
    stored = tf.train.load_checkpoint(str(export / "variables" / "variables")).get_tensor(
        "_CHECKPOINTABLE_OBJECT_GRAPH"
    )
    tracked = schema.parse(schema.TrackableObjectGraph, stored)
    here = {child.local_name for child in tracked.nodes[0].children}
    assert here == {"v", "part", "parts", "file", "counts"} | (
        here & {"f", "again", "count", "concrete", "signatures"}
    )


def test_FMT_02_functions_are_shared_nodes_with_a_child_per_trace(graph):
    number, node = node_at(graph, "f")
    assert node_at(graph, "again")[0] == number  # one function under two names
    assert [child.local_name for child in node.children] == ["trace_0", "trace_1", "trace_2"]
    for child, name in zip(node.children, node.function.concrete_functions):
        bare = graph.object_graph_def.nodes[child.node_id].bare_concrete_function
        assert bare.concrete_function_name == name
    assert node_at(graph, "concrete")[0] == node_at(graph, "count", "trace_0")[0]


def test_FMT_03_a_function_lists_concrete_functions_each_with_a_function_def(graph):
    _, node = node_at(graph, "f")
    library = {function.signature.name: function for function in graph.graph_def.library.function}
    assert node.function.HasField("function_spec")
    assert len(set(node.function.concrete_functions)) == 3
    for name in node.function.concrete_functions:
        saved = graph.object_graph_def.concrete_functions[name]
        flat = len(library[name].signature.input_arg)
        assert len(saved.bound_inputs) < flat and saved.HasField("canonicalized_input_signature")
        bound = [
            graph.object_graph_def.nodes[number].WhichOneof("kind") for number in saved.bound_inputs
        ]
        assert sorted(set(bound)) == ["constant", "variable"]
        assert saved.HasField("output_signature")


def test_FMT_03_early_releases_list_only_the_arguments_that_were_declared(tf, tmp_path):
    """TensorFlow 2.4 leaves defaults out, and then does not find the trace again."""
    root = tf.Module()
    root.f = tf.function(
        lambda x, factor=2.0, sign=-1.0: x * factor * sign, input_signature=[tf.TensorSpec([])]
    )
    tf.saved_model.save(root, str(tmp_path))
    saved_model = layout.read(tmp_path).saved_model
    for function in saved_model.meta_graphs[0].object_graph_def.concrete_functions.values():
        values = function.canonicalized_input_signature.tuple_value.values[0].tuple_value.values
        del values[1:]
    (tmp_path / "saved_model.pb").write_bytes(saved_model.SerializeToString())
    loaded = reference_impl.load(tmp_path)
    assert loaded.f(3.0).numpy() == loaded.f(x=3.0, sign=-1.0).numpy() == -6.0
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded.f(3.0, 4.0)


def test_FMT_04_nothing_is_pickled(tf, model, export, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("pickled")

    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    reference_impl.save(model, tmp_path / "m", {"count": model.count})
    loaded = reference_impl.load(tmp_path / "m")
    assert loaded.f(tf.constant([1.0, 1.0]))["point"].x.numpy().tolist() == [13.0, 24.0]
    content = (tmp_path / "m" / "saved_model.pb").read_bytes()
    assert not [
        mark
        for mark in (b"\x80\x02c", b"\x80\x03c", b"\x80\x04\x95", b"\x80\x05\x95")
        if mark in content
    ]


@pytest.mark.parametrize("reader", READERS)
def test_FMT_05_arguments_and_results_are_nests_and_literals_choose(tf, model, export, reader):
    loaded = load(tf, export, reader)
    x = tf.constant([1.0, 1.0])
    calls = [
        ((x,), {}),
        ((x, 3.0), {"mode": None}),
        ((x, 2, tf.constant(7)), {"extra": (True, tf.float32)}),
    ]
    for args, kwargs in calls:
        got, wanted = loaded.f(*args, **kwargs), model.f(*args, **kwargs)
        assert set(got) == set(wanted) and type(got["point"]).__name__ == "Point"
        assert got["point"]._fields == ("x", "y")
        assert got["point"].x.numpy().tolist() == wanted["point"].x.numpy().tolist()
        assert [t.numpy().tolist() for t in got["more"]] == [
            t.numpy().tolist() for t in wanted["more"]
        ]
    for args, kwargs in (
        ((x, 4.0), {}),
        ((x, 3.0), {"mode": "other"}),
        ((x,), {"extra": (False, tf.float32)}),
    ):
        with pytest.raises(ValueError, match="Could not find matching concrete function"):
            loaded.f(*args, **kwargs)


def test_FMT_06_and_07_and_08_the_saver_points_at_calls_of_functions(graph):
    """The RFC's two new fields never came: the names of the functions are those that the call ops
    of the old ones name.
    """
    saver = graph.saver_def
    assert {field.name for field, _ in saver.ListFields()} == {
        "filename_tensor_name", "save_tensor_name", "restore_op_name", "version",
    }  # fmt: skip
    nodes = {node.name: node for node in graph.graph_def.node}
    library = {function.signature.name for function in graph.graph_def.library.function}
    for name, mark in (
        (saver.save_tensor_name, "traced_save"),
        (saver.restore_op_name, "traced_restore"),
    ):
        call = nodes[name.partition(":")[0]]
        assert call.op == "StatefulPartitionedCall"
        assert call.attr["f"].func.name in library and mark in call.attr["f"].func.name
    assert nodes[saver.filename_tensor_name.partition(":")[0]].op == "Placeholder"


def test_FMT_09_only_what_is_no_variable_has_functions_of_its_own(graph):
    for node in graph.object_graph_def.nodes:
        assert bool(node.saveable_objects) == (node.WhichOneof("kind") == "resource")
    _, counts = node_at(graph, "counts")
    for pair in counts.saveable_objects.values():
        for number in (pair.save_function, pair.restore_function):
            assert graph.object_graph_def.nodes[number].WhichOneof("kind") in (
                "function",
                "bare_concrete_function",
            )


@pytest.mark.parametrize("reader", READERS)
def test_FMT_11_parts_of_a_loaded_object_are_saved(tf, export, tmp_path, reader):
    """A list too, which shipped TensorFlow writes so that it cannot read it."""
    loaded = reference_impl.load(export)
    for name, root in (("child", loaded.part), ("list", loaded.parts), ("variable", loaded.v)):
        reference_impl.save(root, tmp_path / name)
    assert int(load(tf, tmp_path / "child", reader).w) == 3
    assert load(tf, tmp_path / "list", reader)[1]["v"].numpy().tolist() == [1.0, 2.0]
    assert load(tf, tmp_path / "variable", reader).numpy().tolist() == [1.0, 2.0]
    scaled = tf.function(lambda x: x * loaded.v, input_signature=[tf.TensorSpec([])])
    reference_impl.save(loaded.parts[1], tmp_path / "dict", scaled)
    mapping = reference_impl.load(tmp_path / "dict")
    assert list(mapping) == ["v"] and list(mapping.signatures) == ["serving_default"]
    with pytest.raises(
        errors.NotTrackableError,
        match=r"tf\.function .*API-02",
    ):
        reference_impl.save(loaded.f, tmp_path / "function")


def test_FMT_12_variables_are_messages_of_the_object_graph_and_no_collections(tf, graph):
    _, node = node_at(graph, "v")
    variable = node.variable
    assert (variable.name, variable.dtype, variable.trainable) == (
        "weights",
        schema.DT_FLOAT,
        False,
    )
    assert variable.aggregation == tf.VariableAggregation.MEAN.value
    assert [dim.size for dim in variable.shape.dim] == [2]
    assert node_at(graph, "part", "w")[1].variable.shape.unknown_rank
    assert list(graph.collection_def) == ["saved_model_main_op"]


def test_FMT_13_an_asset_is_one_definition_of_the_old_kind(export, graph):
    (definition,) = graph.asset_file_def
    assert {field.name for field, _ in definition.ListFields()} == {"tensor_info", "filename"}
    assert definition.filename == "words.txt" and (export / "assets" / "words.txt").is_file()
    assert node_at(graph, "file")[1].asset.asset_file_def_index == 0


@pytest.mark.parametrize("reader", READERS)
def test_FMT_14_the_library_carries_gradient_functions(tf, export, graph, tmp_path, reader):
    """100 in place of 2, also after a re-export; shipped TensorFlow reads them in a process that
    never saw the Python code.
    """
    registered = graph.graph_def.library.registered_gradients
    library = {function.signature.name for function in graph.graph_def.library.function}
    assert registered and {item.gradient_func for item in registered} <= library
    reference_impl.save(reference_impl.load(export), tmp_path / "again")
    for directory in (export, tmp_path / "again"):
        loaded = load(tf, directory, reader)
        x = tf.constant([1.0, 1.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = loaded.f(x)["point"].x
        assert tape.gradient(y, x).numpy().tolist() == [200.0, 200.0]


_OTHER_LANGUAGE = """
import json, sys
for name in ("tensorflow", "keras", "tf_keras"):
    sys.modules[name] = None  # importing them fails
import reference_impl
info = reference_impl.inspect(sys.argv[1])
print(json.dumps(info.to_json()))
"""


def test_DR_01_the_object_graph_is_read_without_tensorflow(export):
    """By plain messages: functions with the names and values of their arguments, structures, named
    tuples included.
    """
    command = [sys.executable, "-c", _OTHER_LANGUAGE, str(export)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    (meta_graph,) = json.loads(done.stdout)["meta_graphs"]
    objects = {item["path"]: item for item in meta_graph["objects"]}
    assert (
        objects["v"]["details"]["name"] == "weights"
        and objects["v"]["details"]["aggregation"] == "MEAN"
    )
    assert objects["parts"]["details"]["identifier"] == "trackable_list_wrapper"
    (f,) = [item for item in meta_graph["functions"] if item["path"] == "f"]
    calls = [trace["signature"].partition(" -> ") for trace in f["traces"]]
    assert [call for call, _, _ in calls] == [
        "f(x: float32[2], scale=1.0, mode='add')",
        "f(x: float32[2], scale=3.0, mode=None)",
        "f(x: float32[2], scale=2, int32[], extra=(True, float32), mode='add')",
    ]
    assert all(
        "'point': Point(x=float32[2], y=[float32[2], (float32[2],)])" in results
        for _, _, results in calls
    )
