"""reference_impl.format.container.layout: directories of SavedModels, and what is none."""

import os

import pytest
import zoo
from layout_models import model, put, save, write

from reference_impl import errors
from reference_impl.format import limits, schema
from reference_impl.format.container import layout

# reading


def test_a_directory_with_everything(tmp_path):
    message = model()
    message.meta_graphs[0].asset_file_def.add(filename="vocab.txt").tensor_info.name = "Const:0"
    save(tmp_path, message)
    put(tmp_path, "variables/variables.index", b"")
    put(tmp_path, "assets/vocab.txt", b"a\n")
    put(tmp_path, "assets.extra/sub/warmup", b"")
    put(tmp_path, "fingerprint.pb", schema.serialize(schema.FingerprintDef(uuid="u")))
    put(
        tmp_path,
        "debug/saved_model_debug_info.pb",
        schema.serialize(schema.GraphDebugInfo(files=["f.py"])),
    )
    read = layout.read(tmp_path)
    assert read.saved_model == message
    assert read.file == tmp_path / "saved_model.pb"
    assert read.checkpoint_prefix == tmp_path / "variables" / "variables"
    assert read.has_checkpoint
    assert read.fingerprint.uuid == "u"
    assert list(read.debug_info.files) == ["f.py"]
    assert read.assets(read.meta_graph()) == [
        layout.Asset("Const:0", "vocab.txt", tmp_path / "assets/vocab.txt", True)
    ]
    assert read.extra_assets == ("sub/warmup",)
    assert read.names == (
        "assets.extra/sub/warmup",
        "assets/vocab.txt",
        "debug/saved_model_debug_info.pb",
        "fingerprint.pb",
        "saved_model.pb",
        "variables/variables.index",
    )


def test_a_directory_with_only_the_graph(tmp_path):
    read = layout.read(str(save(tmp_path)))
    assert not read.has_checkpoint
    assert read.fingerprint is None
    assert read.debug_info is None
    assert read.extra_assets == ()
    assert read.assets(read.meta_graph()) == []


def test_the_file_itself_may_be_given(tmp_path):
    save(tmp_path)
    assert layout.read(tmp_path / "saved_model.pb").directory == tmp_path
    other = put(tmp_path, "copy.pbtxt", schema.to_text(model(("train",))).encode())
    assert layout.read(other).tag_sets == (frozenset(["train"]),)


