"""Clauses about resources and assets (RES): one module with all kinds, its files deleted after the
save, three generations.
"""

from __future__ import annotations

import gc
import os
import shutil
import weakref
from pathlib import Path

import clause_errors
import pytest
import recorded

import reference_impl
from reference_impl import errors as format_errors
from reference_impl.format import schema
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow

READERS = ("reference", "tensorflow")


def load(tf, directory, reader="reference"):
    return (
        reference_impl.load(directory)
        if reader == "reference"
        else tf.saved_model.load(str(directory))
    )


def build(tf, folder):
    """Assets (two files of one name, one file twice), tables of all kinds, one made in a trace, a
    resource of the user's own.
    """
    for name, text in (("one/v.txt", "ant\nbee\n"), ("two/v.txt", "cat\n")):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(text)

    class Holder(tf.saved_model.experimental.TrackableResource):
        """Holds a number that its initialiser computes from a variable."""

        def __init__(self, source):
            super().__init__()
            self.source = source

        def _create_resource(self):
            return tf.raw_ops.MutableHashTableV2(
                key_dtype=tf.int64, value_dtype=tf.float32, shared_name="holder"
            )

        def _initialize(self):
            key = tf.constant([0], tf.int64)
            tf.raw_ops.LookupTableInsertV2(
                table_handle=self.resource_handle, keys=key, values=[self.source + 1.0]
            )

        def read(self):
            missing = tf.constant(-1.0)
            key = tf.constant(0, tf.int64)
            return tf.raw_ops.LookupTableFindV2(
                table_handle=self.resource_handle, keys=key, default_value=missing
            )

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.same = (
                tf.saved_model.Asset(str(folder / name))
                for name in ("one/v.txt", "two/v.txt", "one/v.txt")
            )
            index = tf.lookup.TextFileIndex
            file = tf.lookup.TextFileInitializer(
                str(folder / "one/v.txt"), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
            )
            self.words = tf.lookup.StaticVocabularyTable(file, num_oov_buckets=1)
            self.counts = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
            self.dense = tf.lookup.experimental.DenseHashTable(
                tf.int64, tf.int64, -1, empty_key=-2, deleted_key=-3
            )
            self.value = tf.Variable(1.0)
            self.holder = Holder(self.value)
            self.holder._initialize()
            self.late = None

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def look(self, words):
            if self.late is None:
                pairs = tf.lookup.KeyValueTensorInitializer(["ant", "bee"], [10, 20])
                self.late = tf.lookup.StaticHashTable(pairs, -1)
            ids = self.words.lookup(words)
            return {
                "id": ids,
                "count": self.counts.lookup(words),
                "dense": self.dense.lookup(ids),
                "late": self.late.lookup(words),
                "held": self.holder.read(),
            }

        @tf.function(input_signature=[])
        def files(self):
            return {name: tf.io.read_file(asset.asset_path) for name, asset in
                    (("first", self.first), ("second", self.second), ("same", self.same))}  # fmt: skip

    model = Model()
    model.look(tf.constant(["ant"]))
    model.counts.insert(tf.constant(["bee"]), tf.constant([7], tf.int64))
    model.dense.insert(tf.constant([0, 1], tf.int64), tf.constant([100, 101], tf.int64))
    model.value.assign(8.0)  # after the holder was initialised
    return model


LOOKED = {"id": [1, 2], "count": [7, -1], "dense": [101, -1], "late": [20, -1], "held": 9.0}
FILES = {"first": b"ant\nbee\n", "second": b"cat\n", "same": b"ant\nbee\n"}


@pytest.fixture(scope="module")
def generations(tf, tmp_path_factory):
    """Three of them, the third by TensorFlow's hands in between; every source is deleted before the
    next is used.
    """
    folder = tmp_path_factory.mktemp("source")
    model = build(tf, folder)
    target = tmp_path_factory.mktemp("generations")
    signatures = {"look": model.look, "files": model.files}
    reference_impl.save(model, target / "first", signatures)
    shutil.rmtree(folder)
    directories = [target / "1", target / "2", target / "3"]
    (target / "first").rename(directories[0])  # nothing may know where it was written
    for before, after, reader in ((0, 1, "reference"), (1, 2, "tensorflow")):
        work = shutil.copytree(directories[before], target / "work")
        reference_impl.save(load(tf, work, reader), directories[after])
        shutil.rmtree(work)
    return directories


def graph(directory):
    return layout.read(directory).meta_graph(None)


def answers(tf, loaded):
    found = loaded.look(tf.constant(["bee", "wasp"]))
    return {name: value.numpy().tolist() for name, value in found.items()}


