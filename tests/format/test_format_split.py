"""The split format: record files, chunk metadata, and what is wrong with them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from layout_models import model, put

from reference_impl import errors
from reference_impl.format import limits, schema
from reference_impl.format.container import layout, split
from reference_impl.format.container.highwayhash import highwayhash64
from savedmodel_kit.forge import records
from savedmodel_kit.forge.records import Forge


def test_checksums_are_highwayhash():
    """Vectors that the authors of HighwayHash publish, and the first 64 bytes of every record file
    in the world.
    """
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
CONSTANT = records.path(2, ("index", 0), 2, 1, ("index", 0), 5, ("key", "value"), 8, 4)


def write_split(path, chunks, root, compression=0):
    """Each chunk a record of its own; `chunks` are (type, bytes)."""
    forge = Forge()
    infos = []
    for kind, data in chunks:
        (position,) = forge.records(data, compression=compression)
        infos.append((kind, position, len(data)))
    forge.records(schema.serialize(records.metadata(infos, root)))
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


def test_compressed_chunks_without_their_package(tmp_path, monkeypatch):
    write_split(tmp_path / "saved_model.cpb", [(MESSAGE, b"")], chunked(0), ord("z"))
    monkeypatch.setitem(sys.modules, "cramjam", None)
    with pytest.raises(
        errors.MissingPackageError,
        match=r"saved_model.cpb: chunk at .*zstd, .* pip install cramjam",
    ) as caught:
        layout.read(tmp_path)
    assert not errors.about_the_model(caught.value)


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
    path = records.path
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
    cut = [field(records.path(2, 1, ("index", i)), chunked(i)) for i in range(2)]
    path = write_split(tmp_path / "x.cpb", [(BYTES, b"a"), (BYTES, b"b")], chunked(None, *cut))
    assert split.read(schema.CollectionDef, path) == collection


def test_a_message_of_no_bytes(tmp_path):
    path = write_split(tmp_path / "x.cpb", [(MESSAGE, b"")], chunked(0))
    assert split.read(schema.CollectionDef, path) == schema.CollectionDef()


REST = schema.serialize(model(weight=b""))
P = records.path
WRONG_METADATA = {
    "no such chunk": (chunked(7), errors.SplitFileError, "chunk 7 of 2"),
    "used twice": (chunked(0, field([], chunked(0))), errors.SplitFileError, "used twice"),
    "bytes as a message": (chunked(1), errors.SplitFileError, "of type 2, not 1"),
    "message as bytes": (
        chunked(None, field(CONSTANT, chunked(0))),
        errors.SplitFileError,
        "of type 1, not 2",
    ),
    "no such field": (
        chunked(0, field(P(99), chunked(1))),
        errors.SplitFileError,
        "has no field 99",
    ),
    "index out of the list": (
        chunked(0, field(P(2, ("index", 5)), chunked(1))),
        errors.SplitFileError,
        "index 5 of a list of 1",
    ),
    "list without an index": (
        chunked(0, field(P(2, 2), chunked(1))),
        errors.SplitFileError,
        "without an index",
    ),
    "index first": (
        chunked(0, field(P(("index", 0)), chunked(1))),
        errors.SplitFileError,
        "a field was expected",
    ),
    "index of a single message": (
        chunked(0, field(P(2, ("index", 0), 2, ("index", 0)), chunked(1))),
        errors.SplitFileError,
        "single message",
    ),
    "number cut out": (
        chunked(0, field(P(1), chunked(1))),
        errors.SplitFileError,
        "only messages, strings and bytes",
    ),
    "into bytes": (
        chunked(0, field([*CONSTANT, *P(1)], chunked(1))),
        errors.SplitFileError,
        "only messages",
    ),
    "map without a key": (
        chunked(0, field(P(2, ("index", 0), 5, 1), chunked(1))),
        errors.SplitFileError,
        "without a key",
    ),
    "bytes in parts": (
        chunked(0, field(CONSTANT, chunked(1, field([], chunked())))),
        errors.SplitFileError,
        "exactly one chunk",
    ),
}
NODES = {
    "used twice": None,
    "map without a key": "meta_graphs.signature_def",
    "index out of the list": "meta_graphs",
}


@pytest.mark.parametrize("case", WRONG_METADATA)
def test_wrong_chunk_metadata(tmp_path, case):
    root, kind, reason = WRONG_METADATA[case]
    write_split(tmp_path / "saved_model.cpb", [(MESSAGE, REST), (BYTES, b"w")], root)
    with pytest.raises(kind, match=reason) as caught:
        layout.read(tmp_path)
    assert caught.value.file == str(tmp_path / "saved_model.cpb")
    assert caught.value.node == NODES.get(case, caught.value.node or None)


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
    forge.records(
        schema.serialize(records.metadata(chunks or [(MESSAGE, 64, len(REST))], chunked(0)))
    )


def flip(forge, position):
    forge.data[position] ^= 1


def cut(forge, size):
    del forge.data[size:]


def bomb(forge):
    packed = records.PACKERS[ord("b")](b"\0" * 10_000_000)
    sizes = records.PACKERS[ord("b")](records.write_varint(10_000_000))
    forge.chunk(b"r", b"b" + records.write_varint(len(sizes)) + sizes + packed, 1, 100)


RECORDS = {
    "empty file": (lambda f: cut(f, 0), errors.SplitFileError, "not a record file"),
    "another file": (
        lambda f: f.data.__setitem__(slice(24, 64), b"x" * 40),
        errors.SplitFileError,
        "not a record file",
    ),
    "signature only": (lambda f: None, errors.SplitFileError, "holds no record"),
    "damaged header": (
        lambda f: (f.records(REST), flip(f, 80)),
        errors.ChecksumError,
        "header of a chunk",
    ),
    "damaged data": (
        lambda f: (f.records(REST), finish(f), flip(f, 120)),
        errors.ChecksumError,
        "data of a chunk",
    ),
    "cut off": (
        lambda f: (f.records(REST), finish(f), cut(f, len(f.data) - 5)),
        errors.TruncatedError,
        "5 bytes are missing",
    ),
    "no data": (lambda f: f.chunk(b"r", b"", 1, 0), errors.SplitFileError, "no data"),
    "transposed": (lambda f: f.chunk(b"t", b"\0", 1, 0), errors.UnsupportedError, "transposed"),
    "unknown chunk": (lambda f: f.chunk(b"?", b"", 0, 0), errors.UnsupportedError, "0x3f"),
    "records in metadata": (
        lambda f: f.chunk(b"m", b"\0\0", 1, 0),
        errors.SplitFileError,
        "cannot hold records",
    ),
    "unknown compression": (
        lambda f: f.chunk(b"r", b"?\x01\x01x", 1, 1),
        errors.UnsupportedError,
        "0x3f",
    ),
    "bad brotli": (
        lambda f: f.chunk(b"r", b"b\x03\x01\xff\xff\x01\xff", 1, 1),
        errors.SplitFileError,
        "brotli",
    ),
    "bomb": (bomb, errors.SplitFileError, "10000000 bytes are promised where 100"),
    "sizes over the end": (
        lambda f: f.chunk(b"r", b"\0\x7f\x01x", 1, 1),
        errors.SplitFileError,
        "over the end",
    ),
    "sizes too large": (
        lambda f: f.chunk(b"r", b"\0\x01\x05x", 1, 1),
        errors.SplitFileError,
        "exceed",
    ),
    "sizes too small": (
        lambda f: f.chunk(b"r", b"\0\x01\x01xyz", 1, 3),
        errors.SplitFileError,
        "do not add up",
    ),
    "sizes missing": (
        lambda f: f.chunk(b"r", b"\0\x01\x01x", 2, 1),
        errors.SplitFileError,
        "cut off",
    ),
    "records without end": (lambda f: promise(f), errors.LimitError, "more than"),
    "unpacks without end": (
        lambda f: f.chunk(b"r", b"", 0, 2**40),
        errors.LimitError,
        "unpacks to",
    ),
    "no record there": (
        lambda f: (f.records(REST), finish(f, [(MESSAGE, 65, 1)])),
        errors.SplitFileError,
        "position 65",
    ),
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
    forge.write(struct.pack("<Q", records.highwayhash64(records.KEY, rest)) + rest)


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
        read = layout.read(tmp_path)
    except errors.SavedModelError as error:
        assert str(error)
    else:
        assert read.saved_model.meta_graphs


HOSTILE = """
import resource, sys
from reference_impl import errors
from reference_impl.format.container import layout
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
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", HOSTILE, *map(str, cases)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == list(cases.values()), done.stderr
