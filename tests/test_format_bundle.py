"""Reading and writing tensor bundles without TensorFlow, on bundles that TensorFlow wrote and on handmade ones."""

import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path

import bundle_forge as forge
import numpy as np
import pytest
import zoo

from compat_matrix.workers import tensors
from reference_impl.format import dtypes
from reference_impl.format.bundle import BundleReader
from reference_impl.format.bundle_writer import BundleWriter
from reference_impl.format.errors import (
    ChecksumError,
    DtypeError,
    DuplicateKeyError,
    FileAccessError,
    MissingFileError,
    MissingKeyError,
    ShapeError,
    UnsupportedError,
    V1CheckpointError,
)
from reference_impl.format.slices import FULL
from reference_impl.format.sstable import TableReader

DATA = Path(__file__).parent / "data" / "bundles"
BUNDLES = sorted(path.stem for path in DATA.glob("*.index"))


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def same(value, expected, dtype):
    """Equal dtype, shape and bits (so NaN and -0.0 count)."""
    got = tensors.from_numpy(value, "string" if dtype == "variant" else dtype)
    assert got.dtype == expected.dtype
    assert got.array.shape == expected.array.shape
    if got.dtype == "string":
        return got.array.tolist() == expected.array.tolist()
    return got.array.tobytes() == expected.array.tobytes()


# Bundles of TensorFlow


def test_there_are_bundles():
    assert len(BUNDLES) == 6


@pytest.mark.parametrize("name", BUNDLES)
def test_reads_what_tensorflow_read(name):
    expected = tensors.load(str(DATA / f"{name}.npz"))
    with BundleReader(DATA / name) as reader:
        reader.verify_all()
        assert reader.keys() == sorted(expected) == list(reader.entries())
        for key, tensor in expected.items():
            entry = reader.entry(key)
            assert key in reader
            assert entry.shape == tensor.array.shape
            assert same(reader.read(key), tensor, entry.dtype.name), key
            assert same(reader.read(key, verify=False), tensor, entry.dtype.name), key
            reader.verify(key)


def test_every_dtype_is_in_the_bundles():
    found = set()
    for name in BUNDLES:
        with BundleReader(DATA / name) as reader:
            found |= {entry.dtype.name for entry in reader.entries().values()}
    assert found == {dtype.name for dtype in dtypes.ALL} - {"resource"}


def copy(source, target):
    """Writes a bundle again, tensors in the order of their bytes."""
    with BundleReader(source) as reader, BundleWriter(target, reader.num_shards) as writer:
        stored = reader._parse_all()
        places = {}
        for raw, entry in stored.items():
            if not entry.slices:
                places.setdefault((raw.decode("utf-8", "replace"), None), entry)
                continue
            for part, (part_key, part_entry, box) in zip(entry.slices, reader._parts(raw, entry)):
                places.pop((part_key.decode("utf-8", "replace"), None), None)
                places[raw.decode(), (entry.shape, part, box)] = part_entry
        for (key, where), entry in sorted(places.items(), key=lambda item: (item[1].shard, item[1].offset, item[1].size)):
            value = reader.read(key)
            if where is None:
                writer.add(key, value, entry.dtype, entry.shard)
            else:
                shape, part, box = where
                value = value[tuple(slice(start, start + length) for start, length in box)]
                writer.add_slice(key, shape, part, value, entry.dtype, entry.shard)


@pytest.mark.parametrize("name", BUNDLES)
def test_writes_the_same_bytes_as_tensorflow(name, tmp_path):
    copy(DATA / name, tmp_path / name)
    assert contents(tmp_path) == {path.name: path.read_bytes() for path in DATA.glob(f"{name}.*") if path.suffix != ".npz"}


def test_format_v1_is_refused():
    with pytest.raises(V1CheckpointError, match="format V1"):
        BundleReader(DATA / "tf1_15_format_v1")


def test_object_graph():
    with BundleReader(DATA / "tf2_21_objects") as reader:
        graph = reader.object_graph()
        assert [child.local_name for child in graph.nodes[0].children] == ["child", "step", "weights"]
        assert graph.nodes[2].attributes[0].checkpoint_key in reader
    with BundleReader(DATA / "tf1_15_dtypes") as reader, pytest.raises(MissingKeyError, match="_CHECKPOINTABLE_OBJECT_GRAPH"):
        reader.object_graph()


