"""Damaged and hostile bundles: every kind has its own error, within bounded memory, and nothing
else is raised.
"""

import struct
import tracemalloc

import numpy as np
import pytest

from reference_impl.errors import (
    ChecksumError,
    CorruptTableError,
    DtypeError,
    LimitError,
    MalformedError,
    MissingKeyError,
    SchemaVersionError,
    ShapeError,
    TruncatedError,
)
from reference_impl.format import limits, schema
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.bundle.slices import slice_key
from reference_impl.format.names import OBJECT_GRAPH_KEY
from savedmodel_kit.forge import tables as forge

FOUR = np.float32([1, 2, 3, 4]).tobytes()
STRING, VARIANT, INT32 = 7, 21, 3


@pytest.fixture(autouse=True)
def bounded_memory():
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 << 20


def text(items, shape=None, **faults):
    """Entry and data of a string tensor."""
    data, crc = forge.strings(items, **faults)
    return forge.tensor(data, STRING, (len(items),) if shape is None else shape, crc32c=crc), data


def variant(items, shape=None, spoil=0):
    """Entry and data of a variant tensor; `spoil` changes the elements' checksums, not the
    entry's.
    """
    data, crc = b"", 0
    for item in items:
        crc = forge.google_crc32c.extend(crc, struct.pack("<Q", len(item)))
        crc = forge.google_crc32c.extend(crc, item)
        stored = struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8 + spoil) % 2**32)
        crc = forge.google_crc32c.extend(crc, stored)
        data += forge.varint(len(item)) + item + stored
    masked = (((crc >> 15) | (crc << 17)) + 0xA282EAD8) % 2**32
    return forge.tensor(
        data, VARIANT, (len(items),) if shape is None else shape, crc32c=masked
    ), data


def parts(pieces, shape=(4,), dtype=1, **listed):
    """Entries of a partitioned tensor `v` of four numbers: pieces are {(start, length): entry};
    listed pieces may differ.
    """
    whole = schema.BundleEntryProto(dtype=dtype)
    for size in shape:
        whole.shape.dim.add(size=size)
    for extent in listed.get("listed", pieces):
        forge.add_slice(whole, *(extent if isinstance(extent[0], tuple) else (extent,)))
    entries = {slice_key(b"v", (extent,)): entry for extent, entry in pieces.items()}
    return {**entries, b"v": whole}


def piece(start, length, **fields):
    data = FOUR[4 * start : 4 * (start + length)]
    return forge.tensor(data, shape=(length,), offset=4 * start, **fields)


def whole_entry(*args, **fields):
    return {b"v": forge.tensor(*args, **fields)}, FOUR


def pair(entry_and_data):
    entry, data = entry_and_data
    return {b"v": entry}, data


def with_shape(*shape, unknown=False, dtype=1, size=16):
    message = forge.tensor(FOUR, dtype, shape)
    message.shape.unknown_rank = unknown
    message.size = size
    return {b"v": message}, FOUR


THREE_STRINGS = [b"one", b"", b"three"]

