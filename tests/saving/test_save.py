"""`reference_impl.save`, read back by `tf.saved_model.load`, the v1 loader, `tf.train.Checkpoint`
and by ourselves.
"""

from __future__ import annotations

import filecmp
import gc
import inspect
import os
import shutil
import signal
import weakref
from pathlib import Path

import fresh_tensorflow
import numpy as np
import pytest

import reference_impl
from reference_impl import errors
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def make_model(tf, folder: Path):
    """Variables, containers, two traces, nested calls, a table with its file, a mutable table, a
    constant, a custom gradient.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = folder / "words.txt"
    vocabulary.write_text("ant\nbee\n")
    index = tf.lookup.TextFileIndex
    spec = tf.TensorSpec([None], tf.float32)

    @tf.custom_gradient
    def scaled(x):
        sine = tf.sin(x)
        return x * 2.0, lambda dy: dy * 100.0 * sine

    root = tf.Module()
    root.w = tf.Variable([1.0, 2.0], name="weights")
    root.frozen = tf.Variable(3.0, trainable=False, shape=tf.TensorShape(None))
    root.parts = [tf.Variable(4), {"deep": tf.Variable(b"text")}, (tf.Module(), None)]
    root.alias = root.parts[2][0]
    root.alias.parent = root
    initializer = tf.lookup.TextFileInitializer(
        str(vocabulary), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
    )
    root.words = tf.lookup.StaticHashTable(initializer, -1)
    root.counts = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -5)
    root.counts.insert(tf.constant([1, 0], tf.int64), tf.constant([11, 10], tf.int64))
    constant = tf.constant([5.0])

    @tf.function(input_signature=[spec])
    def inner(x):
        return scaled(x) * root.frozen

    @tf.function
    def outer(x, training=False):
        return inner(x) + constant + (1.0 if training else 0.0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def lookup(word):
        ids = root.words.lookup(word)
        return {"id": ids, "count": root.counts.lookup(ids)}

    outer(tf.constant([1.0]))
    outer(tf.constant([1.0]), training=True)
    root.inner, root.outer, root.lookup = inner, outer, lookup
    return root


@pytest.fixture(scope="module")
def model(tf, tmp_path_factory):
    return make_model(tf, tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model"
    reference_impl.save(model, path, {"lookup": model.lookup, "serving_default": model.inner})
    return path


@pytest.fixture(scope="module")
def moved(saved, tmp_path_factory):
    """The export somewhere else: nothing may point at where it was made."""
    return Path(shutil.copytree(saved, tmp_path_factory.mktemp("moved") / "model"))


def same_files(first: Path, second: Path) -> None:
    names = [
        sorted(path.relative_to(top) for path in top.rglob("*") if path.is_file())
        for top in (first, second)
    ]
    assert names[0] == names[1]
    _, different, odd = filecmp.cmpfiles(
        first, second, [str(name) for name in names[0]], shallow=False
    )
    assert different + odd == []


def answers(tf, model) -> list:
    x = tf.constant([2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = model.outer(x)
    words = model.lookup(tf.constant(["bee", "ant", "cat"]))
    results = [
        y,
        model.outer(x, training=True),
        tape.gradient(y, x),
        words["id"],
        words["count"],
        model.w,
        model.frozen,
    ]
    return [np.asarray(result).tolist() for result in results]


# Every reader sees the model that was saved
@pytest.mark.clause(
    "FN-05",
    "FN-12",
    "PRIM-01",
    "PRIM-02",
    "PRIM-03",
    "PRIM-04",
    "PRIM-05",
    "RES-05",
    "RES-15",
    "FMT-14",
)
@pytest.mark.parametrize("reader", ["reference", "tensorflow"])
def test_a_loaded_export_is_the_model(tf, model, moved, reader):
    loaded = (
        reference_impl.load(moved) if reader == "reference" else tf.saved_model.load(str(moved))
    )
    assert answers(tf, loaded) == answers(tf, model)
    assert loaded.alias.parent is loaded
    assert loaded.w.name == "weights:0" and loaded.w.trainable and not loaded.frozen.trainable
    assert loaded.frozen.shape.rank is None
    assert int(loaded.parts[0]) == 4 and loaded.parts[1]["deep"].numpy() == b"text"
    assert sorted(loaded.signatures) == ["lookup", "serving_default"]
    assert loaded.signatures["lookup"](word=tf.constant(["bee"]))["count"].numpy() == [11]
    assert len(loaded.outer.concrete_functions) == 2


# What TensorFlow has loaded can be saved by both
@pytest.mark.clause("RP-01")
def test_the_export_survives_tensorflow_loading_and_saving(tf, model, moved, tmp_path):
    tf.saved_model.save(tf.saved_model.load(str(moved)), str(tmp_path / "theirs"))
    assert answers(tf, reference_impl.load(tmp_path / "theirs")) == answers(tf, model)
    reference_impl.save(tf.saved_model.load(str(moved)), tmp_path / "ours")
    loaded = tf.saved_model.load(str(tmp_path / "ours"))
    assert answers(tf, loaded) == answers(tf, model)
    assert sorted(loaded.signatures) == ["lookup", "serving_default"]  # ATTR-06


@pytest.mark.clause("GOAL-10", "FMT-06", "FMT-08", "COMPAT-06", "RP-08")
def test_a_session_runs_signatures_and_the_saver(tf, moved, tmp_path):
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        meta_graph = v1.saved_model.loader.load(session, ["serve"], str(moved))
        assert sorted(meta_graph.signature_def) == [
            "__saved_model_init_op",
            "lookup",
            "serving_default",
        ]
        signature = meta_graph.signature_def["lookup"]
        fetches = {key: info.name for key, info in signature.outputs.items()}
        got = session.run(fetches, {signature.inputs["word"].name: [b"bee", b"cat"]})
        assert got["id"].tolist() == [1, -1] and got["count"].tolist() == [11, -5]
        saver = meta_graph.saver_def
        session.run(saver.save_tensor_name, {saver.filename_tensor_name: str(tmp_path / "again")})
    stored, again = (
        tf.train.load_checkpoint(str(moved / "variables/variables")),
        tf.train.load_checkpoint(str(tmp_path / "again")),
    )
    shapes = again.get_variable_to_shape_map()
    assert shapes == stored.get_variable_to_shape_map()
    assert again.get_tensor("w/.ATTRIBUTES/VARIABLE_VALUE").tolist() == [1.0, 2.0]


@pytest.mark.clause("FN-01", "FN-15", "FN-16")
def test_it_is_a_checkpoint(tf, moved):
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0)
    checkpoint = tf.train.Checkpoint(w=tf.Variable([0.0, 0.0]), counts=table)
    checkpoint.restore(str(moved)).expect_partial()
    assert checkpoint.w.numpy().tolist() == [1.0, 2.0]
    assert table.lookup(tf.constant([0, 1], tf.int64)).numpy().tolist() == [10, 11]
    assert not hasattr(checkpoint, "inner")


# The second generation is a fixed point, signatures included; the same object saved twice gives the
# same bytes
@pytest.mark.clause("GOAL-13", "ATTR-06")
def test_bytes_are_a_function_of_the_model(model, saved, tmp_path):
    signatures = {"lookup": model.lookup, "serving_default": model.inner}
    reference_impl.save(model, tmp_path / "twice", signatures)
    same_files(saved, tmp_path / "twice")
    for before, after in ((saved, "second"), (tmp_path / "second", "third")):
        reference_impl.save(reference_impl.load(before), tmp_path / after)
    same_files(tmp_path / "second", tmp_path / "third")


@pytest.mark.clause("API-02", "API-03")
def test_what_is_no_root_and_no_function_is_refused(tf, tmp_path):
    root = tf.Module()
    root.f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([], tf.float32)])
    for signatures in ([root.f], {1: root.f}, {"__saved_model_init_op": root.f}, {"key": 3}):
        with pytest.raises(errors.SignatureError, match="API-03"):
            reference_impl.save(root, tmp_path / "m", signatures)
    for wrong in ({}, 3, root.f, tf.Module):
        with pytest.raises(errors.NotTrackableError, match="API-02"):
            reference_impl.save(wrong, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.clause("RES-05", "RES-06")
def test_a_missing_asset_writes_nothing(tf, tmp_path):
    file = tmp_path / "data.txt"
    file.write_text("x")
    root = tf.Module()
    root.asset = tf.saved_model.Asset(str(file))
    file.unlink()
    with pytest.raises(errors.MissingFileError, match=r"root.asset.*RES-06"):
        reference_impl.save(root, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.clause("RES-14", "COMPAT-04")
def test_nothing_of_the_authors_machine_and_nothing_new(model, saved):
    content = (saved / "saved_model.pb").read_bytes()
    assert b"words.txt" in content and b"/words.txt" not in content
    meta_graph = layout.read(saved).meta_graph(None)
    functions = meta_graph.graph_def.library.function
    nodes = [
        *meta_graph.graph_def.node,
        *(node for function in functions for node in function.node_def),
    ]
    assert nodes and not [
        node.name for node in nodes if "debug_name" in node.attr or node.op == "DisableCopyOnRead"
    ]


def test_attributes_that_older_readers_lack_are_left_out(tf, tmp_path):
    class Holder(tf.saved_model.experimental.TrackableResource):
        def _create_resource(self):
            return tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name="holder", **named)

    named = (
        {"debug_name": "mine"}
        if "debug_name" in inspect.signature(tf.raw_ops.VarHandleOp).parameters
        else {}
    )
    root = tf.Module()
    root.holder = Holder()
    reference_impl.save(root, tmp_path / "m")
    functions = layout.read(tmp_path / "m").meta_graph(None).graph_def.library.function
    nodes = [
        node for function in functions for node in function.node_def if node.op == "VarHandleOp"
    ]
    assert nodes and not [node for node in nodes if "debug_name" in node.attr]


# A function that was differentiated knows rewritten forms of what it calls; those are no part of
# the model
@pytest.mark.clause("FMT-14")
def test_custom_gradients_of_a_model_that_was_differentiated(tf, tmp_path):
    def gradient(model):
        x = tf.constant([2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = model.outer(x)
        return tape.gradient(y, x).numpy().tolist()

    model = make_model(tf, tmp_path / "source")
    del model.inner  # it is found through `outer` alone, which knows the rewritten form as well
    expected = gradient(model)
    reference_impl.save(model, tmp_path / "m")
    for load in (reference_impl.load, tf.saved_model.load):
        assert gradient(load(str(tmp_path / "m"))) == expected
    functions = layout.read(tmp_path / "m").meta_graph(None).graph_def.library.function
    assert not [
        function.signature.name for function in functions if "forward" in function.signature.name
    ]


# What signatures read is what the restore function assigns
@pytest.mark.clause("GOAL-09")
def test_one_variable_has_one_handle(tf, tmp_path):
    keras = pytest.importorskip("keras", minversion="3")
    root = tf.Module()
    root.layer = keras.layers.Dense(2)
    root.layer.build((None, 2))
    root.inner = root.layer.kernel.value
    root.f = tf.function(
        lambda x: root.layer(x), input_signature=[tf.TensorSpec([None, 2], tf.float32)]
    )
    reference_impl.save(root, tmp_path / "m")
    meta_graph = layout.read(tmp_path / "m").meta_graph(None)
    handles = [node.name for node in meta_graph.graph_def.node if node.op == "VarHandleOp"]
    assert len(handles) == 2
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    assert loaded.inner is loaded.layer._kernel


@pytest.mark.clause("OPT-02", "V1-18")
def test_slots_are_saved_and_saved_again(tf, tmp_path):
    root = tf.Module()
    root.v = tf.Variable([1.0])
    root.optimizer = tf.compat.v1.train.AdamOptimizer(0.5)
    root.optimizer.apply_gradients([(tf.constant([2.0]), root.v)])
    reference_impl.save(root, tmp_path / "one")
    loaded = reference_impl.load(tmp_path / "one")
    key = (loaded.v.ref(), "m")
    expected = root.optimizer.get_slot(root.v, "m").numpy()
    np.testing.assert_array_equal(loaded.optimizer.slot_variables[key].numpy(), expected)
    reference_impl.save(loaded, tmp_path / "two")
    loaded = reference_impl.load(tmp_path / "two")
    np.testing.assert_array_equal(
        loaded.optimizer.slot_variables[loaded.v.ref(), "m"].numpy(), expected
    )


# A plain re-save of a TF 1.x model keeps signatures, values and tables
@pytest.mark.clause("V1-16", "V1-17", "RES-15")
@pytest.mark.parametrize(
    "fixture", ["estimator_custom", "mutable_hash_table", "sparse_io", "same_basename_assets"]
)
def test_tf1_models_lose_nothing(fixture, tmp_path):
    source = ROOT / "fixtures_v1" / fixture / "model"
    first = reference_impl.load(source)
    reference_impl.save(first, tmp_path / "again")
    second = reference_impl.load(tmp_path / "again")
    assert sorted(second.signatures) == sorted(first.signatures)
    values = [
        [variable.numpy().tolist() for variable in root.variables] for root in (first, second)
    ]
    assert values[0] == values[1]
    before, after = (
        layout.read(path).meta_graph(["serve"]) for path in (source, tmp_path / "again")
    )
    for key in first.signatures:
        one, other = before.signature_def[key], after.signature_def[key]
        assert one.method_name == other.method_name
        for side in ("inputs", "outputs"):
            kinds = [
                {name: info.WhichOneof("encoding") for name, info in getattr(d, side).items()}
                for d in (one, other)
            ]
            assert kinds[0] == kinds[1]
    sizes = []
    for path in (source, tmp_path / "again"):
        directory = layout.read(path)
        files = {asset.path for asset in directory.assets(directory.meta_graph(["serve"]))}
        sizes.append(sorted(file.stat().st_size for file in files))
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize(
    ("fixture", "node"), [("half_plus_two", "a"), ("mutable_hash_table", "dense")]
)
def test_V1_17_state_inside_of_functions_is_not_lost_silently(tf, fixture, node, tmp_path):
    loaded = tf.saved_model.load(str(ROOT / "fixtures_v1" / fixture / "model"))
    signatures = {
        key: function for key, function in loaded.signatures.items() if not key.startswith("__")
    }
    with pytest.raises(
        errors.SaveError, match=rf"(?s){node}.*Load the model with reference_impl.load"
    ) as caught:
        reference_impl.save(loaded, tmp_path / "model", signatures)
    assert caught.value.clause == "V1-17"
    assert not (tmp_path / "model").exists()
    with pytest.warns(UserWarning, match="left out"):
        reference_impl.save(
            loaded, tmp_path / "model", signatures, options=reference_impl.SaveOptions(strict=False)
        )


@pytest.mark.clause("API-04")
def test_an_error_leaves_the_old_export(tf, saved, monkeypatch, tmp_path):
    target = Path(shutil.copytree(saved, tmp_path / "m"))
    from reference_impl.saving import checkpoint

    monkeypatch.setattr(
        checkpoint, "of_variable", lambda *_: (_ for _ in ()).throw(OSError("disk"))
    )
    root = tf.Module()
    root.v = tf.Variable(1.0)
    with pytest.raises(OSError, match="disk"):
        reference_impl.save(root, target)
    same_files(saved, target)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_killed_save_leaves_the_old_export(saved, tmp_path):
    target = Path(shutil.copytree(saved, tmp_path / "m"))
    code = (
        "import os, sys, tensorflow as tf, reference_impl; from reference_impl.format.container"
        " import staging as w;w._exchange = lambda *_: os.kill(os.getpid(), 9); r = tf.Module();"
        " r.v = tf.Variable(1.0);reference_impl.save(r, sys.argv[1])"
    )
    done = fresh_tensorflow.run(code, target)
    assert done.returncode == -signal.SIGKILL
    same_files(saved, target)


def test_the_new_export_replaces_all_of_the_old_one(tf, saved, tmp_path):
    target = Path(shutil.copytree(saved, tmp_path / "m"))
    root = tf.Module()
    root.v = tf.Variable(1.0)
    reference_impl.save(root, os.fspath(target))
    assert sorted(path.name for path in target.iterdir()) == [
        "fingerprint.pb",
        "saved_model.pb",
        "variables",
    ]


def test_saving_inside_of_a_function_is_refused(tf, tmp_path):
    root = tf.Module()
    with pytest.raises(errors.SaveError, match=r"tf\.function"):
        tf.function(lambda: reference_impl.save(root, tmp_path / "m"), autograph=False)()


def times(part):
    return lambda x: x * part.v


# Parts of several loads in one export; equal function names do not meet
@pytest.mark.clause("GOAL-02")
def test_two_loaded_models_in_one(tf, tmp_path):
    for name, factor in (("a", 2.0), ("b", 3.0)):
        part = tf.Module()
        part.v = tf.Variable(factor)
        part.f = tf.function(times(part), input_signature=[tf.TensorSpec([], tf.float32)])
        reference_impl.save(part, tmp_path / name, {})
    root = tf.Module()
    root.a, root.b = reference_impl.load(tmp_path / "a"), reference_impl.load(tmp_path / "b")
    root.f = tf.function(
        lambda x: root.a.f(x) + root.b.f(x), input_signature=[tf.TensorSpec([], tf.float32)]
    )
    reference_impl.save(root, tmp_path / "both", root.f)
    for load in (reference_impl.load, tf.saved_model.load):
        loaded = load(str(tmp_path / "both"))
        assert [float(f(tf.constant(1.0))) for f in (loaded.a.f, loaded.b.f, loaded.f)] == [
            2.0,
            3.0,
            5.0,
        ]
        loaded.a.v.assign(10.0)
        assert float(loaded.f(tf.constant(1.0))) == 13.0


def test_saving_keeps_nothing_alive(tf, tmp_path):
    root = tf.Module()
    root.v = tf.Variable(1.0)
    root.f = tf.function(times(root), input_signature=[tf.TensorSpec([], tf.float32)])
    reference_impl.save(root, tmp_path / "m")
    alive = weakref.ref(root.v)
    del root
    gc.collect()
    assert alive() is None