def test_paths_survive_a_change_of_directory(tmp_path, monkeypatch):
    """RES-09."""
    save(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    read = layout.read("model")
    monkeypatch.chdir("/")
    assert read.asset_path("a") == tmp_path / "model/assets/a"
    assert read.fingerprint is None


def test_text_is_read(tmp_path):
    message = model(("a", "b"), ())
    put(tmp_path, "saved_model.pbtxt", schema.to_text(message).encode())
    assert layout.read(tmp_path).saved_model == message


def test_of_several_formats_the_binary_one_is_read(tmp_path):
    save(tmp_path, model(("binary",)))
    put(tmp_path, "saved_model.pbtxt", b"not read")
    put(tmp_path, "saved_model.cpb", b"not read")
    read = layout.read(tmp_path)
    assert read.tag_sets == (frozenset(["binary"]),)
    assert read.alternatives == ("saved_model.pbtxt", "saved_model.cpb")


def test_assets_of_the_first_releases_are_in_a_collection(tmp_path):
    message = model()
    definition = schema.AssetFileDef(filename="v.txt")
    message.meta_graphs[0].collection_def["saved_model_assets"].any_list.value.add().Pack(
        definition
    )
    read = layout.read(save(tmp_path, message))
    assert [(asset.filename, asset.exists) for asset in read.assets(read.meta_graph())] == [
        ("v.txt", False)
    ]
    message.meta_graphs[0].collection_def["saved_model_assets"].any_list.value[0].value = b"\x0f"
    read = layout.read(save(tmp_path, message))
    with pytest.raises(errors.MalformedError, match="saved_model_assets"):
        read.assets(read.meta_graph())


# which MetaGraph


def test_tags_choose_exactly(tmp_path):
    """V1-04, V1-05, V1-07."""
    read = layout.read(save(tmp_path, model(("serve",), ("serve", "gpu"), ())))
    assert read.meta_graph("serve") is not read.meta_graph(["gpu", "serve"])
    assert set(read.meta_graph(["gpu", "serve", "gpu"]).meta_info_def.tags) == {"serve", "gpu"}
    assert list(read.meta_graph([]).meta_info_def.tags) == []
    for tags in ("gpu", ["train"], ["serve", "gpu", "x"]):
        with pytest.raises(errors.NoMetaGraphError, match=r"gpu, serve; \(no tags\)") as caught:
            read.meta_graph(tags)
        assert caught.value.clause == "V1-05"
    with pytest.raises(errors.NoMetaGraphError, match="3 MetaGraphs") as caught:
        read.meta_graph()
    assert caught.value.clause == "V1-04"


def test_one_metagraph_needs_no_tags(tmp_path):
    assert layout.read(save(tmp_path, model(("train",)))).meta_graph().meta_info_def.tags == [
        "train"
    ]


def test_equal_tag_sets_cannot_be_chosen_between(tmp_path):
    read = layout.read(save(tmp_path, model(("a", "b"), ("b", "a"))))
    with pytest.raises(errors.DuplicateKeyError, match=r"2 MetaGraphs .*a, b"):
        read.meta_graph(["a", "b"])


# what is no SavedModel


def test_an_empty_directory(tmp_path):
    with pytest.raises(errors.NotASavedModelError, match=r"saved_model\.pb"):
        layout.read(tmp_path)


def test_nothing_there(tmp_path):
    with pytest.raises(errors.MissingFileError):
        layout.read(tmp_path / "absent")


@pytest.mark.parametrize("version", [2, -1])
def test_another_schema_version(tmp_path, version):
    with pytest.raises(errors.SchemaVersionError, match=f"is {version}, not 1"):
        layout.read(save(tmp_path, model(version=version)))


@pytest.mark.parametrize("name", ["saved_model.pb", "saved_model.pbtxt"])
def test_an_empty_file_is_called_empty(tmp_path, name):
    """As a copy that was broken off, or a full disk, leaves it."""
    with pytest.raises(errors.NoMetaGraphError, match=f"{name}: .* empty"):
        layout.read(put(tmp_path, name, b""))


def test_a_fingerprint_is_no_savedmodel(tmp_path):
    """It parses as one, with a nonsense version."""
    message = schema.FingerprintDef(saved_model_checksum=2**60, graph_def_program_hash=3)
    with pytest.raises(errors.SchemaVersionError):
        layout.read(put(tmp_path, "saved_model.pb", schema.serialize(message)))


def test_modules_of_tensorflow_hub_and_models_made_by_hand_have_no_version(tmp_path):
    """As shipped TensorFlow reads them."""
    save(tmp_path, model((), version=0))
    assert layout.read(tmp_path).tag_sets == (frozenset(),)


def test_no_metagraph(tmp_path):
    with pytest.raises(errors.NoMetaGraphError, match="holds no MetaGraph"):
        layout.read(save(tmp_path, schema.SavedModel(saved_model_schema_version=1)))


def test_a_cut_off_file(tmp_path):
    data = schema.serialize(model())
    put(tmp_path, "saved_model.pb", data[:-3])
    with pytest.raises(errors.TruncatedError) as caught:
        layout.read(tmp_path)
    assert caught.value.file == str(tmp_path / "saved_model.pb")
    assert caught.value.node.startswith("meta_graphs")


def test_a_file_over_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "SAVED_MODEL_BYTES", 10)
    with pytest.raises(errors.LimitError) as caught:
        layout.read(save(tmp_path))
    assert caught.value.limit == "SAVED_MODEL_BYTES"