# entries and data, error, reason; reading key `v` must raise it.
ENTRIES = {
    "no message": (({b"v": b"\x0f"}, FOUR), MalformedError, "wire type 7"),
    "dtype 0": (whole_entry(FOUR, 0, (4,)), DtypeError, "the dtype is invalid"),
    "dtype unknown": (whole_entry(FOUR, 77, (4,)), DtypeError, "no dtype has the number 77"),
    "dtype of a reference": (
        whole_entry(FOUR, 101, (4,)),
        DtypeError,
        "float32_ref cannot be stored",
    ),
    "resource": (whole_entry(FOUR, 20, (4,)), DtypeError, "resource cannot be stored"),
    "unknown rank": (with_shape(4, unknown=True), ShapeError, "unknown"),
    "negative dimension": (with_shape(-4), ShapeError, "negative dimension"),
    "two negative dimensions": (with_shape(-2, -2), ShapeError, "negative dimension"),
    "product over 64 bits": (
        with_shape(2**62, 2**62, 2**62),
        ShapeError,
        "more than TensorFlow can count",
    ),
    "product that is 0 in 64 bits": (
        with_shape(2**32, 2**32, size=0),
        ShapeError,
        "more than TensorFlow can count",
    ),
    "bytes over 64 bits": (with_shape(2**61), ShapeError, "more than TensorFlow can count"),
    "empty, but with huge dimensions": (
        with_shape(0, 2**62, size=0),
        ShapeError,
        "more than TensorFlow can count",
    ),
    "300 dimensions": (with_shape(*[1] * 300, size=4), ShapeError, "300 dimensions"),
    "a product of 4800 digits": (
        with_shape(*[2**63 - 1] * 254),
        ShapeError,
        "more than TensorFlow can count",
    ),
    "more elements than bytes": (with_shape(2**40), ShapeError, "16 bytes do not hold float32"),
    "more bytes than elements": (with_shape(3), ShapeError, "16 bytes do not hold float32"),
    "negative size": (with_shape(4, size=-16), ShapeError, "-16 bytes do not hold"),
    "huge string tensor": (with_shape(2**40, dtype=STRING), ShapeError, "do not hold string"),
    "huge variant tensor": (with_shape(2**40, dtype=VARIANT), ShapeError, "do not hold variant"),
    "offset beyond the shard": (
        whole_entry(FOUR, shape=(4,), offset=1),
        TruncatedError,
        "16 bytes at 1 are not within",
    ),
    "huge offset": (whole_entry(FOUR, shape=(4,), offset=2**63 - 1), TruncatedError, "not within"),
    "negative offset": (
        whole_entry(FOUR, shape=(4,), offset=-16),
        TruncatedError,
        "16 bytes at -16",
    ),
    "string over the end": (
        ({b"v": forge.tensor(FOUR * 2, STRING, (4,))}, FOUR),
        TruncatedError,
        "32 bytes at 0",
    ),
    "shard beyond the last": (
        whole_entry(FOUR, shape=(4,), shard_id=1),
        MalformedError,
        "shard 1 of a checkpoint with 1",
    ),
    "negative shard": (whole_entry(FOUR, shape=(4,), shard_id=-1), MalformedError, "shard -1"),
    "checksum": (
        whole_entry(FOUR, shape=(4,), crc=False),
        ChecksumError,
        "the index says 0x00000000",
    ),
    "strings: a length too much": (
        pair(text(THREE_STRINGS, lengths=[3, 0, 6])),
        MalformedError,
        "do not add up",
    ),
    "strings: a huge length": (
        pair(text(THREE_STRINGS, lengths=[2**63, 0, 5])),
        MalformedError,
        "do not add up",
    ),
    "strings: length over 64 bits": (
        ({b"v": forge.tensor(b"\xff" * 20, STRING, (1,))}, b"\xff" * 20),
        MalformedError,
        "length of string 0: .* too long",
    ),
    "strings: lengths up to the end": (
        ({b"v": forge.tensor(b"\x80" * 6, STRING, (2,))}, b"\x80" * 6),
        MalformedError,
        "length of string 0: .* cut off",
    ),
    "strings: nothing after the lengths": (
        ({b"v": forge.tensor(b"\x80\x80\x80\x80\x80\1", STRING, (2,))}, b"\x80\x80\x80\x80\x80\1"),
        MalformedError,
        "length of string 1: .* cut off",
    ),
    "strings: fewer lengths than elements": (
        pair(text([b"x"] * 3, (6,))),
        MalformedError,
        "do not add up|length of string",
    ),
    "strings: checksum of the lengths": (
        pair(text(THREE_STRINGS, checksum=1)),
        ChecksumError,
        "of the strings' lengths",
    ),
    "variants: over the end": (
        ({b"v": forge.tensor(b"\x20" + b"x" * 9, VARIANT, (1,))}, b"\x20" + b"x" * 9),
        MalformedError,
        "variant 0 of 32 bytes reaches over",
    ),
    "variants: length cut off": (
        ({b"v": forge.tensor(b"\x80" * 5, VARIANT, (1,))}, b"\x80" * 5),
        MalformedError,
        "length of variant 0",
    ),
    "variants: fewer bytes than lengths and checksums": (
        pair((forge.tensor(bytes(9), VARIANT, (2,)), bytes(9))),
        ShapeError,
        "not hold",
    ),
    "variants: checksum of an element": (
        pair(variant([b"a", b"b"], spoil=1)),
        ChecksumError,
        "checksum of variant 0",
    ),
    "variants: more than elements": (
        pair(variant([b"a", b"b"], (1,))),
        MalformedError,
        "6 bytes follow",
    ),
    "slice without an entry": (
        (parts({(0, 4): piece(0, 4)}, listed=[(0, 2), (2, 2)]), FOUR),
        MissingKeyError,
        "has no entry",
    ),
    "slices leave out": (
        (parts({(0, 1): piece(0, 1), (2, 2): piece(2, 2)}), FOUR),
        ShapeError,
        "leave out 1 elements",
    ),
    "slices overlap": (
        (parts({(0, 3): piece(0, 3), (2, 2): piece(2, 2)}), FOUR),
        ShapeError,
        "overlap",
    ),
    "slices overlap and leave out": (
        (parts({(0, 2): piece(0, 2), (1, 2): piece(1, 2)}), FOUR),
        ShapeError,
        "overlap",
    ),
    "slice twice": (
        (parts({(0, 4): piece(0, 4)}, listed=[(0, 4), (0, 4)]), FOUR),
        ShapeError,
        "overlap",
    ),
    "slice outside": ((parts({(2, 4): piece(0, 4)}), FOUR), ShapeError, "outside a dimension of 4"),
    "slice starts below 0": (
        (parts({(-1, 4): piece(0, 4)}), FOUR),
        ShapeError,
        "outside a dimension",
    ),
    "slice of no length": ((parts({(0, 0): piece(0, 0)}), FOUR), ShapeError, "outside a dimension"),
    "slice of 64 bits": (
        (parts({(2**62, 2**62): piece(0, 4)}), FOUR),
        ShapeError,
        "outside a dimension",
    ),
    "slice of other rank": (
        (parts({(0, 4): piece(0, 4)}, listed=[((0, 4), (0, 1))]), FOUR),
        ShapeError,
        "2 dimensions of a tensor of 1",
    ),
    "slice of other dtype": (
        (parts({(0, 4): piece(0, 4)}, dtype=INT32), FOUR),
        ShapeError,
        "float32\\(4,\\), not int32",
    ),
    "slice of other shape": (
        (parts({(0, 4): piece(0, 2)}), FOUR),
        ShapeError,
        "float32\\(2,\\), not float32\\(4,\\)",
    ),
    "slices of a huge tensor": (
        (parts({(0, 4): piece(0, 4)}, shape=(2**40,)), FOUR),
        ShapeError,
        "leave out 1099511627772 elements",
    ),
    "slices of a huge string tensor": (
        (
            parts({(0, 2**40): forge.tensor(FOUR, STRING, (2**40,))}, shape=(2**40,), dtype=STRING),
            FOUR,
        ),
        ShapeError,
        "do not hold string",
    ),
    "slices that share their bytes": (
        (
            parts({(4 * n, 4): forge.tensor(FOUR, shape=(4,)) for n in range(50)}, shape=(200,)),
            FOUR,
        ),
        MalformedError,
        "shares? (its )?bytes",
    ),
    "checksum of a slice": (
        (parts({(0, 2): piece(0, 2), (2, 2): piece(2, 2, crc32c=5)}), FOUR),
        ChecksumError,
        "0x00000005",
    ),
}


