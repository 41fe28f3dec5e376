"""The table of a bundle's index: what is written is read back, and damage of every kind has its own
error.
"""

import io
import os
import sys
import tracemalloc

import cramjam
import pytest

from reference_impl.errors import (
    ChecksumError,
    CorruptTableError,
    DuplicateKeyError,
    LimitError,
    MissingPackageError,
    TruncatedError,
    UnsupportedError,
)
from reference_impl.format import limits
from reference_impl.format.bundle.table import TableReader, TableWriter
from savedmodel_kit.forge import tables as forge

MEBIBYTE = 1 << 20


@pytest.fixture(autouse=True)
def bounded_memory():
    """Nothing that a small table says may cost much memory."""
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 * MEBIBYTE


def written(pairs, **options):
    stream = io.BytesIO()
    writer = TableWriter(stream, **options)
    for key, value in pairs:
        writer.add(key, value)
    writer.finish()
    return stream.getvalue()


PAIRS = [
    (f"layer_{number:04d}/kernel".encode(), bytes([number % 256]) * (number % 9))
    for number in range(1000)
]
PAIRS = [
    (b"", b"h" * 128),
    *PAIRS,
    (b"z\xff", b"1"),
    (b"z\xff\xff", b"2"),
    (b"\xff", b"3"),
    (b"\xff\xff" * 100, b"4" * 300),
]


@pytest.mark.parametrize(
    "options",
    [{}, {"block_size": 1}, {"block_size": 100, "restart_interval": 1}, {"block_size": 500}],
)
def test_write_then_read(options):
    reader = TableReader(written(PAIRS, **options), "t")
    assert list(reader) == PAIRS
    for key, value in PAIRS[::29] + PAIRS[-4:]:
        assert reader.get(key) == value
    for absent in (b"a", b"layer_0000", b"layer_0500/kernel\0", b"z", b"\xff\xff\xff" * 100):
        assert reader.get(absent) is None


def test_layout_of_a_small_table():
    """Byte by byte: prefixes, restarts, shortened index key, footer."""
    data = written([(b"abc", b"1"), (b"abd", b"22"), (b"b", b"")], restart_interval=2)
    block = (
        b"\0\3\1abc1"
        + b"\2\1\2d22"
        + b"\0\1\0b"
        + (0).to_bytes(4, "little")
        + (13).to_bytes(4, "little")
        + b"\2\0\0\0"
    )
    assert data == forge.table([(b"c", block)])


def test_index_keys_are_short():
    """Between two blocks stands the shortest key that separates them, unless none is shorter."""
    data = written(
        [
            (b"apple", b""),
            (b"cherry", b""),
            (b"cherry pie", b""),
            (b"d\xff\xff", b""),
            (b"\xff", b""),
        ],
        block_size=1,
    )
    reader = TableReader(data, "t")
    assert reader._separators == [b"b", b"cherry", b"cherry pie", b"e", b"\xff"]


def test_a_table_without_entries():
    assert list(TableReader(written([]), "t")) == []
    assert TableReader(written([]), "t").get(b"k") is None


def test_a_block_at_a_time(tmp_path):
    """Iterating over a table takes the memory of its largest block, not of the table."""
    import mmap

    path = tmp_path / "large.index"
    with path.open("wb") as stream:
        writer = TableWriter(stream)
        for number in range(48):
            writer.add(f"{number:03d}".encode(), bytes(MEBIBYTE))
        writer.finish()
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        assert (
            sum(len(value) for _, value in TableReader(data, path)) == 48 * MEBIBYTE
        )  # the fixture watches the peak


@pytest.mark.parametrize("second", [b"a", b"b"])
def test_writer_refuses_what_it_could_not_read(second):
    writer = TableWriter(io.BytesIO())
    writer.add(b"b", b"")
    with pytest.raises(DuplicateKeyError if second == b"b" else CorruptTableError):
        writer.add(second, b"")


def test_snappy_blocks():
    contents = forge.block([(b"key", b"value" * 1000)])
    data = forge.table([(b"l", bytes(cramjam.snappy.compress_raw(contents)))], compression=1)
    assert len(data) < 1000
    assert list(TableReader(data, "t")) == [(b"key", b"value" * 1000)]


def test_a_snappy_block_without_its_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "cramjam", None)
    with pytest.raises(MissingPackageError, match=r"^t: .*snappy.*cramjam"):
        list(TableReader(snappy(bytes(cramjam.snappy.compress_raw(GOOD))), "t"))


def snappy(contents):
    return forge.table([(b"\xff", contents)], compression=1)


def nested_prefixes(length, count):
    """A key of `length` bytes, and `count` more that repeat all of it in four bytes each."""
    first = forge.entry(0, b"k" * length, b"")
    return first + b"".join(forge.entry(length + number, b"k", b"") for number in range(count))


GOOD = forge.block([(b"a", b"1"), (b"b", b"2")], (0, 5))
PLAIN = forge.table([(b"c", GOOD)])
FOOTER = len(PLAIN) - 48