def test_partitioned_variables_are_one_key():
    with BundleReader(DATA / "tf1_15_partitioned") as reader:
        assert reader.keys() == ["columns", "rows", "whole", "words"]
        assert reader.entry("rows").slices == (((0, 3), (0, 2)), ((3, 2), (0, 2)), ((5, 2), (0, 2)))
        assert reader.entry("columns").slices == (((0, 2), (0, 3)), ((0, 2), (3, 2)))
        assert reader.entry("rows").shape == (7, 2)


def real_indexes():
    return [index for model in zoo.models() for index in sorted(model.glob("**/*.index"))]


@pytest.mark.skipif(not zoo.models(), reason=zoo.ABSENT)
def test_real_models_are_copied_byte_for_byte(tmp_path):
    """Every checkpoint, but for the index of those that have a compressed one: this writer does not compress."""
    compressed = 0
    for index in real_indexes():
        prefix = index.with_suffix("")
        with BundleReader(prefix) as reader:
            reader.verify_all()
        copy(prefix, tmp_path / "c" / prefix.name)
        copied = contents(tmp_path / "c")
        original = {name: (prefix.parent / name).read_bytes() for name in copied}
        table = TableReader(original[index.name], index)
        if any(original[index.name][handle.offset + handle.size] for handle in table._handles):
            compressed += 1
            assert list(table) == list(TableReader(copied.pop(index.name), index))
            del original[index.name]
        assert copied == original, prefix
        shutil.rmtree(tmp_path / "c")
    assert compressed < len(real_indexes()) / 10


# Views


def test_numbers_are_read_only_views(tmp_path):
    with BundleWriter(tmp_path / "b") as writer:
        writer.add("pad", np.uint8([1]))
        writer.add("v", np.arange(6, dtype=np.float32).reshape(2, 3))
    reader = BundleReader(tmp_path / "b")
    first, second = reader.read("v"), reader.read("v", verify=False)
    assert np.shares_memory(first, second)
    assert not first.flags.writeable
    with pytest.raises(ValueError):
        first.flags.writeable = True
    reader.close()
    assert first.tolist() == [[0, 1, 2], [3, 4, 5]]  # the view outlives its reader


def test_everything_read_is_read_only():
    for name in ("tf1_15_dtypes", "tf1_15_partitioned", "tf2_21_variants"):
        with BundleReader(DATA / name) as reader:
            assert not any(reader.read(key).flags.writeable for key in reader.entries())


def test_entries_need_no_data(tmp_path):
    shutil.copy(DATA / "tf2_21_sharded.index", tmp_path / "b.index")
    with BundleReader(tmp_path / "b") as reader:
        assert reader.entries()["split"].shape == (3, 4)
        with pytest.raises(MissingFileError, match="no such file") as caught:
            reader.read("number/1")
        assert caught.value.file == str(tmp_path / "b.data-00001-of-00002")