@pytest.mark.parametrize("fault", ENTRIES)
def test_damaged_entry(fault, tmp_path):
    (entries, data), error, reason = ENTRIES[fault]
    forge.bundle(tmp_path / "b", entries, data)
    with BundleReader(tmp_path / "b") as reader:
        for use in (lambda: reader.read("v"), lambda: reader.verify("v"), reader.verify_all):
            with pytest.raises(error, match=reason) as caught:
                use()
            assert type(caught.value) is error
            assert str(tmp_path / "b") in caught.value.file
            assert "v" in (caught.value.node or "")


def test_undamaged_entries_are_fine(tmp_path):
    """The handmade bundles are refused for their faults, not for how they are made."""
    string, string_data = text(THREE_STRINGS)
    other, other_data = variant([b"a", b"bc"])
    string.offset, other.offset = 16, 16 + len(string_data)
    entries = {**parts({(0, 2): piece(0, 2), (2, 2): piece(2, 2)}), b"s": string, b"w": other}
    forge.bundle(tmp_path / "b", entries, FOUR + string_data + other_data)
    with BundleReader(tmp_path / "b") as reader:
        reader.verify_all()
        assert reader.read("v").tolist() == [1, 2, 3, 4]
        assert reader.read("s").tolist() == THREE_STRINGS
        assert reader.read("w").tolist() == [b"a", b"bc"]