DAMAGED = {
    "empty file": (b"", TruncatedError, "at least 48 bytes"),
    "shorter than a footer": (PLAIN[-47:], TruncatedError, "at least 48 bytes"),
    "magic": (PLAIN[:-1] + b"\0", CorruptTableError, "magic number"),
    "cut off at the front": (PLAIN[30:], TruncatedError, "does not fit before the footer"),
    "metaindex beyond the file": (
        PLAIN[:FOOTER] + (forge.varint(2**40) + b"\0\0\0").ljust(40, b"\0") + forge.MAGIC,
        TruncatedError,
        "1099511627776 does not fit",
    ),
    "index as large as 64 bits": (
        PLAIN[:FOOTER]
        + (PLAIN[FOOTER : FOOTER + 2] + b"\0" + forge.varint(2**64 - 1)).ljust(40, b"\0")
        + forge.MAGIC,
        TruncatedError,
        "a block of 18446744073709551615 bytes",
    ),
    "handle of more than 64 bits": (
        PLAIN[:FOOTER] + (forge.varint(2**64)).ljust(40, b"\0") + forge.MAGIC,
        CorruptTableError,
        "does not fit 64 bits",
    ),
    "handle without an end": (
        PLAIN[:FOOTER] + b"\x80" * 40 + forge.MAGIC,
        CorruptTableError,
        "is too long",
    ),
    "handle cut off in the index": (
        forge.table([(b"c", GOOD)], index=[(b"c", b"\x80")]),
        CorruptTableError,
        "is cut off",
    ),
    "handle with a rest": (
        forge.table([(b"c", GOOD)], index=[(b"c", b"\0\x12?")]),
        CorruptTableError,
        "out of order",
    ),
    "checksum of a block": (b"\1" + PLAIN[1:], ChecksumError, "block's checksum differs"),
    "checksum of the metaindex": (
        PLAIN.replace(forge.block(b""), b"\1" * 8),
        ChecksumError,
        "block's checksum differs",
    ),
    "compression": (forge.table([(b"c", GOOD)], compression=2), UnsupportedError, "compression 2"),
    "Snappy: bomb": (
        snappy(forge.varint(10**6) + b"\xfe\1\0" * 9),
        CorruptTableError,
        "28|29|30 bytes cannot hold 1000000",
    ),
    "Snappy: length cut off": (snappy(b"\xff\xff"), CorruptTableError, "is cut off"),
    "Snappy: no data": (snappy(b""), CorruptTableError, "is cut off"),
    "Snappy: garbage": (snappy(b"\x20" + b"\xff" * 31), CorruptTableError, "Snappy"),
    "Snappy: shorter than announced": (
        snappy(b"\x20" + bytes(cramjam.snappy.compress_raw(GOOD))[1:]),
        CorruptTableError,
        "Snappy",
    ),
    "entry over the end": (
        forge.table([(b"c", forge.block(b"\0\1\5a1"))]),
        CorruptTableError,
        "lengths do not fit",
    ),
    "key over the end": (
        forge.table([(b"c", forge.block(b"\0\x7f\0a1"))]),
        CorruptTableError,
        "lengths do not fit",
    ),
    "length of 64 bits": (
        forge.table([(b"c", forge.block(b"\0\1" + forge.varint(2**63) + b"a1"))]),
        CorruptTableError,
        "lengths do not fit",
    ),
    "length cut off": (
        forge.table([(b"c", forge.block(b"\0\1\x80"))]),
        CorruptTableError,
        "is cut off",
    ),
    "prefix of a key that is shorter": (
        forge.table([(b"c", forge.block(b"\0\1\0a" + b"\2\1\0b"))]),
        CorruptTableError,
        "lengths do not fit",
    ),
    "prefix before the first key": (
        forge.table([(b"c", forge.block(b"\1\1\0a"))]),
        CorruptTableError,
        "lengths do not fit",
    ),
    "no restarts": (
        forge.table([(b"c", forge.block([(b"a", b"")], ()))]),
        CorruptTableError,
        "hold 0 restarts",
    ),
    "more restarts than bytes": (
        forge.table([(b"c", forge.block([(b"a", b"")], (0,), count=2**32 - 1))]),
        CorruptTableError,
        "hold 4294967295 restarts",
    ),
    "block too short for a count": (
        forge.table([(b"c", b"\0\0")]),
        CorruptTableError,
        "hold 0 restarts",
    ),
    "first restart": (
        forge.table([(b"c", forge.block([(b"a", b"")], (1,)))]),
        CorruptTableError,
        "first restart",
    ),
    "restart inside an entry": (
        forge.table([(b"c", forge.block([(b"a", b"")], (0, 2)))]),
        CorruptTableError,
        "restart 2 is not",
    ),
    "restart beyond the entries": (
        forge.table([(b"c", forge.block([(b"a", b"")], (0, 2**32 - 1)))]),
        CorruptTableError,
        "restart 4294967295 is not",
    ),
    "restart that shares a prefix": (
        forge.table([(b"c", forge.block(b"\0\1\0a" + b"\1\1\0b", (0, 4)))]),
        CorruptTableError,
        "shares a prefix",
    ),
    "restarts without entries": (
        forge.table([(b"c", forge.block(b"", (0, 0)))]),
        CorruptTableError,
        "restart 0 is not",
    ),
    "same key twice": (
        forge.table([(b"c", forge.block([(b"a", b"1"), (b"a", b"2")]))]),
        DuplicateKeyError,
        "b'a' occurs twice",
    ),
    "same key in two blocks": (
        forge.table([(b"a", forge.block([(b"a", b"1")])), (b"b", forge.block([(b"a", b"2")]))]),
        DuplicateKeyError,
        "b'a' occurs twice",
    ),
    "keys not sorted": (
        forge.table([(b"c", forge.block([(b"b", b"1"), (b"a", b"2")]))]),
        CorruptTableError,
        "b'a' stands after b'b'",
    ),
    "index keys not sorted": (
        forge.table([(b"c", GOOD), (b"b", GOOD)]),
        CorruptTableError,
        "index block are not sorted",
    ),
    "index key twice": (
        forge.table([(b"c", GOOD), (b"c", GOOD)]),
        CorruptTableError,
        "index block are not sorted",
    ),
    "key above its block's index key": (
        forge.table([(b"a", GOOD)]),
        CorruptTableError,
        "not those the index block announces",
    ),
    "key not above the index key before": (
        forge.table([(b"c", GOOD), (b"d", forge.block([(b"c", b"")]))]),
        CorruptTableError,
        "not those the index block announces",
    ),
    "one block twice": (
        forge.table([(b"c", GOOD)], index=[(b"c", b"\0\x12"), (b"d", b"\0\x12")]),
        CorruptTableError,
        "overlap or are out of order",
    ),
    "keys that prefixes blow up": (
        forge.table([(b"l", forge.block(nested_prefixes(20_000, 2_000)))]),
        LimitError,
        "keys take more than 64 times",
    ),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damage(damage):
    data, error, reason = DAMAGED[damage]
    with pytest.raises(error, match=reason) as caught:
        list(TableReader(data, "some/table"))
    assert type(caught.value) is error
    assert caught.value.file == "some/table"


def test_the_undamaged_table_is_fine():
    assert list(TableReader(PLAIN, "t")) == [(b"a", b"1"), (b"b", b"2")]


def test_looking_up_a_key_that_prefixes_blow_up():
    data = forge.table([(b"l", forge.block(nested_prefixes(20_000, 2_000)))])
    with pytest.raises(LimitError):
        TableReader(data, "t").get(b"l")


def test_small_blocks_cannot_blow_up_keys_together():
    """Each block stays within what a block may, all of them do not."""
    blocks, data = [], 0
    for number in range(100):
        first = b"%04d" % number + b"k" * 1500
        body = forge.entry(0, first, b"") + b"".join(
            forge.entry(1504 + n, b"k", b"") for n in range(40)
        )
        blocks.append((first + b"l", forge.block(body)))
        data += len(body)
    with pytest.raises(LimitError) as caught:
        limits_before, limits.TABLE_KEYS_RATIO = limits.TABLE_KEYS_RATIO, 8
        try:
            list(TableReader(forge.table(blocks), "t"))
        finally:
            limits.TABLE_KEYS_RATIO = limits_before
    assert caught.value.limit == "TABLE_KEYS_RATIO"


def test_a_block_over_the_limit_is_not_read(tmp_path):
    import mmap

    path = tmp_path / "sparse.index"
    size = limits.TABLE_BLOCK_BYTES + 1
    with path.open("wb") as stream:
        stream.truncate(size + 5)
        stream.seek(0, os.SEEK_END)
        stream.write(
            (forge.varint(0) + forge.varint(size) + b"\0\0").ljust(40, b"\0") + forge.MAGIC
        )
    with (
        path.open("rb") as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data,
        pytest.raises(LimitError) as caught,
    ):
        TableReader(data, path)
    assert caught.value.limit == "TABLE_BLOCK_BYTES"


def test_a_snappy_block_over_the_limit_is_not_decompressed():
    contents = forge.varint(limits.TABLE_BLOCK_BYTES + 1) + bytes(limits.TABLE_BLOCK_BYTES // 20)
    with pytest.raises(LimitError) as caught:
        list(TableReader(snappy(contents), "t"))
    assert caught.value.limit == "TABLE_BLOCK_BYTES"


@pytest.mark.parametrize("cut", range(0, len(PLAIN), 3))
def test_truncation_anywhere(cut):
    with pytest.raises((TruncatedError, CorruptTableError)):
        list(TableReader(PLAIN[:cut], "t"))
