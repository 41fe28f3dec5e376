"""Ops that lost their kernels: replaced by core ops, and the old model answers in a release that
has the kernels.
"""

from __future__ import annotations

import json

import model_edits as edits
import numpy as np
import pytest
from click.testing import CliRunner

from reference_impl.format import schema
from reference_impl.format.container import layout
from reference_impl.format.values.tensor_proto import encode
from reference_impl.graph.node_defs import set_constant
from reference_impl.graph.references import all_nodes
from savedmodel_common.exit_codes import ExitCode
from savedmodel_compat import cli
from savedmodel_migration.migrate import lost_kernels

OLD = "2.8"  # the last release with a kernel of BoostedTreesBucketize
CONTRIB = "1.15"  # the last release with tensorflow.contrib
TINY = np.float32(1e-45)  # a subnormal number
BOUNDARIES = {
    "plain": [-1.5, 0.0, 1.0, 2.0],
    "with equal ones": [0.0, 0.0, 1.0, 1.0],
    "of infinities": [-np.inf, -1.0, np.inf],
    "subnormal": [-TINY, 0.0, TINY],
    "one": [0.5],
    "none": [],
}


def values():
    random = np.random.default_rng(7)
    exact = np.concatenate([np.float32(item) for item in BOUNDARIES.values()])
    near = [np.nextafter(exact, np.float32(side), dtype=np.float32) for side in (-np.inf, np.inf)]
    odd = np.float32([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 3.4e38, -3.4e38])
    return np.concatenate([exact, *near, odd, random.normal(scale=2, size=500).astype(np.float32)])


def computed_with(x, limits):
    """Return which numbers TensorFlow compares with the limits as they are: it takes subnormal
    numbers for 0.
    """
    odd = [(np.abs(numbers) < 1e-37) & (numbers != 0) for numbers in (x, limits)]
    return np.isnan(x) | ~(odd[0] | odd[1].any())


def save(folder, in_function):
    """Save a model of TF 1.x with one op for all of BOUNDARIES; in a function, if wanted."""
    import tensorflow as tf

    v1 = tf.compat.v1
    limits = [np.float32(item) for item in BOUNDARIES.values()]

    def bucketized(x):
        return tf.raw_ops.BoostedTreesBucketize(
            float_values=[x] * len(limits), bucket_boundaries=limits
        )

    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None], name="x")
        found = tf.function(bucketized)(x) if in_function else bucketized(x)
        outputs = {f"buckets_{number}": buckets for number, buckets in enumerate(found)}
        builder = v1.saved_model.Builder(str(folder))
        signature = v1.saved_model.predict_signature_def({"x": x}, outputs)
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
        builder.save()


def save_of_contrib(folder, dtype=np.float32):
    """Save a model with an op of tensorflow.contrib, built by hand: the installed TensorFlow does
    not have the op.
    """
    message = schema.SavedModel(saved_model_schema_version=1)
    graph = message.meta_graphs.add()
    graph.meta_info_def.tags.append("serve")
    number = schema.DataType.Value(
        {"float32": "DT_FLOAT", "float64": "DT_DOUBLE", "int64": "DT_INT64"}[np.dtype(dtype).name]
    )
    signature = graph.signature_def["serving_default"]
    signature.method_name = "tensorflow/serving/predict"
    signature.inputs["x"].name, signature.inputs["x"].dtype = "x:0", number
    x = graph.graph_def.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = number
    for shape in (x.attr["shape"].shape, signature.inputs["x"].tensor_shape):
        for size in (-1, 2):
            shape.dim.add(size=size)
    for place, boundaries in enumerate(BOUNDARIES.values()):
        limits = graph.graph_def.node.add(name=f"limits_{place}", op="Const")
        set_constant(limits, encode(np.float32(boundaries)))
        node = graph.graph_def.node.add(name=f"buckets_{place}", op="BucketizeWithInputBoundaries")
        node.input.extend(["x", limits.name])
        node.attr["T"].type = number
        output = signature.outputs[f"buckets_{place}"]
        output.name, output.dtype = f"{node.name}:0", schema.DT_INT32
        output.tensor_shape.CopyFrom(signature.inputs["x"].tensor_shape)
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(message.SerializeToString())