def test_a_sparse_file_of_a_terabyte(tmp_path):
    with (tmp_path / "saved_model.pb").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(errors.LimitError):
        layout.read(tmp_path)


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.pb")
    (tmp_path / "directory.pb").mkdir()
    (tmp_path / "device.pb").symlink_to("/dev/zero")
    with pytest.raises(errors.FileAccessError):
        layout.read(tmp_path / "pipe.pb")
    with pytest.raises(errors.NotASavedModelError):
        layout.read(tmp_path / "directory.pb")
    with pytest.raises(errors.FileAccessError):
        layout.read(tmp_path / "device.pb", follow_links=True)


def test_what_the_system_refuses_to_open(tmp_path):
    (tmp_path / "saved_model.pb").symlink_to("saved_model.pb")
    with pytest.raises(errors.FileAccessError, match="symbolic links"):
        layout.read(tmp_path)


def test_too_many_files(tmp_path, monkeypatch):
    read = layout.read(save(tmp_path))
    for index in range(20):
        put(tmp_path, f"assets.extra/{index}", b"")
    monkeypatch.setattr(limits, "DIRECTORY_ENTRIES", 10)
    with pytest.raises(errors.LimitError, match="more than 10 files"):
        read.extra_assets  # noqa: B018


@pytest.mark.parametrize(
    ("limit", "field"),
    [
        ("META_GRAPHS", ""),
        ("SIGNATURES", "signature_def"),
        ("SIGNATURE_ARGUMENTS", "signature_def"),
        ("ASSETS", "asset_file_def"),
        ("ASSETS", "collection"),
    ],
)
def test_more_entries_than_a_reader_has_time_for(tmp_path, monkeypatch, limit, field):
    message = model()
    for number in range(4):
        graph = message.meta_graphs.add()
        graph.meta_info_def.tags.append(f"t{number}")
        if field == "signature_def":
            graph.signature_def["s"].inputs["x"].name = "x:0"
        elif field == "asset_file_def":
            graph.asset_file_def.add(filename="a")
        elif field == "collection":
            graph.collection_def["saved_model_assets"].any_list.value.add()
    put(tmp_path, "saved_model.pb", schema.serialize(message))
    assert layout.read(tmp_path)
    monkeypatch.setattr(limits, limit, 3)
    with pytest.raises(errors.LimitError) as caught:
        layout.read(tmp_path)
    assert caught.value.limit == limit


# names that try to get out

ESCAPES = [
    "../x", "a/../../x", "/etc/hostname", "..", ".", "", "a\0b", "a\nb", "\x1b[31mred", "C:\\x", "..\\x", "\\\\host\\share\\x",
    "a\u2028b", "x" * 5000, "//x",
]  # fmt: skip


@pytest.mark.parametrize("name", ESCAPES)
def test_asset_names_cannot_escape(tmp_path, name):
    """RES-14."""
    message = model()
    message.meta_graphs[0].asset_file_def.add(filename=name)
    read = layout.read(save(tmp_path, message))
    with pytest.raises(errors.PathEscapeError) as caught:
        read.assets(read.meta_graph())
    assert caught.value.node == "asset_file_def[0]"
    assert caught.value.clause == "RES-14"
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "name", ["vocab.txt", "sub/vocab.txt", "..vocab", "été ☃.txt", "a b", "-x"]
)
def test_ordinary_asset_names(tmp_path, name):
    read = layout.read(save(tmp_path))
    put(tmp_path, f"assets/{name}", b"")
    assert read.asset_path(name) == tmp_path / "assets" / name


