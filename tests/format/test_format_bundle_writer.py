"""The writer of tensor bundles: what it writes, what it refuses, and that nothing half is left."""

import tracemalloc

import numpy as np
import pytest

from reference_impl.errors import DtypeError, DuplicateKeyError, FileAccessError, ShapeError
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.bundle.slices import FULL
from reference_impl.format.bundle.writer import BundleWriter
from savedmodel_kit.forge import tables as forge


def test_write_then_read(tmp_path):
    text = [["ä", b"\0\xff\0"], [b"", "b"]]
    with BundleWriter(tmp_path / "new" / "folder" / "b", num_shards=2) as writer:
        writer.add("text", text)
        writer.add("bytes", b"ends with zero\0")
        writer.add("number", 3, shard=1)
        writer.add("swapped", np.arange(3, dtype=">i4"))
        writer.add("strided", np.arange(12.0).reshape(3, 4)[::2, ::-1], shard=1)
        writer.add("bits", np.uint16([0x3F80]), "bfloat16")
        writer.add("quantized", np.int8([-1, 1]), "DT_QINT8")
        writer.add("narrow", np.int8([-1, 7, -8]), "int4")
        writer.add("fixed", np.array(["x", "yy"]))
        writer.add("opaque", np.array([b"\x0a\x01x"], dtype=object), "variant")
        writer.add("empty", np.zeros((3, 0), np.complex128))
        writer.add("no strings", np.zeros(0, object))
        writer.add_slice("part", (2, 3), ((0, 1), FULL), np.int32([[1, 2, 3]]), shard=1)
        writer.add_slice("part", (2, 3), ((1, 1), FULL), np.int32([[4, 5, 6]]))
        writer.add_slice("scalar", (), (), np.float32(5))
    with BundleReader(tmp_path / "new" / "folder" / "b") as reader:
        reader.verify_all()
        assert reader.read("text").tolist() == [["ä".encode(), b"\0\xff\0"], [b"", b"b"]]
        assert reader.read("bytes").item() == b"ends with zero\0"
        assert reader.read("number").item() == 3
        assert reader.read("swapped").tolist() == [0, 1, 2]
        assert reader.read("strided").tolist() == [[3, 2, 1, 0], [11, 10, 9, 8]]
        assert reader.read("bits").astype(float).tolist() == [1]
        assert reader.entry("quantized").dtype.name == "qint8"
        assert reader.read("narrow").astype(int).tolist() == [-1, 7, -8]
        assert reader.read("narrow").view(np.uint8).tolist() == [
            15,
            7,
            8,
        ]  # as TensorFlow: the high bits are zero
        assert reader.read("fixed").tolist() == [b"x", b"yy"]
        assert reader.read("opaque").tolist() == [b"\x0a\x01x"]
        assert reader.read("empty").shape == (3, 0)
        assert reader.read("no strings").shape == (0,)
        assert reader.read("part").tolist() == [[1, 2, 3], [4, 5, 6]]
        assert reader.read("scalar").item() == 5
        assert reader.entry("strided").shard == 1


def test_an_empty_bundle(tmp_path):
    BundleWriter(tmp_path / "b").finish()
    with BundleReader(tmp_path / "b") as reader:
        assert reader.keys() == []
        reader.verify_all()


def test_writer_leaves_nothing_behind_after_an_error(tmp_path):
    with pytest.raises(RuntimeError), BundleWriter(tmp_path / "b", 2) as writer:
        writer.add("v", np.float32(1))
        raise RuntimeError
    assert forge.contents(tmp_path) == {}


def test_writer_replaces_a_bundle_and_nothing_before_the_end(tmp_path):
    for value in (1, 2):
        before = forge.contents(tmp_path)
        writer = BundleWriter(tmp_path / "b")
        writer.add("v", np.float32(value))
        assert {
            name: data
            for name, data in forge.contents(tmp_path).items()
            if not name.endswith(".tmp")
        } == before
        writer.finish()
        assert sorted(forge.contents(tmp_path)) == ["b.data-00000-of-00001", "b.index"]
        with BundleReader(tmp_path / "b") as reader:
            assert reader.read("v").item() == value


