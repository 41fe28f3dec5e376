"""What `inspect` says of an export by the installed TensorFlow, against what TensorFlow says of
it.
"""

from pathlib import Path

import fresh_tensorflow
import pytest

from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container import layout
from reference_impl.views.model import inspect, restore_plan, signature_spec

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")
    fresh_tensorflow.printed(
        Path(__file__).parents[1] / "support" / "export_models.py", folder, "quick"
    )
    return folder / "first"


@pytest.fixture(scope="module")
def found(exported):
    info = inspect(exported)
    assert info.problems == ()
    return info.meta_graphs[0]


@pytest.fixture(scope="module")
def loaded(exported):
    import tensorflow as tf

    return tf.saved_model.load(str(exported))


def test_python_signatures(found):
    functions = {item.path: [trace.signature for trace in item.traces] for item in found.functions}
    assert functions["child.__call__"] == [
        "__call__(x: float32[1,3], training=False) -> float32[1,2]",
        "__call__(x: float32[2,3], training=True) -> float32[2,2]",
        "__call__(x: float32[2,3], training=False) -> float32[2,2]",
    ]
    assert functions["control"] == ["control(x: float32[?,3]) -> (float32[?,3], float32[?])"]
    assert functions["ragged"] == [
        "ragged(r: Ragged(int32[?,?])) -> (int32[?], Ragged(int32[?,?]))"
    ]
    (sparse,) = functions["sparse"]  # TensorFlow 2.12 does not keep the 4
    assert (
        sparse.replace("[?,?]", "[?,4]")
        == "sparse(s: Sparse(float32[?,4])) -> (float32[...], Sparse(float32[?,4]))"
    )
    assert set(functions["outer"]) == {
        "outer(x: float32[2,3], scale: float32[]) -> float32[2,2]",
        "outer(x: float32[2,3], float32[1], scale=2.0) -> float32[2,2]",
    }
    assert functions["untraced"] == []


def test_captures(found):
    captures = {
        item.path: {trace.bound_inputs for trace in item.traces} for item in found.functions
    }
    assert captures["child.__call__"] == captures["outer"] == {("child.w",)}
    assert captures["layers.1.__call__"] == {("layers.1.w",)}
    (embed,) = captures["embed"]
    assert embed[0::2] == ("table", "pairs", "mutable")


def test_signatures(exported, found, loaded):
    """The names and types with which TensorFlow's loader shows the signatures."""
    import tensorflow as tf

    spec = signature_spec(layout.read(exported).saved_model.meta_graphs[0])
    assert set(spec) == set(loaded.signatures) == {item.key for item in found.signatures}
    for key, function in loaded.signatures.items():
        shown = {
            name: (spec.dtype.name, spec.shape)
            for name, spec in function.structured_input_signature[1].items()
        }
        assert {
            name: (item["dtype"], tf.TensorShape(item["shape"]))
            for name, item in spec[key]["inputs"].items()
        } == shown
        for name, output in function.structured_outputs.items():
            parts = [item for item in spec[key]["outputs"] if item.split("/")[0] == name]
            assert len(parts) == len(tf.nest.flatten(output, expand_composites=True))


def test_objects(found, loaded):
    """Every variable that TensorFlow finds in the object, under the path it has in Python."""
    for variable in found.variables:
        value = loaded
        for name in variable.path.split("."):
            value = value[int(name)] if name.isdigit() else getattr(value, name)
        assert value.dtype.name == variable.dtype
        assert tuple(value.shape) == variable.shape
        assert value.trainable == variable.trainable
        assert value.numpy().nbytes == variable.size
    paths = {item.path: item for item in found.objects}
    assert paths["loop"].children[0].id == 0
    assert [child.id for child in paths[""].children if child.name == "alias"] == [
        paths["child"].id
    ]


def test_what_a_session_holds(exported):
    """The restore plan, checked in a session: every variable has the value of its checkpoint
    key.
    """
    import numpy as np
    import tensorflow as tf

    plan = restore_plan(layout.read(exported).saved_model.meta_graphs[0])
    read = {item.key: item.fetch for item in plan if item.fetch}
    with BundleReader(layout.read(exported).checkpoint_prefix) as reader:
        stored = {key: np.array(reader.read(key)) for key in read}
        assert {item.key for item in plan} == set(reader.keys()) - {"_CHECKPOINTABLE_OBJECT_GRAPH"}
    assert len(read) == 6
    assert {item.by for item in plan if not item.fetch} == {"LookupTableImportV2"}
    assert len({value.tobytes() for value in stored.values()}) == len(
        read
    )  # no two can be mistaken for each other
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.saved_model.load(session, ["serve"], str(exported))
        for key, value in session.run(read).items():
            np.testing.assert_array_equal(value, stored[key])


def test_ops(exported, found):
    """Counted by TensorFlow's own messages."""
    from tensorflow.core.protobuf import saved_model_pb2

    message = saved_model_pb2.SavedModel.FromString((exported / "saved_model.pb").read_bytes())
    graph = message.meta_graphs[0].graph_def
    counts = {}
    for node in [
        *graph.node,
        *[node for function in graph.library.function for node in function.node_def],
    ]:
        counts[node.op] = counts.get(node.op, 0) + 1
    assert {item.op: item.count for item in found.ops} == counts
    by_op = {item.op: item for item in found.ops}
    for op in ("Sin", "Cos", "Tan", "Exp", "Cumsum"):  # only in branches and bodies
        assert by_op[op].main_graph == 0
        assert by_op[op].reachable_from == ("control",)
    assert by_op["LookupTableFindV2"].reachable_from == ("serving_default",)
    gradient = [item for item in found.library if "internal_grad_fn" in item.name]
    assert gradient[0].reachable_from == ("control",)


def test_expected_keys_are_those_of_tensorflow(tmp_path):
    """Without a checkpoint the key is worked out from the path, in which dots and slashes are
    escaped.
    """
    import shutil

    import tensorflow as tf

    root = tf.Module()
    root.named = {"a/b.c": tf.Variable(1.0), "..": tf.Variable(2.0), "plain": [tf.Variable(3.0)]}
    tf.saved_model.save(root, str(tmp_path / "model"))
    with BundleReader(tmp_path / "model" / "variables" / "variables") as reader:
        keys = set(reader.keys()) - {"_CHECKPOINTABLE_OBJECT_GRAPH"}
    assert len(keys) == 3
    shutil.rmtree(tmp_path / "model" / "variables")
    assert {
        variable.key for variable in inspect(tmp_path / "model").meta_graphs[0].variables
    } == keys