def test_more_dimensions_than_numpy_has(tmp_path):
    forge.bundle(tmp_path / "b", with_shape(*[1] * 100, size=4)[0], FOUR)
    with (
        BundleReader(tmp_path / "b") as reader,
        pytest.raises(ShapeError, match="array of shape"),
    ):
        reader.read("v", verify=False)


def test_slices_with_more_dimensions_than_numpy_has(tmp_path):
    part = ((0, 1),) * 100
    entries = {b"v": forge.add_slice(schema.BundleEntryProto(dtype=1), *part)}
    for _ in part:
        entries[b"v"].shape.dim.add(size=1)
    entries[slice_key(b"v", part)] = forge.tensor(FOUR[:4], shape=[1] * 100)
    forge.bundle(tmp_path / "b", entries, FOUR)
    with (
        BundleReader(tmp_path / "b") as reader,
        pytest.raises(ShapeError, match="array of shape"),
    ):
        reader.read("v")


def test_a_scalar_in_two_slices(tmp_path):
    whole = schema.BundleEntryProto(dtype=1, slices=[{}, {}])
    forge.bundle(tmp_path / "b", {b"v": whole, slice_key(b"v", ()): forge.tensor(FOUR[:4])}, FOUR)
    with (
        BundleReader(tmp_path / "b") as reader,
        pytest.raises(ShapeError, match="1 elements too many"),
    ):
        reader.read("v")


def test_slices_of_slices(tmp_path):
    """A slice that refers to slices, here to itself, is not followed."""
    whole = parts({(0, 4): piece(0, 4)})[b"v"]
    forge.bundle(tmp_path / "b", {slice_key(b"v", ((0, 4),)): whole, b"v": whole}, FOUR)
    with (
        BundleReader(tmp_path / "b") as reader,
        pytest.raises(ShapeError, match="consists of slices"),
    ):
        reader.read("v")


@pytest.mark.parametrize(("place", "kind"), [("s", "string"), ("w", "variant")])
def test_checksums_of_elements(tmp_path, place, kind):
    entry, data = text([b"abc"]) if place == "s" else variant([b"abc"])
    damaged = data.replace(b"abc", b"abd")
    forge.bundle(tmp_path / "b", {b"v": entry}, damaged)
    with BundleReader(tmp_path / "b") as reader:
        assert reader.read("v", verify=False).tolist() == [b"abd"]
        for use in (reader.read, reader.verify):
            with pytest.raises(ChecksumError):
                use("v")


def test_tensors_that_share_bytes_are_found_by_verify_all(tmp_path):
    """Many entries over one large range would otherwise make verification arbitrarily slow."""
    entries = {b"v%d" % number: forge.tensor(FOUR, shape=(4,)) for number in range(9)}
    forge.bundle(tmp_path / "b", entries, FOUR)
    with BundleReader(tmp_path / "b") as reader:
        assert reader.read("v3").tolist() == [1, 2, 3, 4]
        with pytest.raises(MalformedError, match="shares its bytes"):
            reader.verify_all()


def test_too_many_tangled_slices(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "SLICE_COMPARISONS", 100)
    shape = (20, 20)
    whole = schema.BundleEntryProto(dtype=1)
    entries = {}
    for size in shape:
        whole.shape.dim.add(size=size)
    for number in range(400):
        row, column = divmod(number, 20)
        forge.add_slice(whole, (row, 1), (column, 1))
        entries[slice_key(b"v", ((row, 1), (column, 1)))] = forge.tensor(
            FOUR[:4], shape=(1, 1), offset=4 * number
        )
    forge.bundle(tmp_path / "b", {**entries, b"v": whole}, FOUR[:4] * 400)
    with BundleReader(tmp_path / "b") as reader:
        with pytest.raises(LimitError, match="400 slices") as caught:
            reader.read("v")
        assert caught.value.limit == "SLICE_COMPARISONS"
        monkeypatch.undo()
        assert reader.read("v").tolist() == [[1] * 20] * 20


