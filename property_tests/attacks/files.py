"""Attacks on those who read what lies beside the MetaGraphs: checkpoints, split files, assets,
fingerprints.
"""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path

from property_tests.attacks import forge
from reference_impl.format import schema
from reference_impl.format.bundle.checksum import masked_crc32c
from reference_impl.format.bundle.slices import slice_key
from reference_impl.format.container.highwayhash import highwayhash64
from reference_impl.format.wire import write_varint
from savedmodel_kit.forge import tables
from savedmodel_kit.forge.records import KEY, Forge, metadata, path

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"


def _model(folder: Path) -> Path:
    """A real model of two variables, `a` and `b`, whose index is still to be written.

    Returns the place of it.
    """
    shutil.copytree(FIXTURES / "half_plus_two" / "model", folder)
    for old in (folder / "variables").iterdir():
        old.unlink()
    return folder / "variables" / "variables.index"


_SOUND = (
    b"b",
    schema.serialize(tables.tensor(b"", shape=(0,))),
)  # so that what is wrong with `a` is all that is


def _snappy(size: int) -> bytes:
    """Zeros, 64 of them from three bytes"""
    copies = b"\xfe\x01\x00" * (size // 64)
    return write_varint(1 + size // 64 * 64) + b"\x00\x00" + copies


def snappy_bomb(folder: Path) -> None:
    """A block of the index that Snappy unpacks to 200 MiB."""
    index = _model(folder)
    packed = _snappy(200 << 20)
    block = packed + b"\x01" + struct.pack("<I", masked_crc32c(packed + b"\x01"))
    handle = b"z", write_varint(0) + write_varint(len(packed))
    places, tail = [], b""
    for contents in (tables.block(b""), tables.block([handle], range(1))):
        places.append(write_varint(len(block) + len(tail)) + write_varint(len(contents)))
        tail += contents + tables.trailer(contents)
    index.write_bytes(block + tail + b"".join(places).ljust(40, b"\0") + tables.MAGIC)


def snappy_promise(folder: Path) -> None:
    """A block of ten bytes that promises four gigabytes."""
    index = _model(folder)
    index.write_bytes(
        tables.table([(b"z", write_varint((1 << 32) - 1) + b"\x00\x00")], compression=1)
    )


def key_bomb(folder: Path) -> None:
    """Keys of a megabyte, each repeated by an entry of five bytes."""
    index = _model(folder)
    long = b"k" * (1 << 20)
    body = tables.entry(0, b"", schema.serialize(tables.header())) + tables.entry(0, long, b"")
    body += b"".join(tables.entry(1 << 20, b"%04d" % number, b"") for number in range(2000))
    index.write_bytes(tables.table([(b"z", tables.block(body))]))


def _entry(folder: Path, size: int, *shape: int, data: bytes = b"") -> None:
    index = _model(folder)
    message = schema.BundleEntryProto(dtype=1, size=size, crc32c=tables.masked(data))
    for one in shape:
        message.shape.dim.add(size=one)
    message.shape.SetInParent()
    pairs = [(b"", schema.serialize(tables.header())), (b"a", schema.serialize(message)), _SOUND]
    index.write_bytes(tables.table([(b"z", tables.block(pairs))]))
    index.with_name("variables.data-00000-of-00001").write_bytes(data)


def shape_overflow(folder: Path) -> None:
    """A tensor of 2^64 elements, which is none in 64 bits."""
    _entry(folder, 0, 1 << 32, 1 << 32)


def size_promise(folder: Path) -> None:
    """A tensor of a terabyte in a shard of four bytes."""
    _entry(folder, 1 << 40, 1 << 38, data=b"abcd")


def sparse_shard(folder: Path) -> None:
    """A tensor of four terabytes in a shard that takes no disk."""
    _entry(folder, 1 << 42, 1 << 40)
    os.truncate(folder / "variables" / "variables.data-00000-of-00001", 1 << 42)


def negative_offset(folder: Path) -> None:
    """A tensor 8 bytes before the shard begins."""
    index = _model(folder)
    message = schema.BundleEntryProto(dtype=1, size=8, offset=-8)
    message.shape.dim.add(size=2)
    pairs = [(b"", schema.serialize(tables.header())), (b"a", schema.serialize(message)), _SOUND]
    index.write_bytes(tables.table([(b"z", tables.block(pairs))]))
    index.with_name("variables.data-00000-of-00001").write_bytes(bytes(8))


def _sliced(folder: Path, start: int, length: int) -> None:
    """A tensor `a` of one slice."""
    index = _model(folder)
    whole = schema.BundleEntryProto(dtype=1)
    whole.shape.dim.add(size=4)
    extent = whole.slices.add().extent.add(start=start)
    extent.length = length
    part = tables.tensor(bytes(8), shape=(2,))
    keys = sorted(
        [(b"a", whole), (slice_key(b"a", ((start, length),)), part)], key=lambda pair: pair[0]
    )
    pairs = [
        (b"", schema.serialize(tables.header())),
        *[(key, schema.serialize(value)) for key, value in keys],
        _SOUND,
    ]
    index.write_bytes(tables.table([(b"z", tables.block(sorted(pairs)))]))
    index.with_name("variables.data-00000-of-00001").write_bytes(bytes(8))


def slice_near_2_63(folder: Path) -> None:
    """A slice of a partitioned tensor that begins near 2^63 and ends beyond."""
    _sliced(folder, 2**63 - 2, 2**63 - 1)


def slice_of_negative_length(folder: Path) -> None:
    """A slice of a partitioned tensor of a negative length."""
    _sliced(folder, 0, -7)


def duplicate_keys(folder: Path) -> None:
    """A checkpoint that has a key twice, with two values."""
    index = _model(folder)
    key = b"a"
    values = [schema.serialize(tables.tensor(data, shape=(2,))) for data in (bytes(8), b"\xff" * 8)]
    pairs = [(b"", schema.serialize(tables.header())), *((key, value) for value in values), _SOUND]
    index.write_bytes(tables.table([(b"z", tables.block(pairs))]))
    index.with_name("variables.data-00000-of-00001").write_bytes(bytes(8))


def million_shards(folder: Path) -> None:
    """A checkpoint that says it has two thousand million shards."""
    index = _model(folder)
    index.write_bytes(
        tables.table(
            [(b"z", tables.block([(b"", schema.serialize(tables.header(num_shards=2**31 - 1)))]))]
        )
    )


def split_bomb(folder: Path) -> None:
    """A split file whose chunk unpacks to 256 MiB of zeros and promises 16 GiB."""
    import cramjam

    folder.mkdir()
    made = Forge()
    packed = bytes(cramjam.zstd.compress(bytes(1 << 28)))
    inner = write_varint(4) + bytes(cramjam.zstd.compress(write_varint(1 << 28)))
    data = b"z" + write_varint(len(inner)) + inner + write_varint(1 << 34) + packed
    made.chunk(b"r", data, 1, 1 << 34)
    made.records(
        schema.serialize(metadata([(1, 64, 1 << 28)], schema.ChunkedMessage(chunk_index=0)))
    )
    made.save(folder / "saved_model.cpb")


def split_counts(folder: Path) -> None:
    """A split file with a chunk of 2^50 records."""
    folder.mkdir()
    made = Forge()
    rest = struct.pack("<4Q", 0, 0, ord("r") | (2**50) << 8, 0)
    made.write(struct.pack("<Q", highwayhash64(KEY, rest)) + rest)
    made.save(folder / "saved_model.cpb")


def split_self_reference(folder: Path) -> None:
    """A split file whose chunk is used a thousand times."""
    folder.mkdir()
    made = Forge()
    part = schema.serialize(forge.model())
    (place,) = made.records(part)
    message = schema.ChunkedMessage(chunk_index=0)
    for _ in range(1000):
        message.chunked_fields.add(field_tag=path(2, ("index", 0))).message.chunk_index = 0
    made.records(
        schema.serialize(metadata([(schema.ChunkInfo.MESSAGE, place, len(part))], message))
    )
    made.save(folder / "saved_model.cpb")


def huge_fingerprint(folder: Path) -> None:
    """A fingerprint.pb of ten gigabytes that takes no disk."""
    forge.write(folder, forge.model())
    (folder / "fingerprint.pb").touch()
    os.truncate(folder / "fingerprint.pb", 10 << 30)


def many_files(folder: Path) -> None:
    """More than a hundred thousand files below assets.extra/, as links to one."""
    forge.write(folder, forge.model())
    (folder / "assets.extra").mkdir()
    for number in range(110_000):
        (folder / "assets.extra" / str(number)).symlink_to("0")


def text_bomb(folder: Path) -> None:
    """A saved_model.pbtxt of braces without end."""
    folder.mkdir()
    (folder / "saved_model.pbtxt").write_text(
        "meta_graphs { graph_def { library { function { " + "node_def { attr { " * 3000
    )
