"""Reading and writing tensor bundles without TensorFlow, on bundles that TensorFlow wrote and on
handmade ones.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zoo

from reference_impl.errors import (
    ChecksumError,
    DtypeError,
    MissingFileError,
    MissingKeyError,
    UnsupportedError,
    V1CheckpointError,
)
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.bundle.slices import FULL, slice_key
from reference_impl.format.bundle.table import TableReader
from reference_impl.format.bundle.writer import BundleWriter
from reference_impl.format.values import dtypes
from reference_impl.views.variables import stored_size
from savedmodel_common import tensors
from savedmodel_kit.forge import tables as forge

DATA = Path(__file__).parents[1] / "data" / "bundles"
BUNDLES = sorted(path.stem for path in DATA.glob("*.index"))


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
        stored = reader.stored()
        places = {}
        for raw, entry in stored.items():
            if not entry.slices:
                places.setdefault((raw.decode("utf-8", "replace"), None), entry)
                continue
            for part, (part_key, part_entry, box) in zip(entry.slices, reader._parts(raw, entry)):
                places.pop((part_key.decode("utf-8", "replace"), None), None)
                places[raw.decode(), (entry.shape, part, box)] = part_entry
        for (key, where), entry in sorted(
            places.items(), key=lambda item: (item[1].shard, item[1].offset, item[1].size)
        ):
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
    assert forge.contents(tmp_path) == {
        path.name: path.read_bytes() for path in DATA.glob(f"{name}.*") if path.suffix != ".npz"
    }


def test_format_v1_is_refused():
    with pytest.raises(V1CheckpointError, match="format V1"):
        BundleReader(DATA / "tf1_15_format_v1")


def test_object_graph():
    with BundleReader(DATA / "tf2_21_objects") as reader:
        graph = reader.object_graph()
        assert [child.local_name for child in graph.nodes[0].children] == [
            "child",
            "step",
            "weights",
        ]
        assert graph.nodes[2].attributes[0].checkpoint_key in reader
    with (
        BundleReader(DATA / "tf1_15_dtypes") as reader,
        pytest.raises(MissingKeyError, match="_CHECKPOINTABLE_OBJECT_GRAPH"),
    ):
        reader.object_graph()


def test_partitioned_variables_are_one_key():
    with BundleReader(DATA / "tf1_15_partitioned") as reader:
        assert reader.keys() == ["columns", "rows", "whole", "words"]
        assert reader.entry("rows").slices == (((0, 3), (0, 2)), ((3, 2), (0, 2)), ((5, 2), (0, 2)))
        assert reader.entry("columns").slices == (((0, 2), (0, 3)), ((0, 2), (3, 2)))
        assert reader.entry("rows").shape == (7, 2)
        assert [stored_size(reader.entry(name)) for name in ("rows", "words")] == [
            7 * 2 * 4,
            None,
        ]  # of strings not known


def test_keys_of_parts_sort_as_names_and_parts_do():
    assert slice_key(b"a\0b\xff", (FULL, (3, 2))) == b"\0a\0\xffb\xff\0\0\1\1\2\x80\x7f\x83\x82"
    names = [b"", b"\0", b"\0\xff", b"a", b"a\0", b"a\0b", b"a\x01", b"a\xff", b"a\xff\xff", b"b"]
    starts = [0, 1, 63, 64, 300, 1 << 20]
    keys = [slice_key(name, ((start, 1),)) for name in names for start in starts]
    assert keys == sorted(keys)


def real_indexes():
    return [index for model in zoo.models() for index in sorted(model.glob("**/*.index"))]


@pytest.mark.skipif(not zoo.models(), reason=zoo.ABSENT)
def test_real_models_are_copied_byte_for_byte(tmp_path):
    """Every checkpoint, but for the index of those that have a compressed one: this writer does not
    compress.
    """
    compressed = 0
    for index in real_indexes():
        prefix = index.with_suffix("")
        with BundleReader(prefix) as reader:
            reader.verify_all()
        copy(prefix, tmp_path / "c" / prefix.name)
        copied = forge.contents(tmp_path / "c")
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
        "import sys; from reference_impl.format.bundle.reader import BundleReader\n"
        "with BundleReader(sys.argv[1]) as reader: print(len(reader.entries()))\n"
        "print(sorted({'numpy', 'ml_dtypes', 'tensorflow', 'cramjam'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, DATA / "tf2_21_dtypes"],
        capture_output=True,
        text=True,
        check=True,
    )
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
    """The same values in the other byte order; TensorFlow is asked about it in
    test_format_bundle_tf.py.
    """
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
            message = forge.tensor(
                stored, dtypes.from_numpy(value.dtype).number, value.shape, offset=len(data)
            )
        entries[key.encode()] = message
        data += stored
    data += b"\x3f\x80\xc0\x20"
    entries[b"y"] = forge.tensor(
        data[-4:], dtypes.by_name("bfloat16").number, (2,), offset=len(data) - 4
    )
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


# The table of types


def test_dtype_table():
    assert [dtype.number for dtype in dtypes.ALL] == list(range(1, 34))
    for dtype in dtypes.ALL:
        assert (
            dtypes.by_number(dtype.number)
            is dtypes.by_name(dtype.name)
            is dtypes.by_name(dtype.enum)
            is dtype
        )
        reference = dtypes.by_number(dtype.number + 100)
        assert reference.base is dtype
        assert (
            dtypes.by_name(f"{dtype.name}_ref") is reference is dtypes.by_name(f"{dtype.enum}_REF")
        )
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
    with pytest.raises(UnsupportedError, match=r"int2 .*ml_dtypes"):
        dtypes.by_name("int2").numpy()