def test_writing_needs_the_memory_of_one_tensor(tmp_path):
    value = np.zeros(1 << 20, np.uint8)
    text = [b"x" * 1000] * 1000
    tracemalloc.start()
    with BundleWriter(tmp_path / "b") as writer:
        for number in range(40):
            writer.add(f"v{number}", value)
            writer.add(f"s{number}", text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (tmp_path / "b.data-00000-of-00001").stat().st_size > 80 * 10**6
    assert peak < 4 << 20


@pytest.mark.parametrize(
    ("value", "dtype", "reason"),
    [
        (np.float32([1]), "float64", "float32 does not carry float64"),
        (np.int8([1]), "bfloat16", "int8 does not carry bfloat16"),
        (np.int32([1]), "uint32", "int32 does not carry uint32"),
        (np.array(["2020-01-01"], "M8[D]"), None, "no dtype corresponds"),
        (np.longdouble(1), None, "no dtype corresponds"),
        (np.array([1, None], dtype=object), None, "is bytes, not int"),
        (np.array(["text"], dtype=object), "variant", "is bytes, not str"),
        (np.array([b""], dtype=object), "resource", "cannot be stored"),
        (np.float32([1]), "float32_ref", "cannot be stored"),
        (np.float32([1]), "float31", "no dtype 'float31'"),
    ],
)
def test_writer_converts_nothing(tmp_path, value, dtype, reason):
    with BundleWriter(tmp_path / "b") as writer:
        with pytest.raises(DtypeError, match=reason):
            writer.add("v", value, dtype)
        writer.add("v", np.float32(1))  # what was refused left no trace
    with BundleReader(tmp_path / "b") as reader:
        reader.verify_all()
        assert reader.read("v").item() == 1


def test_writer_refuses_a_key_twice(tmp_path):
    with BundleWriter(tmp_path / "b") as writer:
        writer.add("v", np.float32(1))
        with pytest.raises(DuplicateKeyError, match="written twice"):
            writer.add("v", np.float32(2))
        with pytest.raises(DuplicateKeyError, match="written twice"):
            writer.add("", np.float32(2))
        with pytest.raises(DuplicateKeyError, match="written twice"):
            writer.add_slice("v", (2,), ((0, 1),), np.float32([2]))
        writer.add_slice("w", (2,), ((0, 1),), np.float32([1]))
        with pytest.raises(DuplicateKeyError, match="written twice"):
            writer.add_slice("w", (2,), ((0, 1),), np.float32([2]))
        writer.add_slice("w", (2,), ((1, 1),), np.float32([2]))
    with BundleReader(tmp_path / "b") as reader:
        assert reader.read("v").item() == 1
        assert reader.read("w").tolist() == [1, 2]


@pytest.mark.parametrize(
    ("shape", "part", "value", "reason"),
    [
        ((4,), ((1, 4),), np.zeros(4), "outside a dimension of 4"),
        ((4,), ((-1, 2),), np.zeros(2), "outside a dimension of 4"),
        ((4,), ((0, 2), (0, 1)), np.zeros((2, 1)), "2 dimensions of a tensor of 1"),
        ((4,), ((0, 2),), np.zeros(3), "value of shape \\(3,\\)"),
        ((5,), ((3, 2),), np.zeros(2), "disagree"),
        ((4,), ((3, 1),), np.zeros(1, int), "disagree"),
    ],
)
def test_writer_refuses_a_slice_that_does_not_fit(tmp_path, shape, part, value, reason):
    with BundleWriter(tmp_path / "b") as writer:
        writer.add_slice("v", (4,), ((2, 1),), np.zeros(1))
        with pytest.raises(ShapeError, match=reason) as caught:
            writer.add_slice("v", shape, part, value)
        assert caught.value.node == "v"


def test_writer_reports_the_operating_system(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileAccessError, match="cannot write"):
        BundleWriter(tmp_path / "file" / "b")
    (tmp_path / "b.index").mkdir()
    writer = BundleWriter(tmp_path / "b")
    with pytest.raises(FileAccessError, match="cannot write"):
        writer.finish()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.index", "file"]
    with pytest.raises(ValueError):
        BundleWriter(tmp_path / "c", 0)


def test_a_full_disk(tmp_path):
    """Played by a limit on the size of files: what has been written in part must not become a
    bundle.
    """
    import resource
    import signal

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    writer = BundleWriter(tmp_path / "b")
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
        writer.add("small", np.zeros(1 << 10))
        with pytest.raises(FileAccessError, match="cannot write"):
            writer.add("large", np.zeros(1 << 16))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert forge.contents(tmp_path) == {}
    with pytest.raises((ValueError, FileAccessError)):
        writer.add("another", np.zeros(1))
    with pytest.raises(FileAccessError):
        writer.finish()
    assert forge.contents(tmp_path) == {}


def test_checksum_of_strings_over_4_gib():
    """Their lengths count as 64 bits, but only theirs; the string itself is too large for a
    test.
    """
    from reference_impl.format.bundle.tensor_data import _fixed_lengths

    assert _fixed_lengths([1, 2**32 - 1], "<") == bytes([1, 0, 0, 0, 255, 255, 255, 255])
    assert _fixed_lengths([2**32 - 1, 2**32, 1], ">") == bytes(
        [255] * 4 + [0, 0, 0, 1, 0, 0, 0, 0] + [0, 0, 0, 1]
    )
