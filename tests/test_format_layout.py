"""reference_impl.format.layout, split, layout_writer: SavedModel directories."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import riegeli_forge
import zoo
from riegeli_forge import Forge

from reference_impl.format import errors, layout, layout_writer, limits, schema, split
from reference_impl.format.highwayhash import highwayhash64
from reference_impl.format.layout_writer import LayoutWriter, write


def model(*tag_sets, version=1, weight=b"\0" * 8):
    """A SavedModel with a MetaGraph for each set of tags, each with one constant."""
    message = schema.SavedModel(saved_model_schema_version=version)
    for tags in tag_sets or [("serve",)]:
        graph = message.meta_graphs.add()
        graph.meta_info_def.tags.extend(tags)
        node = graph.graph_def.node.add(name="c", op="Const")
        node.attr["value"].tensor.tensor_content = weight
    return message


def put(directory, name, content):
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def save(directory, message=None):
    put(directory, "saved_model.pb", schema.serialize(message or model()))
    return directory


# reading


def test_a_directory_with_everything(tmp_path):
    message = model()
    message.meta_graphs[0].asset_file_def.add(filename="vocab.txt").tensor_info.name = "Const:0"
    save(tmp_path, message)
    put(tmp_path, "variables/variables.index", b"")
    put(tmp_path, "assets/vocab.txt", b"a\n")
    put(tmp_path, "assets.extra/sub/warmup", b"")
    put(tmp_path, "fingerprint.pb", schema.serialize(schema.FingerprintDef(uuid="u")))
    put(tmp_path, "debug/saved_model_debug_info.pb", schema.serialize(schema.GraphDebugInfo(files=["f.py"])))
    read = layout.read(tmp_path)
    assert read.saved_model == message
    assert read.file == tmp_path / "saved_model.pb"
    assert read.checkpoint_prefix == tmp_path / "variables" / "variables"
    assert read.has_checkpoint
    assert read.fingerprint.uuid == "u"
    assert list(read.debug_info.files) == ["f.py"]
    assert read.assets(read.meta_graph()) == [layout.Asset("Const:0", "vocab.txt", tmp_path / "assets/vocab.txt", True)]
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
    message.meta_graphs[0].collection_def["saved_model_assets"].any_list.value.add().Pack(definition)
    read = layout.read(save(tmp_path, message))
    assert [(asset.filename, asset.exists) for asset in read.assets(read.meta_graph())] == [("v.txt", False)]
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
        with pytest.raises(errors.NoMetaGraphError, match=r"there are: serve; gpu, serve; \(no tags\)") as caught:
            read.meta_graph(tags)
        assert caught.value.clause == "V1-05"
    with pytest.raises(errors.NoMetaGraphError, match="3 MetaGraphs") as caught:
        read.meta_graph()
    assert caught.value.clause == "V1-04"


def test_one_metagraph_needs_no_tags(tmp_path):
    assert layout.read(save(tmp_path, model(("train",)))).meta_graph().meta_info_def.tags == ["train"]


def test_equal_tag_sets_cannot_be_chosen_between(tmp_path):
    read = layout.read(save(tmp_path, model(("a", "b"), ("b", "a"))))
    with pytest.raises(errors.DuplicateKeyError, match="2 MetaGraphs have the tags a, b"):
        read.meta_graph(["a", "b"])


# what is no SavedModel


def test_an_empty_directory(tmp_path):
    with pytest.raises(errors.NotASavedModelError, match=r"saved_model\.pb"):
        layout.read(tmp_path)


def test_nothing_there(tmp_path):
    with pytest.raises(errors.MissingFileError):
        layout.read(tmp_path / "absent")


@pytest.mark.parametrize("version", [0, 2, -1])
def test_another_schema_version(tmp_path, version):
    with pytest.raises(errors.SchemaVersionError, match=f"is {version}, not 1"):
        layout.read(save(tmp_path, model(version=version)))


def test_a_fingerprint_is_no_savedmodel(tmp_path):
    """It parses as one, with a nonsense version."""
    message = schema.FingerprintDef(saved_model_checksum=2**60, graph_def_program_hash=3)
    with pytest.raises(errors.SchemaVersionError):
        layout.read(put(tmp_path, "saved_model.pb", schema.serialize(message)))


def test_modules_of_tensorflow_hub_have_no_version(tmp_path):
    save(tmp_path, model((), version=0))
    put(tmp_path, "tfhub_module.pb", b"\x08\x03")
    assert layout.read(tmp_path).tag_sets == (frozenset(),)
    save(tmp_path, model((), version=2))
    with pytest.raises(errors.SchemaVersionError):
        layout.read(tmp_path)


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


@pytest.mark.parametrize("name", ["vocab.txt", "sub/vocab.txt", "..vocab", "été ☃.txt", "a b", "-x"])
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
        return read.assets(read.meta_graph()), read.fingerprint, read.extra_assets, read.has_checkpoint, read.checkpoint_prefix

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


# the split format


def test_checksums_are_highwayhash():
    """Vectors that the authors of HighwayHash publish, and the first 64 bytes of every record file in the world."""
    key = (0x0706050403020100, 0x0F0E0D0C0B0A0908, 0x1716151413121110, 0x1F1E1D1C1B1A1918)
    published = {
        0: 0x907A56DE22C26E53,
        1: 0x7EAB43AAC7CDDD78,
        2: 0xB8D0569AB0B53D62,
        3: 0x5C6BEFAB8A463D80,
        5: 0x2B8A1668E4A94541,
        16: 0xCFAB3489F97EB832,
        17: 0x19FE67D2C8C5C0E2,
    }
    assert {size: highwayhash64(key, bytes(range(size))) for size in published} == published
    first = "83af70d10d884a3f00000000000000004000000000000000"
    then = "91bac23c9287e1a90000000000000000e19f13c0e9b1c37273000000000000000000000000000000"
    assert Forge().data == bytes.fromhex(first + then)


def chunked(index=None, *cut_out):
    message = schema.ChunkedMessage(chunked_fields=cut_out)
    if index is not None:
        message.chunk_index = index
    return message


def field(tags, message):
    return schema.ChunkedField(field_tag=tags, message=message)


MESSAGE, BYTES = 1, 2
# SavedModel.meta_graphs[0].graph_def.node[0].attr["value"].tensor.tensor_content
CONSTANT = riegeli_forge.path(2, ("index", 0), 2, 1, ("index", 0), 5, ("key", "value"), 8, 4)


def write_split(path, chunks, root, compression=0):
    """Each chunk a record of its own; `chunks` are (type, bytes)."""
    forge = Forge()
    infos = []
    for kind, data in chunks:
        (position,) = forge.records(data, compression=compression)
        infos.append((kind, position, len(data)))
    forge.records(schema.serialize(riegeli_forge.metadata(infos, root)))
    return forge.save(path)


@pytest.mark.clause("DR-09")
@pytest.mark.parametrize("compression", ["none", "brotli", "zstd", "snappy"])
def test_a_constant_cut_out(tmp_path, compression):
    weight = os.urandom(200_000)  # over several blocks of the file
    whole, rest = model(weight=weight), model(weight=b"")
    code = {"none": 0, "brotli": ord("b"), "zstd": ord("z"), "snappy": ord("s")}[compression]
    chunks = [(MESSAGE, schema.serialize(rest)), (BYTES, weight)]
    write_split(tmp_path / "saved_model.cpb", chunks, chunked(0, field(CONSTANT, chunked(1))), code)
    assert layout.read(tmp_path).saved_model == whole


@pytest.mark.clause("DR-09")
def test_functions_and_map_values_cut_out(tmp_path):
    whole = model(("serve",), ("train",))
    library = whole.meta_graphs[1].graph_def.library
    for name in ("f", "g"):
        library.function.add().signature.name = name
    whole.meta_graphs[0].signature_def["predict"].method_name = "m"
    f, g = (schema.serialize(function) for function in library.function)
    signature = schema.serialize(whole.meta_graphs[0].signature_def["predict"])
    rest = schema.SavedModel.FromString(schema.serialize(whole))
    del rest.meta_graphs[1].graph_def.library.function[:]
    del rest.meta_graphs[0].signature_def["predict"]
    one, train = schema.serialize(rest.meta_graphs[0]), schema.serialize(rest.meta_graphs[1])
    path = riegeli_forge.path
    root = chunked(
        None,  # nothing but what is cut out
        field([], chunked(0)),
        field(path(2, ("index", 0)), chunked(1, field(path(5, ("key", "predict")), chunked(2)))),
        field(
            path(2, ("index", 1)),
            chunked(
                3,
                field(path(2, 2, 1, ("index", 0)), chunked(4)),
                field(path(2, 2, 1, ("index", 1)), chunked(5)),
            ),
        ),
    )
    head = schema.serialize(schema.SavedModel(saved_model_schema_version=1))
    chunks = [(MESSAGE, data) for data in (head, one, signature, train, f, g)]
    write_split(tmp_path / "saved_model.cpb", chunks, root)
    assert layout.read(tmp_path).saved_model == whole


def test_a_list_of_strings_cut_out(tmp_path):
    collection = schema.CollectionDef()
    collection.bytes_list.value.extend([b"a", b"b"])
    cut = [field(riegeli_forge.path(2, 1, ("index", i)), chunked(i)) for i in range(2)]
    path = write_split(tmp_path / "x.cpb", [(BYTES, b"a"), (BYTES, b"b")], chunked(None, *cut))
    assert split.read(schema.CollectionDef, path) == collection


REST = schema.serialize(model(weight=b""))
P = riegeli_forge.path
WRONG_METADATA = {
    "no such chunk": (chunked(7), errors.SplitFileError, "chunk 7 of 2"),
    "used twice": (chunked(0, field([], chunked(0))), errors.SplitFileError, "used twice"),
    "bytes as a message": (chunked(1), errors.SplitFileError, "of type 2, not 1"),
    "message as bytes": (chunked(None, field(CONSTANT, chunked(0))), errors.SplitFileError, "of type 1, not 2"),
    "no such field": (chunked(0, field(P(99), chunked(1))), errors.SplitFileError, "has no field 99"),
    "index out of the list": (chunked(0, field(P(2, ("index", 5)), chunked(1))), errors.SplitFileError, "index 5 of a list of 1"),
    "list without an index": (chunked(0, field(P(2, 2), chunked(1))), errors.SplitFileError, "without an index"),
    "index first": (chunked(0, field(P(("index", 0)), chunked(1))), errors.SplitFileError, "a field was expected"),
    "index of a single message": (
        chunked(0, field(P(2, ("index", 0), 2, ("index", 0)), chunked(1))),
        errors.SplitFileError,
        "single message",
    ),
    "number cut out": (chunked(0, field(P(1), chunked(1))), errors.SplitFileError, "only messages, strings and bytes"),
    "into bytes": (chunked(0, field([*CONSTANT, *P(1)], chunked(1))), errors.SplitFileError, "only messages"),
    "map without a key": (chunked(0, field(P(2, ("index", 0), 5, 1), chunked(1))), errors.SplitFileError, "without a key"),
    "bytes in parts": (chunked(0, field(CONSTANT, chunked(1, field([], chunked())))), errors.SplitFileError, "exactly one chunk"),
}


@pytest.mark.parametrize("case", WRONG_METADATA)
def test_wrong_chunk_metadata(tmp_path, case):
    root, kind, reason = WRONG_METADATA[case]
    write_split(tmp_path / "saved_model.cpb", [(MESSAGE, REST), (BYTES, b"w")], root)
    with pytest.raises(kind, match=reason) as caught:
        layout.read(tmp_path)
    assert caught.value.file == str(tmp_path / "saved_model.cpb")


def test_chunk_metadata_nested_without_end(tmp_path, monkeypatch):
    root = chunked()
    for _ in range(45):  # two messages each: what a protocol message can hold
        root = chunked(None, field([], root))
    write_split(tmp_path / "saved_model.cpb", [], root)
    monkeypatch.setattr(limits, "MESSAGE_DEPTH", 40)
    with pytest.raises(errors.LimitError, match="nested deeper"):
        layout.read(tmp_path)


def forged(change):
    """A right split file and then one thing wrong."""
    forge = Forge()
    change(forge)
    return forge


def finish(forge, chunks=None):
    """Append chunk metadata; by default the first record is the whole message."""
    forge.records(schema.serialize(riegeli_forge.metadata(chunks or [(MESSAGE, 64, len(REST))], chunked(0))))


def flip(forge, position):
    forge.data[position] ^= 1


def cut(forge, size):
    del forge.data[size:]


def bomb(forge):
    packed = riegeli_forge.PACKERS[ord("b")](b"\0" * 10_000_000)
    sizes = riegeli_forge.PACKERS[ord("b")](riegeli_forge.write_varint(10_000_000))
    forge.chunk(b"r", b"b" + riegeli_forge.write_varint(len(sizes)) + sizes + packed, 1, 100)


RECORDS = {
    "empty file": (lambda f: cut(f, 0), errors.SplitFileError, "not a record file"),
    "another file": (lambda f: f.data.__setitem__(slice(24, 64), b"x" * 40), errors.SplitFileError, "not a record file"),
    "signature only": (lambda f: None, errors.SplitFileError, "holds no record"),
    "damaged header": (lambda f: (f.records(REST), flip(f, 80)), errors.ChecksumError, "header of a chunk"),
    "damaged data": (lambda f: (f.records(REST), finish(f), flip(f, 120)), errors.ChecksumError, "data of a chunk"),
    "cut off": (lambda f: (f.records(REST), finish(f), cut(f, len(f.data) - 5)), errors.TruncatedError, "5 bytes are missing"),
    "no data": (lambda f: f.chunk(b"r", b"", 1, 0), errors.SplitFileError, "no data"),
    "transposed": (lambda f: f.chunk(b"t", b"\0", 1, 0), errors.UnsupportedError, "transposed"),
    "unknown chunk": (lambda f: f.chunk(b"?", b"", 0, 0), errors.UnsupportedError, "0x3f"),
    "records in metadata": (lambda f: f.chunk(b"m", b"\0\0", 1, 0), errors.SplitFileError, "cannot hold records"),
    "unknown compression": (lambda f: f.chunk(b"r", b"?\x01\x01x", 1, 1), errors.UnsupportedError, "0x3f"),
    "bad brotli": (lambda f: f.chunk(b"r", b"b\x03\x01\xff\xff\x01\xff", 1, 1), errors.SplitFileError, "brotli"),
    "bomb": (bomb, errors.SplitFileError, "10000000 bytes are promised where 100"),
    "sizes over the end": (lambda f: f.chunk(b"r", b"\0\x7f\x01x", 1, 1), errors.SplitFileError, "over the end"),
    "sizes too large": (lambda f: f.chunk(b"r", b"\0\x01\x05x", 1, 1), errors.SplitFileError, "exceed"),
    "sizes too small": (lambda f: f.chunk(b"r", b"\0\x01\x01xyz", 1, 3), errors.SplitFileError, "do not add up"),
    "sizes missing": (lambda f: f.chunk(b"r", b"\0\x01\x01x", 2, 1), errors.SplitFileError, "cut off"),
    "records without end": (lambda f: promise(f), errors.LimitError, "more than"),
    "unpacks without end": (lambda f: f.chunk(b"r", b"", 0, 2**40), errors.LimitError, "unpacks to"),
    "no record there": (lambda f: (f.records(REST), finish(f, [(MESSAGE, 65, 1)])), errors.SplitFileError, "position 65"),
    "record of another size": (
        lambda f: (f.records(REST), finish(f, [(MESSAGE, 64, 1)])),
        errors.SplitFileError,
        "bytes, not 1",
    ),
    "a chunk that is no message": (
        lambda f: (f.records(b"\x7f"), finish(f, [(MESSAGE, 64, 1)])),
        errors.MalformedError,
        "wire type 7",
    ),
}


def promise(forge):
    """A chunk header that promises 2**40 records, without the zeros that would stand for them."""
    import struct

    rest = struct.pack("<4Q", 0, 0, ord("r") | 2**40 << 8, 0)
    forge.write(struct.pack("<Q", riegeli_forge.highwayhash64(riegeli_forge.KEY, rest)) + rest)


@pytest.mark.parametrize("case", RECORDS)
def test_wrong_record_files(tmp_path, case):
    change, kind, reason = RECORDS[case]
    forged(change).save(tmp_path / "saved_model.cpb")
    with pytest.raises(kind, match=reason):
        layout.read(tmp_path)


def test_data_behind_the_checksum_budget_are_still_bounded(tmp_path, monkeypatch):
    """Without the checksum a damaged chunk is whatever it is, but an error has a name."""
    monkeypatch.setattr(limits, "SPLIT_CHECKSUM_BYTES", 0)
    forged(RECORDS["damaged data"][0]).save(tmp_path / "saved_model.cpb")
    try:
        layout.read(tmp_path)
    except errors.SavedModelError:
        pass


# writing


def test_what_is_written_is_read(tmp_path):
    message = model(("serve",), ("train",))
    source = put(tmp_path, "source/vocab.txt", b"a\n")
    put(tmp_path, "source/ckpt.index", b"i")
    put(tmp_path, "source/ckpt.data-00000-of-00001", b"d")
    put(tmp_path, "source/ckpt-2.index", b"another")
    target = tmp_path / "parent" / "model"
    write(target, message, assets={"vocab.txt": source, "sub/b": b"b"}, checkpoint=tmp_path / "source/ckpt")
    read = layout.read(target)
    assert read.saved_model == message
    assert read.names == (
        "assets/sub/b",
        "assets/vocab.txt",
        "saved_model.pb",
        "variables/variables.data-00000-of-00001",
        "variables/variables.index",
    )
    assert (target / "assets/vocab.txt").read_bytes() == b"a\n"
    assert [path.name for path in target.parent.iterdir()] == ["model"]


def test_every_member_can_be_written(tmp_path):
    with LayoutWriter(tmp_path / "m") as out:
        out.saved_model(model(), text=True)
        out.fingerprint(schema.FingerprintDef(uuid="u"))
        out.debug_info(schema.GraphDebugInfo(files=["f"]))
        out.extra_asset("warmup", b"w")
        out.checkpoint_prefix.with_suffix(".index").write_bytes(b"")
    read = layout.read(tmp_path / "m")
    assert read.file.name == "saved_model.pbtxt"
    assert (read.fingerprint.uuid, list(read.debug_info.files), read.extra_assets) == ("u", ["f"], ("warmup",))
    assert read.has_checkpoint


@pytest.mark.parametrize("exchange", [True, False])
def test_replacing_leaves_nothing_of_the_old_export(tmp_path, monkeypatch, exchange):
    if not exchange:
        monkeypatch.setattr(layout_writer, "_exchange", lambda first, second: False)
    target = tmp_path / "m"
    write(target, model(("old",)), assets={"old.txt": b""})
    target.chmod(0o750)
    with pytest.raises(errors.FileAccessError, match="not empty"):
        write(target, model(("new",)))
    write(target, model(("new",)), assets={"new.txt": b""}, replace=True)
    assert layout.read(target).names == ("assets/new.txt", "saved_model.pb")
    assert target.stat().st_mode & 0o777 == 0o750
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_directory_with_other_things_is_not_replaced(tmp_path):
    save(tmp_path / "m")
    put(tmp_path / "m", "thesis.tex", b"years of work")
    with pytest.raises(errors.FileAccessError, match=r"thesis\.tex"):
        write(tmp_path / "m", model(), replace=True)
    assert (tmp_path / "m/thesis.tex").exists()


def test_a_failed_write_leaves_the_old_export(tmp_path):
    write(tmp_path / "m", model(("old",)))
    failures = {
        "asset missing": lambda out: out.asset("v", tmp_path / "absent"),
        "asset escapes": lambda out: out.asset("../../v", b""),
        "asset twice": lambda out: [out.asset("v", b"") for _ in range(2)],
        "no checkpoint": lambda out: out.copy_checkpoint(tmp_path / "absent"),
        "version": lambda out: out.saved_model(model(version=3)),
        "empty": lambda out: out.saved_model(schema.SavedModel(saved_model_schema_version=1)),
        "nothing": lambda out: None,
        "the user's own": lambda out: 1 / 0,
    }
    caught = {}
    for name, fail in failures.items():
        with pytest.raises(Exception) as info, LayoutWriter(tmp_path / "m", replace=True) as out:
            fail(out)
        caught[name] = info.type
        assert layout.read(tmp_path / "m").tag_sets == (frozenset(["old"]),)
        assert [path.name for path in tmp_path.iterdir()] == ["m"]
    assert caught == {
        "asset missing": errors.MissingFileError,
        "asset escapes": errors.PathEscapeError,
        "asset twice": errors.DuplicateKeyError,
        "no checkpoint": errors.MissingFileError,
        "version": errors.SchemaVersionError,
        "empty": errors.NoMetaGraphError,
        "nothing": errors.NotASavedModelError,
        "the user's own": ZeroDivisionError,
    }


def test_a_target_that_is_a_file(tmp_path):
    put(tmp_path, "file", b"x")
    with pytest.raises(errors.FileAccessError):
        write(tmp_path / "file", model(), replace=True)
    with pytest.raises(errors.SavedModelError):
        write(tmp_path / "file" / "below", model())
    assert (tmp_path / "file").read_bytes() == b"x"


WRITE_FOR_EVER = """
import sys
from reference_impl.format import schema
from reference_impl.format.layout_writer import write
number = 0
while True:
    number += 1
    model = schema.SavedModel(saved_model_schema_version=1)
    model.meta_graphs.add().meta_info_def.tags.append(str(number))
    write(sys.argv[1], model, assets={"number": str(number).encode()}, replace=True)
    if number == 1:
        print("started", flush=True)