def test_keys_need_neither_numpy_nor_ml_dtypes():
    program = (
        "import sys; from reference_impl.format.bundle import BundleReader\n"
        "with BundleReader(sys.argv[1]) as reader: print(len(reader.entries()))\n"
        "print(sorted({'numpy', 'ml_dtypes', 'tensorflow', 'cramjam'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program, DATA / "tf2_21_dtypes"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["45", "[]"]


def test_absent_keys():
    with BundleReader(DATA / "tf2_21_objects") as reader:
        for key in ("", "child", "step/.ATTRIBUTES/VARIABLE_VALUE ", "\udcff"):
            assert key not in reader
            with pytest.raises(MissingKeyError) as caught:
                reader.read(key)
            assert caught.value.file.endswith("tf2_21_objects.index")
        assert 3 not in reader


def test_verification_can_be_left_out(tmp_path):
    data = np.float32([1, 2]).tobytes()
    forge.bundle(tmp_path / "b", {b"v": forge.tensor(data, shape=(2,), crc=False)}, data)
    with BundleReader(tmp_path / "b") as reader:
        assert reader.read("v", verify=False).tolist() == [1, 2]
        for verified in (reader.read, reader.verify):
            with pytest.raises(ChecksumError, match="the index says 0x00000000") as caught:
                verified("v")
            assert caught.value.node == "v"
            assert caught.value.file == str(tmp_path / "b.data-00000-of-00001")
        with pytest.raises(ChecksumError):
            reader.verify_all()


# Big endian


def big_endian(prefix):
    """The same values in the other byte order; TensorFlow is asked about it in test_format_bundle_tf.py."""
    values = {
        "c": np.complex64([1 + 2j, -3]),
        "b": np.array([True, False]),
        "f": np.float64([[1.5], [-2]]),
        "i": np.int16([1, -2]),
        "s": np.array([b"one", b"", b"three" * 40], dtype=object),
    }
    data, entries = b"", {}
    for key, value in sorted(values.items()):
        if value.dtype == object:
            stored, crc = forge.strings(value.tolist(), ">")
            message = forge.tensor(stored, 7, value.shape, offset=len(data), crc32c=crc)
        else:
            stored = value.astype(value.dtype.newbyteorder(">")).tobytes()
            message = forge.tensor(stored, dtypes.from_numpy(value.dtype).number, value.shape, offset=len(data))
        entries[key.encode()] = message
        data += stored
    data += b"\x3f\x80\xc0\x20"
    entries[b"y"] = forge.tensor(data[-4:], dtypes.by_name("bfloat16").number, (2,), offset=len(data) - 4)
    forge.bundle(prefix, entries, data, forge.header(endianness=1))
    return values


def test_big_endian(tmp_path):
    values = big_endian(tmp_path / "b")
    with BundleReader(tmp_path / "b") as reader:
        reader.verify_all()
        for key, value in values.items():
            got = reader.read(key)
            assert got.dtype == value.dtype
            assert got.dtype.isnative
            assert got.tolist() == value.tolist()
            assert not got.flags.writeable
        assert reader.read("y").astype(np.float32).tolist() == [1, -2.5]


# Writing


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
        assert reader.read("narrow").view(np.uint8).tolist() == [15, 7, 8]  # as TensorFlow: the high bits are zero
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
    assert contents(tmp_path) == {}


def test_writer_replaces_a_bundle_and_nothing_before_the_end(tmp_path):
    for value in (1, 2):
        before = contents(tmp_path)
        writer = BundleWriter(tmp_path / "b")
        writer.add("v", np.float32(value))
        assert {name: data for name, data in contents(tmp_path).items() if not name.endswith(".tmp")} == before
        writer.finish()
        assert sorted(contents(tmp_path)) == ["b.data-00000-of-00001", "b.index"]
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
    """Played by a limit on the size of files: what has been written in part must not become a bundle."""
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
    assert contents(tmp_path) == {}
    with pytest.raises((ValueError, FileAccessError)):
        writer.add("another", np.zeros(1))
    with pytest.raises(FileAccessError):
        writer.finish()
    assert contents(tmp_path) == {}


def test_checksum_of_strings_over_4_gib():
    """Their lengths count as 64 bits, but only theirs; the string itself is too large for a test."""
    from reference_impl.format.tensor_data import _fixed_lengths

    assert _fixed_lengths([1, 2**32 - 1], "<") == bytes([1, 0, 0, 0, 255, 255, 255, 255])
    assert _fixed_lengths([2**32 - 1, 2**32, 1], ">") == bytes([255] * 4 + [0, 0, 0, 1, 0, 0, 0, 0] + [0, 0, 0, 1])


# The table of types


def test_dtype_table():
    assert [dtype.number for dtype in dtypes.ALL] == list(range(1, 34))
    for dtype in dtypes.ALL:
        assert dtypes.by_number(dtype.number) is dtypes.by_name(dtype.name) is dtypes.by_name(dtype.enum) is dtype
        assert dtype.ref.number == dtype.number + 100
        assert dtype.ref.base is dtype
        assert dtypes.by_name(f"{dtype.name}_ref") is dtype.ref is dtypes.by_name(f"{dtype.enum}_REF")
        if dtype.itemsize is not None:
            assert dtype.numpy().itemsize == dtype.itemsize == np.dtype(dtype.carrier).itemsize
            if not dtype.name.startswith("q"):
                assert dtypes.from_numpy(dtype.numpy()) is dtype
    assert dtypes.by_name("string").numpy().kind == "O"
    for number in (0, 34, 100, 120 + 14, -1):
        with pytest.raises(DtypeError):
            dtypes.by_number(number)
    with pytest.raises(DtypeError, match="outside its process"):
        dtypes.by_name("resource").numpy()


def test_an_old_ml_dtypes_is_named(monkeypatch):
    import ml_dtypes

    monkeypatch.delattr(ml_dtypes, "int2")
    with pytest.raises(UnsupportedError, match="int2 needs a newer ml_dtypes"):
        dtypes.by_name("int2").numpy()
