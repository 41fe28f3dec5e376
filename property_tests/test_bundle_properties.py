"""Tensor bundles: what is written is read back, and no change of a byte has another effect than a
named error.
"""

import contextlib
import math
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from reference_impl.errors import SavedModelError
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.bundle.slices import FULL
from reference_impl.format.bundle.table import TableReader, TableWriter
from reference_impl.format.bundle.writer import BundleWriter
from reference_impl.format.values import dtypes

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
CHANGES = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=4
)  # where in the file, which byte
KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda key: key[0] != "\0"
)


@st.composite
def tensors(draw):
    """(dtype, array): arbitrary bits of any dtype that can be stored."""
    dtype = draw(st.sampled_from([dtype for dtype in dtypes.ALL if dtype.name != "resource"]))
    shape = draw(SHAPES)
    count = math.prod(shape)
    if dtype.itemsize is None:
        array = np.empty(count, dtype=object)
        array[:] = draw(st.lists(st.binary(max_size=200), min_size=count, max_size=count))
        return dtype, array.reshape(shape)
    mask = 1 if dtype.name == "bool" else (1 << min(dtype.bits, 8)) - 1
    size = count * dtype.itemsize
    data = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), np.uint8) & np.uint8(mask)
    return dtype, data.view(dtype.numpy()).reshape(shape)


def equal(left, right):
    """Same type, shape and bits."""
    same_kind = left.dtype == right.dtype and left.shape == right.shape
    return same_kind and (
        left.tolist() == right.tolist()
        if left.dtype == object
        else left.tobytes() == right.tobytes()
    )


@given(st.dictionaries(KEYS, st.tuples(tensors(), st.integers(0, 2)), max_size=6))
def test_write_then_read(values):
    with tempfile.TemporaryDirectory() as folder:
        with BundleWriter(Path(folder) / "b", 3) as writer:
            for key, ((dtype, array), shard) in values.items():
                writer.add(key, array, dtype, shard)
        with BundleReader(Path(folder) / "b") as reader:
            reader.verify_all()
            assert reader.keys() == sorted(values, key=str.encode)
            for key, ((dtype, array), shard) in values.items():
                assert reader.entry(key)[:3] == (dtype, array.shape, shard)
                assert equal(reader.read(key), array)


@given(tensors(), st.data())
def test_partitions_are_put_together(value, data):
    """Any tensor, cut into a grid of any kind, its parts in any order and any shard."""
    dtype, array = value
    boxes = [()]
    for size in array.shape:
        cuts = sorted(data.draw(st.sets(st.integers(1, size - 1)))) if size > 1 else []
        edges = [0, *cuts, size]
        extents = [FULL] if len(edges) == 2 else [(a, b - a) for a, b in zip(edges, edges[1:])]
        boxes = [(*box, extent) for box in boxes for extent in extents]
    with tempfile.TemporaryDirectory() as folder:
        with BundleWriter(Path(folder) / "b", 2) as writer:
            for box in data.draw(st.permutations(boxes)):
                part = array[
                    tuple(
                        slice(None) if extent == FULL else slice(extent[0], sum(extent))
                        for extent in box
                    )
                ]
                writer.add_slice("v", array.shape, box, part, dtype, data.draw(st.integers(0, 1)))
        with BundleReader(Path(folder) / "b") as reader:
            assert reader.keys() == ["v"]
            assert equal(reader.read("v"), array)
            reader.verify("v")
            reader.verify_all()


@given(
    st.dictionaries(st.binary(max_size=20), st.binary(max_size=40), max_size=40),
    st.integers(1, 200),
    st.integers(1, 20),
    st.binary(max_size=20),
)
def test_tables(pairs, block_size, restart_interval, absent):
    import io

    stream = io.BytesIO()
    writer = TableWriter(stream, block_size, restart_interval)
    for key in sorted(pairs):
        writer.add(key, pairs[key])
    writer.finish()
    reader = TableReader(stream.getvalue(), "t")
    assert list(reader) == sorted(pairs.items())
    for key in {*pairs, absent}:
        assert reader.get(key) == pairs.get(key)


def write_victim(folder):
    """A bundle with everything in it: numbers, strings, variants, slices, two shards."""
    expected = {
        "f": np.arange(5, dtype=np.float32),
        "s": np.array([b"one", b"", b"x" * 130], dtype=object),
        "w": np.array(b"\x0a\x01x", dtype=object),
        "p": np.arange(6).reshape(2, 3),
        "n": np.int8([1, -1]),
    }
    with BundleWriter(folder / "b", 2) as writer:
        writer.add("f", expected["f"])
        writer.add("s", expected["s"], shard=1)
        writer.add("w", expected["w"], "variant", shard=1)
        writer.add_slice("p", (2, 3), ((0, 1), FULL), expected["p"][:1])
        writer.add_slice("p", (2, 3), ((1, 1), FULL), expected["p"][1:], shard=1)
        writer.add("n", expected["n"], "qint8")
    return expected


def outcome(action):
    """The value of an action, or None when it ends in an error of the family; every other exception
    passes.
    """
    try:
        return action()
    except SavedModelError as error:
        assert error.file
        return None


def reseal(data):
    """Corrects the checksums of the index's blocks, so that a mutation reaches what is behind
    them.
    """
    from reference_impl.format.bundle.checksum import masked_crc32c

    try:
        reader = TableReader(data, "t")
    except SavedModelError:
        return data
    out = bytearray(data)
    for handle in reader._handles:
        end = handle.offset + handle.size + 1
        out[end : end + 4] = masked_crc32c(bytes(out[handle.offset : end])).to_bytes(4, "little")
    return bytes(out)


@settings(max_examples=600, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 2),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=4),
    st.booleans(),
    st.booleans(),
)
def test_changed_bytes(number, changes, seal, verify):
    """Named errors or the right values; with the index's own checksums made good, at least nothing
    worse than named errors.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected = write_victim(folder)
        file = sorted(folder.iterdir())[number]
        data = bytearray(file.read_bytes())
        for place, byte in changes:
            data[int(place * (len(data) - 1))] = byte
        sealed = reseal(bytes(data)) if seal else bytes(data)
        file.write_bytes(sealed)
        tracemalloc.start()
        try:
            reader = outcome(lambda: BundleReader(folder / "b"))
            if reader is not None:
                with reader:
                    outcome(reader.entries)
                    outcome(reader.verify_all)
                    for key in outcome(reader.keys) or expected:
                        value = outcome(lambda key=key: reader.read(key, verify))
                        if value is not None and verify and sealed == bytes(data):
                            assert equal(value, expected[key])
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < 16 << 20


@settings(max_examples=100)
@given(st.integers(0, 2), st.floats(0, 1))
def test_truncated_files(number, place):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected = write_victim(folder)
        file = sorted(folder.iterdir())[number]
        data = file.read_bytes()
        file.write_bytes(data[: int(place * len(data))])
        assert expected
        reader = outcome(lambda: BundleReader(folder / "b"))
        with reader or contextlib.nullcontext():
            for key, array in expected.items():
                value = reader and outcome(lambda key=key: reader.read(key))
                assert value is None or equal(value, array)