"""


def test_a_kill_leaves_one_export_whole(tmp_path):
    """Killed at ten different moments, the directory holds graph and asset of one and the same export."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    seen = set()
    for attempt in range(10):
        target = tmp_path / str(attempt) / "model"
        command = [sys.executable, "-c", WRITE_FOR_EVER, str(target)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "started\n"
            time.sleep(0.003 * attempt)
            process.send_signal(signal.SIGKILL)
        (tags,) = layout.read(target).tag_sets
        assert {(target / "assets/number").read_text()} == tags
        seen |= tags
    assert len(seen) > 1


# bounded


HOSTILE = """
import resource, sys
from reference_impl.format import errors, layout
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
for path in sys.argv[1:]:
    try:
        layout.read(path)
        print("read")
    except errors.SavedModelError as error:
        print(type(error).__name__)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no address space limit")
def test_hostile_files_are_refused_in_a_gigabyte(tmp_path):
    def split_file(name, change):
        return forged(change).save(tmp_path / name)

    length = b"\x12\xff\xff\xff\xff\x07"
    cases = {
        put(tmp_path, "length.pb", length): "TruncatedError",
        put(tmp_path, "nest.pb", b"\x12" * 2_000_000): "TruncatedError",
        put(tmp_path, "messages.pb", b"\x08\x01" + b"\x12\x00" * 12_000_000): "LimitError",
        put(tmp_path, "nest.pbtxt", b"meta_graphs{" * 200_000): "MalformedError",
        put(tmp_path, "zeros.pb", b"\0" * 1_000_000): "MalformedError",
        put(tmp_path, "varint.pb", b"\xff" * 1_000_000): "MalformedError",
        split_file("bomb.cpb", bomb): "SplitFileError",
        split_file("records.cpb", promise): "LimitError",
    }
    with (tmp_path / "sparse.cpb").open("wb") as file:
        file.truncate(2**36)
    cases[tmp_path / "sparse.cpb"] = "LimitError"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    command = [sys.executable, "-c", HOSTILE, *map(str, cases)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == list(cases.values()), done.stderr


def test_damage_anywhere_is_an_error_with_a_name_or_another_model(tmp_path):
    """Every byte of a small model changed, and the file cut everywhere."""
    data = schema.serialize(model(("serve",), ("serve", "gpu")))
    path = tmp_path / "saved_model.pb"
    outcomes = set()
    for position in range(len(data)):
        for damaged in (data[:position], data[:position] + bytes([data[position] ^ 0xFF]) + data[position + 1 :]):
            path.write_bytes(damaged)
            try:
                layout.read(tmp_path)
                outcomes.add("read")
            except errors.SavedModelError as error:
                outcomes.add(type(error).__name__)
    assert outcomes >= {"read", "TruncatedError", "MalformedError", "SchemaVersionError", "NoMetaGraphError"}


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
            read.fingerprint, read.debug_info, read.names, [read.assets(graph) for graph in read.saved_model.meta_graphs]
        except errors.SavedModelError as error:
            refused.append((directory.name, type(error).__name__))
        else:
            if read.file.suffix == ".pb":
                assert len(schema.serialize(read.saved_model)) == read.file.stat().st_size
            for name in read.alternatives:
                other = layout.read_message(directory / name)
                assert schema.serialize(other) == schema.serialize(read.saved_model)
    assert len(directories) > 100
    assert refused == [("graphcore__tensorflow__12", "SchemaVersionError")]
