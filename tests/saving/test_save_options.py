"""Options of `reference_impl.save`, ours and those of `tf.saved_model.SaveOptions`: each does what
it says.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tracemalloc
from pathlib import Path

import fresh_tensorflow
import numpy as np
import pytest

import reference_impl
from reference_impl import errors
from reference_impl.errors import FileAccessError
from reference_impl.format import limits
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def ours(tf):
    from reference_impl.saving.options import SaveOptions

    return SaveOptions


def make_model(tf):
    """Two variables, and a function that checks and prints."""
    root = tf.Module()
    root.v = tf.Variable(np.arange(12, dtype=np.float32).reshape(4, 3), name="v")
    root.names = tf.Variable(["a", "bcd"])

    @tf.function(input_signature=[tf.TensorSpec([3], tf.float32, "x")])
    def f(x):
        tf.raw_ops.Assert(condition=tf.reduce_all(x > 0.0), data=[x])
        tf.print("called with", x)
        return tf.debugging.check_numerics(x, "bad") * root.v

    root.f = f
    return root


@pytest.fixture(scope="module")
def model(tf):
    return make_model(tf)


def nodes(path):
    graph = layout.read(path).meta_graph(None).graph_def
    return [
        *graph.node,
        *(node for function in graph.library.function for node in function.node_def),
    ]


def session_answer(tf, path, x):
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        signature = v1.saved_model.loader.load(session, ["serve"], str(path)).signature_def[
            "serving_default"
        ]
        return session.run(signature.outputs["output_0"].name, {signature.inputs["x"].name: x})


def test_every_option_of_tensorflow_is_known(tf):
    from reference_impl.saving import options

    refused = {"experimental_image_format"}  # by TensorFlow too, in every release
    assert set(options._THEIRS) | refused >= set(tf.saved_model.SaveOptions.__slots__)


def test_what_has_no_meaning_is_refused(ours, model, tmp_path):
    wrong = {
        "variable_policy": "all",
        "io_device": "/job:worker",
        "max_shard_bytes": 0,
        "extra_tags": "gpu",
        "namespaces": "Ns",
    }
    for name, value in wrong.items():
        with pytest.raises(errors.SaveError, match=rf"options\.{name}"):
            reference_impl.save(model, tmp_path / "m", options=ours(**{name: value}))
        with pytest.raises(errors.OptionError, match=rf"options\.{name}"):
            ours(**{name: value})  # at once, as LoadOptions does
    assert list(tmp_path.iterdir()) == []


def option_of_tensorflow(tf, name):
    if name not in tf.saved_model.SaveOptions.__slots__:
        pytest.skip(f"SaveOptions of TensorFlow {tf.__version__} has no {name}")
    return tf.saved_model.SaveOptions(**{name: True})


def test_debug_ops_are_stripped(tf, model, tmp_path):
    options = option_of_tensorflow(tf, "experimental_debug_stripper")
    reference_impl.save(model, tmp_path / "m", options=options)
    assert not {node.op for node in nodes(tmp_path / "m")} & {
        "Assert",
        "PrintV2",
        "CheckNumerics",
        "Print",
    }
    x = np.array([-1.0, np.nan, 1.0], np.float32)
    for load in (reference_impl.load, tf.saved_model.load):
        loaded = load(str(tmp_path / "m"))
        np.testing.assert_array_equal(loaded.f(x).numpy(), x * loaded.v.numpy())
    np.testing.assert_array_equal(session_answer(tf, tmp_path / "m", x), x * model.v.numpy())
    reference_impl.save(model, tmp_path / "kept")
    with pytest.raises(tf.errors.InvalidArgumentError):
        reference_impl.load(tmp_path / "kept").f(x)


def test_ops_of_unknown_namespaces_are_refused(tf, ours, tmp_path):
    root = tf.Module()
    root.f = tf.function(lambda x: tf.sin(x) + 1.0, input_signature=[tf.TensorSpec([], tf.float32)])
    reference_impl.save(root, tmp_path / "plain")
    message = layout.read(tmp_path / "plain").saved_model
    for function in message.meta_graphs[0].graph_def.library.function:
        for node in function.node_def:
            node.op = "Acme>Sin" if node.op == "Sin" else node.op
    (tmp_path / "plain" / "saved_model.pb").write_bytes(message.SerializeToString())
    loaded = reference_impl.load(tmp_path / "plain")
    for allowed in ([], ["Other"]):
        with pytest.raises(errors.SaveError, match=r"Acme>Sin \(node 'Sin' of __inference_\S*\)"):
            reference_impl.save(
                loaded,
                tmp_path / "m",
                options=tf.saved_model.SaveOptions(namespace_whitelist=allowed),
            )
    assert not (tmp_path / "m").exists()
    for chosen in (ours(namespaces=["Acme"]), None):
        reference_impl.save(loaded, tmp_path / "m", options=chosen)
        assert "Acme>Sin" in {node.op for node in nodes(tmp_path / "m")}


def test_debug_info_names_the_lines_of_nodes(tf, model, tmp_path):
    reference_impl.save(
        model, tmp_path / "m", options=tf.saved_model.SaveOptions(save_debug_info=True)
    )
    info = tf.saved_model.load(str(tmp_path / "m")).graph_debug_info
    (mul,) = (trace for key, trace in info.traces.items() if key.startswith("mul@"))
    frame = mul.file_line_cols[0]
    assert Path(info.files[frame.file_index]).name == Path(__file__).name
    stored = layout.read(tmp_path / "m").debug_info
    (mul,) = (trace for key, trace in stored.traces.items() if key.startswith("mul@__inference_f"))
    assert mul.file_line_cols[0].code == 'return tf.debugging.check_numerics(x, "bad") * root.v'
    functions = {
        function.signature.name
        for function in layout.read(tmp_path / "m").meta_graph(None).graph_def.library.function
    }
    assert {key.partition("@")[2] for key in stored.traces} <= functions
    reference_impl.save(model, tmp_path / "without")
    assert not (tmp_path / "without" / "debug").exists()


def test_without_a_saver_only_python_loads_the_values(tf, model, tmp_path):
    reference_impl.save(
        model, tmp_path / "m", options=option_of_tensorflow(tf, "experimental_skip_saver")
    )
    meta_graph = layout.read(tmp_path / "m").meta_graph(None)
    assert not meta_graph.HasField("saver_def") and not {
        node.op for node in nodes(tmp_path / "m")
    } & {"SaveV2", "RestoreV2"}
    assert meta_graph.signature_def["serving_default"].inputs["x"].name
    for load in (reference_impl.load, tf.saved_model.load):
        np.testing.assert_array_equal(load(str(tmp_path / "m")).v.numpy(), model.v.numpy())


def data_files(path):
    return sorted(file.stat().st_size for file in (path / "variables").glob("*.data-*"))


def test_the_checkpoint_can_have_several_data_files(tf, ours, model, tmp_path):
    reference_impl.save(model, tmp_path / "m", options=ours(max_shard_bytes=48))
    sizes = data_files(tmp_path / "m")
    assert len(sizes) == 3 and 48 in sizes
    for load in (reference_impl.load, tf.saved_model.load):
        np.testing.assert_array_equal(load(str(tmp_path / "m")).v.numpy(), model.v.numpy())
    np.testing.assert_array_equal(
        session_answer(tf, tmp_path / "m", np.ones(3, np.float32)), model.v.numpy()
    )


def test_a_data_file_may_be_as_large_as_was_said(tf, ours, tmp_path):
    root = tf.Module()
    root.a, root.b, root.c = (
        tf.Variable(np.ones(4, np.float32)),
        tf.Variable(np.ones(4, np.float32)),
        tf.Variable(1.0),
    )
    reference_impl.save(root, tmp_path / "m", options=ours(max_shard_bytes=32))
    assert 32 in data_files(tmp_path / "m")


def test_parameter_servers_have_data_files_of_their_own(tf, tmp_path):
    """As `tf.saved_model.save` writes them: the callback is asked once for each task."""
    if not hasattr(tf.train.experimental, "ShardByTaskPolicy"):
        pytest.skip("this TensorFlow has no sharding callbacks")
    script = Path(__file__).parents[1] / "support" / "parameter_servers.py"
    found = json.loads(fresh_tensorflow.printed(script, tmp_path))
    assert found["ours"] == found["theirs"] and len(found["ours"]["files"]) == 4
    assert found["answers"] == [[10.0, 20.0, 30.0]] * 2


def test_a_sharding_callback_decides_about_data_files(tf, tmp_path):
    experimental = tf.train.experimental
    if not hasattr(experimental, "MaxShardSizePolicy"):
        pytest.skip("this TensorFlow has no sharding callbacks")
    model = make_model(tf)
    model.empty = tf.Variable(np.zeros([0, 2], np.int32))

    class Wrong(experimental.ShardingCallback):
        description = "drops half of it"

        def __call__(self, tensors):
            return [
                {
                    tensor.checkpoint_key: {tensor.slice_spec: tensor.tensor}
                    for tensor in tensors[::2]
                }
            ]

    for policy, files in (
        (experimental.MaxShardSizePolicy(24), 3),
        (experimental.ShardByTaskPolicy(), 1),
    ):
        options = tf.saved_model.SaveOptions(experimental_sharding_callback=policy)
        reference_impl.save(model, tmp_path / "m", options=options)
        assert len(data_files(tmp_path / "m")) == files
        for load in (reference_impl.load, tf.saved_model.load):
            loaded = load(str(tmp_path / "m"))
            np.testing.assert_array_equal(loaded.v.numpy(), model.v.numpy())
            assert loaded.names.numpy().tolist() == [b"a", b"bcd"] and loaded.empty.shape == [0, 2]
    with pytest.raises(errors.SaveError, match=r"names/"):
        reference_impl.save(
            model,
            tmp_path / "m",
            options=tf.saved_model.SaveOptions(experimental_sharding_callback=Wrong()),
        )


def test_tags_and_aliases(tf, model, tmp_path):
    options = (
        {"extra_tags": {"gpu"}} if "extra_tags" in tf.saved_model.SaveOptions.__slots__ else {}
    )
    reference_impl.save(
        model,
        tmp_path / "m",
        options=tf.saved_model.SaveOptions(function_aliases={"my": model.f}, **options),
    )
    info = (
        layout.read(tmp_path / "m")
        .meta_graph(["serve", *options.get("extra_tags", ())])
        .meta_info_def
    )
    assert list(info.function_aliases.values()) == ["my"]
    with pytest.raises(errors.SaveError, match=r"function_aliases\['my'\]: Unsupported type"):
        reference_impl.save(
            model, tmp_path / "m", options=tf.saved_model.SaveOptions(function_aliases={"my": 3})
        )


def test_the_local_device_changes_nothing(tf, ours, model, tmp_path):
    for name, chosen in (("a", ours()), ("b", ours(io_device="/job:localhost"))):
        reference_impl.save(model, tmp_path / name, options=chosen)
    first, second = ((tmp_path / name / "saved_model.pb").read_bytes() for name in "ab")
    assert first == second


def heavy(tf, constant):
    """Functions with a constant of 4,000 bytes inside, one of 8,000 that is captured, and 3,002 of
    strings.
    """
    root = tf.Module()
    captured, strings = (
        constant(tf.range(1000, dtype=tf.float64)),
        constant(tf.constant([b"abc" * 1000, b"de"])),
    )
    root.kept = [captured, strings]
    inside = np.arange(1000, dtype=np.float32)

    def body(x):
        return x + tf.reduce_sum(
            root.inner if hasattr(root, "inner") else tf.constant(inside, name="weights")
        )

    if constant is not tf.identity:
        root.inner = constant(inside)
    root.f = tf.function(body, input_signature=[tf.TensorSpec([])])
    root.g = tf.function(
        lambda x: (tf.reduce_sum(captured) + x, strings),
        input_signature=[tf.TensorSpec([], tf.float64)],
    )
    return root


def test_DR_09_what_passes_the_limit_is_refused_with_its_largest_constants(
    tf, ours, tmp_path, monkeypatch
):
    root = heavy(tf, tf.identity)
    reference_impl.save(root, tmp_path / "m")
    size = (tmp_path / "m" / "saved_model.pb").stat().st_size
    monkeypatch.setattr(limits, "SAVED_MODEL_BYTES", size)
    for name in ("a", "b"):  # as large as is allowed
        reference_impl.save(root, tmp_path / name)
    shutil.rmtree(tmp_path / "a")
    for limit in (
        size - 1,
        10_000,
    ):  # what is around the constants is too much; they are, before the rest is made
        monkeypatch.setattr(limits, "SAVED_MODEL_BYTES", limit)
        for options in (ours(), ours(strict=False)):
            with pytest.raises(errors.SaveError) as caught:
                reference_impl.save(root, tmp_path / "a", options=options)
            text = str(caught.value)
            assert (
                f"protobuf allows {limit:,}" in text
                and "tf.Variable(value, trainable=False)" in text
            )
            listed = re.findall(r"([^;:]*) \(([\d,]+) bytes\)", text)
            assert [(place.split(" (")[0].strip(), count) for place, count in listed] == [
                ("a constant of root.g", "8,000"),
                ("node 'weights' of root.f", "4,012"),  # with its dtype and shape
                ("a constant of root.g", "3,002"),
            ]
            assert not (tmp_path / "a").exists()
    root = heavy(tf, lambda value: tf.Variable(value, trainable=False))
    reference_impl.save(root, tmp_path / "a")  # the fix
    loaded = tf.saved_model.load(str(tmp_path / "a"))
    assert (
        loaded.g(tf.constant(1.0, tf.float64))[0].numpy() == 499501.0
        and loaded.f(1.0).numpy() == 499501.0
    )


def test_a_save_waits_for_the_disk_unless_it_is_told_not_to(ours, model, tmp_path, monkeypatch):
    waited = []
    monkeypatch.setattr(os, "fsync", waited.append)
    reference_impl.save(model, tmp_path / "m", options=ours(sync=False))
    assert waited == []
    reference_impl.save(model, tmp_path / "m", options=ours())
    assert len(waited) >= len(list((tmp_path / "m").rglob("*")))


def test_weights_are_written_from_the_memory_that_they_are_in(tf, tmp_path):
    root = tf.Module()
    root.weights = [tf.Variable(tf.ones([2**20])) for _ in range(3)]
    reference_impl.save(root, tmp_path / "m")  # imports modules
    tracemalloc.start()
    try:
        reference_impl.save(root, tmp_path / "m")
        peak = tracemalloc.get_traced_memory()[1]  # NumPy reports the memory of arrays
    finally:
        tracemalloc.stop()
    assert peak < root.weights[0].numpy().nbytes


def test_the_staging_directory_can_be_chosen(ours, model, tmp_path, monkeypatch):
    stages = []
    from reference_impl.saving import checkpoint

    write = checkpoint.write
    monkeypatch.setattr(
        checkpoint,
        "write",
        lambda prefix, *rest: (stages.append(Path(prefix)), write(prefix, *rest)),
    )
    reference_impl.save(model, tmp_path / "m", options=ours(stage=tmp_path / "stage"))
    assert (
        stages[0].is_relative_to(tmp_path / "stage") and list((tmp_path / "stage").iterdir()) == []
    )
    shutil.rmtree(tmp_path / "stage")
    writable = (path for path in ("/dev/shm", "/run", "/var/tmp") if os.access(path, os.W_OK))
    other = next(
        (path for path in writable if Path(path).stat().st_dev != tmp_path.stat().st_dev), None
    )
    if other is None:
        pytest.skip("this machine has one file system only")
    with pytest.raises(FileAccessError, match="another file system"):
        reference_impl.save(model, tmp_path / "m", options=ours(stage=other))


# The program hash, the signatures', the object graph's and the checkpoint's are those which
# TensorFlow finds in the same files.
def test_the_fingerprint_is_that_of_tensorflow(tf, model, tmp_path):
    from reference_impl.format.container import fingerprint as of_files
    from reference_impl.format.schema.ordered import ordered_bytes
    from reference_impl.saving.files import farm_hashes

    reference_impl.save(model, tmp_path / "ours")
    tf.saved_model.save(model, str(tmp_path / "theirs"))
    read = tf.saved_model.experimental.read_fingerprint
    for name in ("ours", "theirs"):
        directory = layout.read(tmp_path / name)
        message = directory.saved_model
        found = of_files.fingerprint(
            message, ordered_bytes(message), directory.checkpoint_prefix, {}, farm_hashes
        )
        stored = read(str(tmp_path / name))
        if name == "theirs" and directory.fingerprint.version.producer != found.version.producer:
            pytest.skip("this TensorFlow computes other hashes")
        for field in ("saved_model_checksum", "graph_def_program_hash", "signature_def_hash", "saved_object_graph_hash",
                      "checkpoint_hash"):  # fmt: skip
            assert getattr(stored, field) == getattr(found, field), field
        assert found == of_files.fingerprint(
            message, ordered_bytes(message), directory.checkpoint_prefix, {}
        ), "by our own FarmHash"


def test_the_fingerprint_knows_values_and_assets(tf, tmp_path):
    def saved(value, text):
        root = tf.Module()
        root.v = tf.Variable(value)
        (tmp_path / "text").write_text(text)
        root.asset = tf.saved_model.Asset(str(tmp_path / "text"))
        reference_impl.save(root, tmp_path / "m")
        return layout.read(tmp_path / "m").fingerprint

    first, other_value, other_text, again = (
        saved(1.0, "a"),
        saved(2.0, "a"),
        saved(1.0, "b"),
        saved(1.0, "a"),
    )
    assert first.uuid == again.uuid and len({first.uuid, other_value.uuid, other_text.uuid}) == 3
    assert first.checkpoint_hash != other_value.checkpoint_hash
    assert first.saved_model_checksum == other_text.saved_model_checksum