@pytest.mark.parametrize(
    ("link", "to"),
    [
        ("assets", "directory"),
        ("assets.extra", "directory"),
        ("variables", "directory"),
        ("assets/vocab.txt", "file"),
        ("fingerprint.pb", "file"),
        ("saved_model.pb", "file"),
    ],
)
def test_links_out_of_the_directory_are_refused(tmp_path, link, to):
    inside, outside = tmp_path / "model", tmp_path / "outside"
    file = put(outside, "vocab.txt", schema.serialize(model()))
    target = file if to == "file" else outside
    message = model()
    message.meta_graphs[0].asset_file_def.add(filename="vocab.txt")
    if link != "saved_model.pb":
        save(inside, message)
    (inside / link).parent.mkdir(parents=True, exist_ok=True)
    (inside / link).symlink_to(target)

    def look(**options):
        read = layout.read(inside, **options)
        return (
            read.assets(read.meta_graph()),
            read.fingerprint,
            read.extra_assets,
            read.has_checkpoint,
            read.checkpoint_prefix,
        )

    with pytest.raises(errors.PathEscapeError, match="symbolic link"):
        look()
    look(follow_links=True)


def test_links_inside_the_directory_are_fine(tmp_path):
    """A Kubernetes volume looks like this."""
    put(tmp_path, "data1/saved_model.pb", schema.serialize(model()))
    (tmp_path / "..data").symlink_to("data1")
    (tmp_path / "saved_model.pb").symlink_to("..data/saved_model.pb")
    assert layout.read(tmp_path).tag_sets == (frozenset(["serve"]),)


def test_a_link_to_the_directory_is_fine(tmp_path):
    save(tmp_path / "real")
    (tmp_path / "latest").symlink_to("real")
    assert layout.read(tmp_path / "latest").directory == tmp_path / "latest"


def test_listing_does_not_enter_links(tmp_path):
    save(tmp_path / "model")
    (tmp_path / "model/loop").symlink_to(".")
    (tmp_path / "model/out").symlink_to(tmp_path)
    assert layout.read(tmp_path / "model").names == ("loop", "out", "saved_model.pb")


# bounded


def test_damage_anywhere_is_an_error_with_a_name_or_another_model(tmp_path):
    """Every byte of a small model changed, and the file cut everywhere."""
    data = schema.serialize(model(("serve",), ("serve", "gpu")))
    path = tmp_path / "saved_model.pb"
    outcomes = set()
    for position in range(len(data)):
        for damaged in (
            data[:position],
            data[:position] + bytes([data[position] ^ 0xFF]) + data[position + 1 :],
        ):
            path.write_bytes(damaged)
            try:
                layout.read(tmp_path)
                outcomes.add("read")
            except errors.SavedModelError as error:
                outcomes.add(type(error).__name__)
    assert outcomes >= {"read", "TruncatedError", "MalformedError", "NoMetaGraphError"}


# real TensorFlow


@pytest.mark.tensorflow
def test_reads_what_tensorflow_saves_and_tensorflow_reads_what_we_write(tmp_path):
    import tensorflow as tf

    class Model(tf.Module):
        def __init__(self):
            self.w = tf.Variable([1.0, 2.0])

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def f(self, x):
            return x * self.w

    tf.saved_model.save(Model(), str(tmp_path / "theirs"))
    read = layout.read(tmp_path / "theirs")
    assert read.fingerprint.saved_model_checksum
    for text in (False, True):
        ours = tmp_path / f"ours{text}"
        write(ours, read.saved_model, checkpoint=read.checkpoint_prefix, text=text)
        assert list(tf.saved_model.load(str(ours)).f([3.0, 4.0]).numpy()) == [3.0, 8.0]


# models of other people


def test_every_model_of_the_zoo_is_read_or_refused_by_name():
    directories = zoo.models()
    if not directories:
        pytest.skip(zoo.ABSENT)
    refused = []
    for directory in directories:
        try:
            read = layout.read(directory)
            (
                read.fingerprint,
                read.debug_info,
                read.names,
                [read.assets(graph) for graph in read.saved_model.meta_graphs],
            )
        except errors.SavedModelError as error:
            refused.append((directory.name, type(error).__name__))
        else:
            if read.file.suffix == ".pb":
                assert len(schema.serialize(read.saved_model)) == read.file.stat().st_size
            for name in read.alternatives:
                other = layout.read_message(directory / name)
                assert schema.serialize(other) == schema.serialize(read.saved_model)
    assert len(directories) > 100
    assert refused == []