def test_RES_01_a_function_keeps_the_state_of_its_root_alive_and_nothing_else_does(tf, generations):
    """Shipped TensorFlow refuses the call of a function whose root is gone (tensorflow#34253)."""
    assert (
        reference_impl.load(generations[0]).look(tf.constant(["bee", "wasp"]))["held"].numpy()
        == 9.0
    )
    loaded = reference_impl.load(generations[0])
    look = loaded.signatures["look"]
    alive = weakref.ref(loaded.counts)
    del loaded
    gc.collect()
    assert alive() is not None
    assert look(words=tf.constant(["bee"]))["count"].numpy().tolist() == [7]
    del look
    gc.collect()
    assert alive() is None


@pytest.mark.clause("PRIM-04", "PRIM-07", "PRIM-08", "RES-10", "RES-15", "RP-04", "RP-09", "FMT-10")
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("generation", [1, 2, 3])
def test_RES_02_and_03_and_13_resources_and_assets_of_all_generations(
    tf, generations, generation, reader
):
    """Made in a trace, made by the user, filled by a file, by hand, by a restored variable: nobody
    had to initialise anything.
    """
    loaded = load(tf, generations[generation - 1], reader)
    assert answers(tf, loaded) == LOOKED
    assert {name: value.numpy() for name, value in loaded.files().items()} == FILES
    assert isinstance(loaded.holder, tf.saved_model.experimental.TrackableResource)
    assert isinstance(loaded.counts, tf.saved_model.experimental.TrackableResource)


@pytest.mark.parametrize("generation", [1, 2, 3])
def test_RES_03_and_11_a_session_creates_and_initialises_them_too(tf, generations, generation):
    directory = generations[generation - 1]
    with recorded.session(tf, directory) as ask:
        found = ask("look", {"words": [b"bee", b"wasp"]})
        assert {name: value.tolist() for name, value in found.items()} == LOOKED
        assert {name: bytes(value) for name, value in ask("files", {}).items()} == FILES
    feeds = {asset.tensor_info.name for asset in graph(directory).asset_file_def}
    nodes = {node.name: node for node in graph(directory).graph_def.node}
    assert feeds and {nodes[name.partition(":")[0]].op for name in feeds} == {"Placeholder"}


def test_RES_03_the_object_graph_has_the_functions_of_a_resource(generations):
    objects = graph(generations[0]).object_graph_def
    resources = [node for node in objects.nodes if node.HasField("resource")]
    assert len(resources) == 5
    for node in resources:
        children = {child.local_name: objects.nodes[child.node_id] for child in node.children}
        for name in ("_create_resource", "_initialize"):
            assert children[name].WhichOneof("kind") in ("function", "bare_concrete_function")


def test_RES_04_captured_resources_are_nodes_of_the_object_graph(tf, generations):
    objects = graph(generations[0]).object_graph_def
    by_name = {child.local_name: child.node_id for child in objects.nodes[0].children}
    (name,) = objects.nodes[by_name["look"]].function.concrete_functions
    bound = list(objects.concrete_functions[name].bound_inputs)
    kinds = [objects.nodes[number].WhichOneof("kind") for number in bound]
    assert kinds.count("resource") == 5 and set(kinds) <= {"resource", "constant"}
    assert {by_name[name] for name in ("counts", "dense", "holder", "late")} < set(bound)


def test_RES_05_files_are_copied_once_and_under_names_of_their_own(generations):
    for directory in generations:
        files = {path.name: path.read_text() for path in (directory / "assets").iterdir()}
        assert files == {"v.txt": "ant\nbee\n", "v.txt_1": "cat\n"}
    assert sorted(asset.filename for asset in graph(generations[0]).asset_file_def) == [
        "v.txt",
        "v.txt",
        "v.txt",
        "v.txt_1",
    ]


@pytest.mark.parametrize("kind", ["missing", "a directory"])
def test_RES_06_a_file_that_is_none_is_refused_before_anything_is_written(tf, tmp_path, kind):
    path = tmp_path / "file.txt"
    path.write_text("x")
    root = tf.Module()
    root.part = tf.Module()
    root.part.file = tf.saved_model.Asset(str(path))
    path.unlink()
    if kind == "a directory":
        path.mkdir()
    before = sorted(tmp_path.iterdir())
    with clause_errors.raises(format_errors.MissingFileError, "RES-06", match=r"root\.part\.file"):
        reference_impl.save(root, tmp_path / "m")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("reader", READERS)
def test_RES_07_an_asset_is_an_asset_again(tf, generations, reader):
    loaded = load(tf, generations[2], reader)
    assert isinstance(loaded.second, tf.saved_model.Asset)
    assert Path(loaded.second.asset_path.numpy().decode()).read_text() == "cat\n"


def test_RES_08_the_path_is_a_variable_of_the_graph_and_no_value_of_the_checkpoint(tf, generations):
    keys = [
        name for name, _ in tf.train.list_variables(str(generations[0] / "variables" / "variables"))
    ]
    assert not [key for key in keys if "asset" in key or "first" in key]
    nodes = {node.name: node for node in graph(generations[0]).graph_def.node}
    assigned = [node for node in nodes.values() if node.op == "AssignVariableOp"]
    assert len(assigned) == 4
    for node in assigned:
        handle, feed = (nodes[name] for name in node.input)
        assert (handle.op, feed.op) == ("VarHandleOp", "Placeholder")