HEADERS = {
    "none": (False, CorruptTableError, "no header"),
    "no message": (b"\x0f", MalformedError, "wire type 7"),
    "no shards": (forge.header(num_shards=0), MalformedError, "0 shards"),
    "negative shards": (forge.header(num_shards=-5), MalformedError, "-5 shards"),
    "endianness": (forge.header(endianness=3), MalformedError, "endianness 3"),
    "newer": (
        schema.BundleHeaderProto(num_shards=1, version={"min_consumer": 2}),
        SchemaVersionError,
        "another reader",
    ),
    "this version is bad": (
        schema.BundleHeaderProto(num_shards=1, version={"bad_consumers": [1]}),
        SchemaVersionError,
        "another",
    ),
}


@pytest.mark.parametrize("fault", HEADERS)
def test_damaged_header(fault, tmp_path):
    head, error, reason = HEADERS[fault]
    forge.bundle(tmp_path / "b", {b"v": forge.tensor(FOUR, shape=(4,))}, FOUR, head)
    with pytest.raises(error, match=reason) as caught:
        BundleReader(tmp_path / "b")
    assert type(caught.value) is error
    assert caught.value.file == str(tmp_path / "b.index")


def test_header_of_this_version(tmp_path):
    head = schema.BundleHeaderProto(
        num_shards=1, version={"producer": 7, "min_consumer": 1, "bad_consumers": [2]}
    )
    forge.bundle(tmp_path / "b", {b"v": forge.tensor(FOUR, shape=(4,))}, FOUR, head)
    with BundleReader(tmp_path / "b") as reader:
        assert reader.keys() == ["v"]


def test_object_graph_that_is_none(tmp_path):
    (entry, data), (several, several_data) = text([b"\x0f"], ()), text([b"", b""])
    several.offset = len(data)
    forge.bundle(tmp_path / "b", {OBJECT_GRAPH_KEY.encode(): entry}, data)
    forge.bundle(tmp_path / "c", {OBJECT_GRAPH_KEY.encode(): several}, data + several_data)
    forge.bundle(tmp_path / "d", {OBJECT_GRAPH_KEY.encode(): forge.tensor(FOUR[:4])}, FOUR)
    for name, error in (("b", MalformedError), ("c", ShapeError), ("d", ShapeError)):
        with BundleReader(tmp_path / name) as reader, pytest.raises(error) as caught:
            reader.object_graph()
        assert type(caught.value) is error
        assert OBJECT_GRAPH_KEY in caught.value.node


def test_key_that_is_no_text(tmp_path):
    forge.bundle(tmp_path / "b", {b"\xff\xfe": forge.tensor(FOUR, shape=(4,))}, FOUR)
    with BundleReader(tmp_path / "b") as reader:
        for use in (reader.keys, reader.entries):
            with pytest.raises(MalformedError, match="neither UTF-8"):
                use()


def test_slice_of_no_tensor(tmp_path):
    forge.bundle(tmp_path / "b", {slice_key(b"v", ((0, 4),)): forge.tensor(FOUR, shape=(4,))}, FOUR)
    with (
        BundleReader(tmp_path / "b") as reader,
        pytest.raises(MalformedError, match="slice of a"),
    ):
        reader.keys()


def test_duplicate_and_unsorted_keys_reach_the_reader(tmp_path):
    value = forge.tensor(FOUR, shape=(4,)).SerializeToString()
    head = forge.header().SerializeToString()
    for keys, error in (((b"a", b"a"), "DuplicateKeyError"), ((b"b", b"a"), "CorruptTableError")):
        contents = forge.block([(b"", head), *((key, value) for key in keys)])
        (tmp_path / "b.index").write_bytes(forge.table([(b"\xff", contents)]))
        with (
            BundleReader(tmp_path / "b") as reader,
            pytest.raises(Exception, match=r"occurs twice|stands after") as caught,
        ):
            reader.keys()
        assert type(caught.value).__name__ == error
