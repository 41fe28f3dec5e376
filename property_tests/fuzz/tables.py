"""Changes of checkpoint indexes and of whole bundles, with the checksums made right again so that
they reach what is behind.
"""

from __future__ import annotations

import io
import random
import struct
from typing import Optional

from property_tests.fuzz.mutation import TEXTS, mutate
from property_tests.fuzz.wire import Mutator
from reference_impl.errors import SavedModelError
from reference_impl.format import schema
from reference_impl.format.bundle.checksum import masked_crc32c
from reference_impl.format.bundle.table import FOOTER_BYTES, TableReader, TableWriter
from reference_impl.format.wire import read_varint


def pack(index: bytes, shard: bytes) -> bytes:
    """A bundle of one shard as one piece of bytes."""
    return struct.pack("<I", len(index)) + index + shard


def unpack(data: bytes) -> tuple[bytes, bytes]:
    """The index and the shard of it; any bytes are some."""
    length = int.from_bytes(data[:4], "little")
    return data[4 : 4 + length], data[4 + length :]


def entries(data: bytes) -> Optional[list[tuple[bytes, bytes]]]:
    """What is in a table, if it can be read."""
    try:
        return list(TableReader(data, "t"))
    except SavedModelError:
        return None


def table(rng: random.Random, pairs: list[tuple[bytes, bytes]]) -> bytes:
    """A sound table of these entries, with blocks of some size."""
    stream = io.BytesIO()
    writer = TableWriter(stream, rng.choice((40, 300, 1 << 18)), rng.choice((1, 2, 16)))
    for key, value in sorted(dict(pairs).items()):
        writer.add(key, value)
    writer.finish()
    return stream.getvalue()


def reseal(data: bytes) -> bytes:
    """The bytes with the checksum of every block that can be found made right."""
    out = bytearray(data)
    footer = bytes(data[-FOOTER_BYTES:])
    try:
        position = 0
        for _ in range(2):
            offset, position = read_varint(footer, position, len(footer))
            size, position = read_varint(footer, position, len(footer))
            _seal(out, offset, size)
        for handle in TableReader(bytes(out), "t")._handles:
            _seal(out, handle.offset, handle.size)
    except (ValueError, SavedModelError):
        pass
    return bytes(out)


def _seal(out: bytearray, offset: int, size: int) -> None:
    end = offset + size + 1
    if end + 4 <= len(out):
        struct.pack_into("<I", out, end, masked_crc32c(bytes(out[offset:end])))


def mutate_table(rng: random.Random, data: bytes, values: Optional[Mutator] = None) -> bytes:
    """One change of a table: an entry, or any byte with the checksums right or wrong."""
    kind = rng.randrange(5)
    pairs = entries(data) if kind < 3 else None
    if not pairs:
        changed = mutate(rng, data)
        return reseal(changed) if kind else changed
    at = rng.randrange(len(pairs))
    key, value = pairs[at]
    what = rng.randrange(4)
    if what == 0:
        del pairs[at]
    elif what == 1:
        pairs[at] = rng.choice((mutate(rng, key), rng.choice(TEXTS), b"\0" + key)), value
    elif what == 2:
        pairs.append((rng.choice((mutate(rng, key), rng.choice(TEXTS))), value))
    else:
        pairs[at] = key, values.mutate(rng, value) if values and key else mutate(rng, value)
    return table(rng, pairs)


class BundleMutator:
    """Changes bundles packed by `pack`: entries, keys, the header, numbers with their checksum, the
    object graph inside.
    """

    def __init__(self, seeds: list[bytes]) -> None:
        found = [pair for seed in seeds for pair in entries(unpack(seed)[0]) or ()]
        self.values = Mutator(schema.BundleEntryProto, [value for key, value in found if key])
        self.headers = Mutator(schema.BundleHeaderProto, [value for key, value in found if not key])
        self.graphs = Mutator(
            schema.TrackableObjectGraph, [graph for seed in seeds if (graph := _graph(seed))]
        )

    def mutate(self, rng: random.Random, data: bytes) -> bytes:
        """One change."""
        index, shard = unpack(data)
        kind = rng.randrange(10)
        if kind == 0:
            return mutate(rng, data)
        if kind < 4:
            return pack(mutate_table(rng, index, self.values), shard)
        pairs = dict(entries(index) or ())
        if not pairs:
            return pack(reseal(mutate(rng, index)), shard)
        if kind == 4 and b"" in pairs:
            pairs[b""] = self.headers.mutate(rng, pairs[b""])
        elif kind == 5:
            shard = mutate(rng, shard)
        elif kind == 6 and _GRAPH in pairs:
            return self._with_graph(rng, pairs, shard, _graph(data))
        else:
            shard = self._numbers(rng, pairs, shard)
        return pack(table(rng, list(pairs.items())), shard)

    def _numbers(self, rng: random.Random, pairs: dict[bytes, bytes], shard: bytes) -> bytes:
        """Another entry with a checksum that fits the bytes it speaks of."""
        key = rng.choice(list(pairs))
        entry = schema.BundleEntryProto()
        try:
            entry.ParseFromString(self.values.mutate(rng, pairs[key]))
        except Exception:  # whatever protobuf says
            return shard
        if 0 <= entry.offset <= len(shard) and 0 <= entry.size <= len(shard):
            entry.crc32c = masked_crc32c(shard[entry.offset : entry.offset + entry.size])
        pairs[key] = entry.SerializeToString()
        return shard

    def _with_graph(
        self, rng: random.Random, pairs: dict[bytes, bytes], shard: bytes, graph: Optional[bytes]
    ) -> bytes:
        import numpy as np

        from reference_impl.format.bundle.tensor_data import encode

        stream = io.BytesIO()
        value = np.empty((), object)
        value[()] = self.graphs.mutate(rng, graph or b"")
        size, crc = encode(stream, value, _STRING)
        entry = schema.BundleEntryProto(dtype=7, size=size, crc32c=crc, offset=len(shard))
        entry.shape.SetInParent()
        pairs[_GRAPH] = entry.SerializeToString()
        return pack(table(rng, list(pairs.items())), shard + stream.getvalue())


_GRAPH = b"_CHECKPOINTABLE_OBJECT_GRAPH"


def _graph(data: bytes) -> Optional[bytes]:
    index, shard = unpack(data)
    value = dict(entries(index) or ()).get(_GRAPH)
    if value is None:
        return None
    try:
        entry = schema.parse(schema.BundleEntryProto, value)
    except SavedModelError:
        return None
    content = shard[entry.offset : entry.offset + entry.size]
    try:
        _, position = read_varint(content, 0, len(content))
    except ValueError:
        return None
    return content[position + 4 :]


def _string() -> object:
    from reference_impl.format.values import dtypes

    return dtypes.by_number(7)


_STRING = _string()