@pytest.mark.parametrize("how", ["relative", "through a link"])
def test_RES_09_paths_are_absolute(tf, generations, tmp_path, monkeypatch, how):
    directory = shutil.copytree(generations[0], tmp_path / "model")
    if how == "through a link":
        directory = tmp_path / "link"
        directory.symlink_to(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    loaded = reference_impl.load(directory.name)
    monkeypatch.chdir("/")
    path = loaded.second.asset_path.numpy().decode()
    assert os.path.isabs(path)  # noqa: PTH117
    assert {name: value.numpy() for name, value in loaded.files().items()} == FILES


def test_RES_12_the_asset_definition_has_no_restore_function(generations):
    """The RFC wants one and says elsewhere that the message stays as it is; shipped TensorFlow left
    it so.
    """
    assert sorted(field.name for field in schema.AssetFileDef.DESCRIPTOR.fields) == [
        "filename",
        "tensor_info",
    ]
    assert all(
        asset.filename and asset.HasField("tensor_info")
        for asset in graph(generations[0]).asset_file_def
    )


def test_RES_13_a_model_may_be_saved_onto_itself(tf, generations, tmp_path):
    directory = shutil.copytree(generations[0], tmp_path / "m")
    for _ in range(2):
        reference_impl.save(reference_impl.load(directory), directory)
    loaded = reference_impl.load(directory)
    assert answers(tf, loaded) == LOOKED
    assert {name: value.numpy() for name, value in loaded.files().items()} == FILES


@pytest.mark.parametrize("generation", [1, 2, 3])
def test_RES_14_nothing_of_the_authors_machine_is_in_the_file(generations, generation):
    content = (generations[generation - 1] / "saved_model.pb").read_bytes()
    folders = [part for part in generations[0].parents if len(part.parts) > 1]
    assert b"v.txt" in content
    assert not [folder for folder in folders if str(folder).encode() + b"/" in content]
    assert b"/v.txt" not in content


@pytest.mark.parametrize("name", ["../outside.txt", "/etc/hostname", "a/../../outside.txt"])
def test_RES_14_a_file_name_that_leads_out_is_refused(tf, generations, tmp_path, name):
    """Shipped TensorFlow follows it, and copies what it finds into the next export."""
    directory = shutil.copytree(generations[0], tmp_path / "m")
    (tmp_path / "m" / "outside.txt").write_text("secret")
    message = schema.parse(schema.SavedModel, (directory / "saved_model.pb").read_bytes())
    message.meta_graphs[0].asset_file_def[0].filename = name
    (directory / "saved_model.pb").write_bytes(message.SerializeToString())
    with pytest.raises(format_errors.PathEscapeError):
        reference_impl.load(directory)


def test_RES_15_contents_are_the_present_ones(tf, generations, tmp_path):
    """What was put in after loading is saved, and a checkpoint of the loaded object has it too."""
    loaded = reference_impl.load(generations[0])
    handle = loaded.counts.resource_handle
    tf.raw_ops.LookupTableInsertV2(
        table_handle=handle, keys=["ant"], values=tf.constant([3], tf.int64)
    )
    reference_impl.save(loaded, tmp_path / "m")
    for reader in READERS:
        counts = load(tf, tmp_path / "m", reader).look(tf.constant(["ant", "bee", "wasp"]))["count"]
        assert counts.numpy().tolist() == [3, 7, -1]
    fresh = reference_impl.load(generations[0])
    tf.train.Checkpoint(fresh).restore(
        tf.train.Checkpoint(loaded).write(str(tmp_path / "checkpoint"))
    )
    assert fresh.look(tf.constant(["ant"]))["count"].numpy().tolist() == [3]


def test_RES_03_a_resource_that_cannot_be_created_here_costs_its_users_only(tf, tmp_path):
    """Its creator returns a bare placeholder.

    TensorFlow too creates a resource when somebody uses it.
    """

    class Absent(tf.saved_model.experimental.TrackableResource):
        def _create_resource(self):
            return tf.compat.v1.placeholder(tf.resource, [])

        def _initialize(self):
            return tf.constant(0)

    root = tf.Module()
    root.absent = Absent()
    root.f = tf.function(lambda x: x * 2.0, input_signature=[tf.TensorSpec([])])
    tf.saved_model.save(root, str(tmp_path / "m"))
    for module in (tf.saved_model, reference_impl):
        loaded = module.load(str(tmp_path / "m"))
        assert loaded.f(tf.constant(2.0)).numpy() == 4.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="placeholder"):
            loaded.absent.resource_handle  # noqa: B018