def answers(model, x):
    """Return what a session of the installed TensorFlow answers."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        signature = v1.saved_model.load(session, ["serve"], str(model)).signature_def[
            "serving_default"
        ]
        wanted = {name: info.name for name, info in signature.outputs.items()}
        return session.run(wanted, {signature.inputs["x"].name: x})


@pytest.mark.tensorflow
@pytest.mark.parametrize("in_function", [False, True])
def test_the_buckets_are_exactly_those_of_the_lost_kernel(tmp_path, in_function):
    """The kernel was std::lower_bound, with the index of the last boundary as limit."""
    save(tmp_path / "old", in_function)
    new, told = lost_kernels.convertible(tmp_path / "old", tmp_path / "new")
    assert new == tmp_path / "new" and "1 x BoostedTreesBucketize" in told[0] and len(told) == 1
    x = values()
    got = answers(new, x)
    for number, boundaries in enumerate(BOUNDARIES.values()):
        limits = np.float32(boundaries)
        below = (limits[None, :] < x[:, None]).sum(axis=1)  # 0 for NaN
        expected = np.clip(below, 0, max(len(limits) - 1, 0))
        normal = computed_with(x, limits)
        np.testing.assert_array_equal(got[f"buckets_{number}"][normal], expected[normal])


@pytest.mark.tensorflow
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_the_buckets_are_exactly_those_of_the_op_of_contrib(tmp_path, dtype):
    """The kernel was std::upper_bound, of the boundaries in the dtype of the values."""
    save_of_contrib(tmp_path / "old", dtype)
    new, told = lost_kernels.convertible(tmp_path / "old", tmp_path / "new")
    assert len(told) == 1 and told[0].startswith("6 x BucketizeWithInputBoundaries ")
    given = values()[: len(values()) // 2 * 2]
    x = (
        np.nan_to_num(given, posinf=9, neginf=-9).clip(-9, 9)
        if np.dtype(dtype).kind == "i"
        else given
    )
    x = x.astype(dtype).reshape(-1, 2)
    got = answers(new, x)
    for number, (name, boundaries) in enumerate(BOUNDARIES.items()):
        if name == "of infinities" and np.dtype(dtype).kind == "i":
            continue  # no integer holds them
        limits = np.float32(boundaries).astype(dtype)
        expected = len(limits) - (x[..., None] < limits).sum(axis=-1)  # all of them for NaN
        normal = computed_with(x, limits)
        np.testing.assert_array_equal(
            got[f"buckets_{number}"][normal], expected[normal], err_msg=name
        )


def test_a_model_without_such_ops_is_taken_as_it_is():
    message = schema.SavedModel()
    message.meta_graphs.add().graph_def.node.add(name="x", op="Placeholder")
    assert lost_kernels.rewritten(message) == (None, [])


def test_users_of_its_outputs_and_control_inputs_stay():
    message = schema.SavedModel()
    graph = message.meta_graphs.add().graph_def
    node = graph.node.add(name="b", op="BoostedTreesBucketize", device="/device:CPU:0")
    node.input.extend(["v", "w", "limits", "more", "^first"])
    node.attr["num_features"].i = 2
    graph.node.add(name="user", op="Identity").input.append("b:1")
    copy, _ = lost_kernels.rewritten(message)
    nodes = {node.name: node for node in copy.meta_graphs[0].graph_def.node}
    assert list(nodes["user"].input) == ["b:1"]
    assert (nodes["b"].op, nodes["b"].input[-1], len(nodes["b"].attr["T"].list.type)) == (
        "IdentityN",
        "^first",
        2,
    )
    added = [node for name, node in nodes.items() if name.startswith("b/") and node.op != "Const"]
    assert all(node.device == "/device:CPU:0" and "^first" in node.input for node in added)


def release(name):
    """Return a runtime; without it the test is skipped."""
    from compat_matrix.runtimes.places import NotInstalled
    from compat_matrix.runtimes.resolve import resolve

    try:
        return resolve(name)
    except NotInstalled as error:
        pytest.skip(f"the old model answers in another release: {error}")


def migrate(*arguments):
    done = CliRunner().invoke(cli.main, ["migrate", *map(str, arguments), "--json"])
    assert done.stdout.startswith("{"), done.output
    return {model["relative"]: model for model in json.loads(done.stdout)["models"]}


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", [OLD, CONTRIB])
def test_the_old_model_answers_in_the_release_and_the_new_one_here(tmp_path, name):
    """The requests that lie beside the model ask for the values that a rewrite gets wrong first."""
    from savedmodel_common import tensors

    able = release(name)
    if name == OLD:
        save(tmp_path / "zoo/old/model", False)
    else:
        save_of_contrib(tmp_path / "zoo/old/model")
    io = tmp_path / "zoo/old/io"
    io.mkdir()
    tensors.save(
        io / "x.npz",
        {
            "x": tensors.from_numpy(
                values() if name == OLD else values()[:200].reshape(-1, 2), "float32"
            )
        },
    )
    request = {
        "id": "edges",
        "kind": "signature",
        "signature": "serving_default",
        "tags": ["serve"],
        "inputs": "x.npz",
    }
    document = {
        "schema": 1,
        "stateful": False,
        "tolerance": None,
        "requests": [{**request, "outputs": None}],
    }
    (io / "io.json").write_text(json.dumps(document), encoding="utf-8")
    # The release is installed, and not asked: nobody named it.
    (before,) = migrate(tmp_path / "zoo", "--out", tmp_path / "out").values()
    assert (
        before["status"] in ("unproved", "refused")
        and f"--runtime tf{name} --out" in before["command"]
    ), before
    asked = migrate(tmp_path / "zoo", "--out", tmp_path / "out", "--runtime", f"tf{name}")
    (model,) = asked.values()
    assert model["status"] == "migrated", model
    (part,) = model["parts"]
    assert part["answered_by"] == able.tensorflow_version
    assert {item["what"]: item["state"] for item in part["verdicts"]}["answers, tf2"] == "equal"
    assert (model["command"], part["needs"]) == ("", [])
    new = tmp_path / "out/models" / model["relative"]
    (graph,) = layout.read(new).saved_model.meta_graphs
    assert not lost_kernels.REWRITES.keys() & {node.op for node in all_nodes(graph.graph_def)}


@pytest.mark.tensorflow
def test_a_release_that_does_not_answer_either_is_named(tmp_path, monkeypatch):
    """--runtime asks the release that is named, whatever the op history says of it."""
    import dataclasses

    from compat_matrix.runtimes.runtime import local_runtime
    from savedmodel_migration.migrate import elsewhere

    save(tmp_path / "zoo/old/model", False)
    here = dataclasses.replace(local_runtime(), name="other")
    monkeypatch.setattr(elsewhere, "resolve", lambda spec: here)
    monkeypatch.setattr("compat_matrix.runtimes.resolve.resolve", lambda spec: here)
    (model,) = migrate(tmp_path / "zoo", "--out", tmp_path / "out", "--runtime", "2.8").values()
    assert model["status"] == "unproved"
    said = (
        f"TensorFlow {here.tensorflow_version} does not answer for the old model either: signature"
        " 'serving_default'"
    )
    assert any(note.startswith(said) for note in model["parts"][0]["notes"]), model["parts"][0][
        "notes"
    ]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--runtime", "2.8", "--to", "keras"), "--runtime is about --to tf2"),
        (("--runtime", "numpy==2.0"), "installs no TensorFlow"),
    ],
)
def test_what_with_refuses(tmp_path, arguments, words):
    model = str(edits.fixture("half_plus_two"))
    done = CliRunner().invoke(
        cli.main, ["migrate", model, "--out", str(tmp_path / "out"), *arguments]
    )
    assert done.exit_code == ExitCode.USAGE and words in done.output, done.output
