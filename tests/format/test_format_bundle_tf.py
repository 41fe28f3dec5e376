"""Bundles against TensorFlow itself: both read what the other wrote, and both write the same
bytes.
"""

import os
from pathlib import Path

import numpy as np
import pytest
import test_format_bundle as plain
import zoo

from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.bundle.slices import FULL
from reference_impl.format.bundle.writer import BundleWriter
from reference_impl.format.values import dtypes
from savedmodel_common import tensors
from savedmodel_kit.forge import tables as forge

pytestmark = pytest.mark.tensorflow

SHAPES = {
    "scalar": (),
    "one": (1,),
    "vector": (7,),
    "matrix": (3, 5),
    "rank 6": (1, 2, 1, 3, 2, 1),
    "empty": (0,),
    "hollow": (2, 0, 3),
}


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    return tensorflow


@pytest.fixture(scope="module")
def stored(tf):
    """The dtypes in checkpoints that this TensorFlow knows; 2.21 has them all."""
    from tensorflow.core.framework import types_pb2

    return [
        dtype
        for dtype in dtypes.ALL
        if dtype.number in types_pb2.DataType.values() and dtype.name not in ("resource", "variant")
    ]


def random_array(dtype, shape, rng):
    """Random bits: every NaN, every denormal, every element of the narrow types."""
    if dtype.name == "string":
        out = np.empty(shape, dtype=object)
        for index in np.ndindex(*shape):
            out[index] = rng.bytes(int(rng.choice([0, 1, 5, 127, 128, 300])))
        return out
    count = int(np.prod(shape, dtype=int))
    if dtype.name == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    data = np.frombuffer(rng.bytes(count * dtype.itemsize), np.uint8)
    if dtype.bits < 8:
        data = data & ((1 << dtype.bits) - 1)
    return data.view(dtype.numpy()).reshape(shape)


def to_tensor(tf, array, dtype):
    if dtype.name.startswith("q"):
        return tf.bitcast(tf.constant(array), tf.as_dtype(dtype.number))
    theirs = tf.as_dtype(dtype.number)
    if dtype.ml_dtype:  # TensorFlow before 2.14 has a bfloat16 of its own
        array = array.view(theirs.as_numpy_dtype)
    return tf.constant(array, theirs, shape=array.shape)


def save(tf, prefix, pairs, slices=None):
    keys = [key for key, _ in pairs]
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=keys,
        shape_and_slices=slices or [""] * len(keys),
        tensors=[value for _, value in pairs],
    )


@pytest.fixture(scope="module")
def values(stored):
    rng = np.random.default_rng(0)
    return {
        f"{dtype.name}/{name}": (dtype, random_array(dtype, shape, rng))
        for dtype in stored
        for name, shape in SHAPES.items()
    }


@pytest.fixture(scope="module")
def theirs(tf, values, tmp_path_factory):
    """A bundle by TensorFlow with every dtype in every kind of shape."""
    prefix = tmp_path_factory.mktemp("theirs") / "b"
    save(tf, prefix, [(key, to_tensor(tf, array, dtype)) for key, (dtype, array) in values.items()])
    return prefix


@pytest.fixture(scope="module")
def ours(values, tmp_path_factory):
    """The same by our writer."""
    prefix = tmp_path_factory.mktemp("ours") / "b"
    with BundleWriter(prefix) as writer:
        for key, (dtype, array) in values.items():
            writer.add(key, array, dtype)
    return prefix


def bits(array, dtype):
    got = tensors.from_numpy(array, dtype.name)
    return (
        got.dtype,
        got.array.shape,
        got.array.tolist() if got.dtype == "string" else got.array.tobytes(),
    )


def test_all_dtypes_of_tensorflow_are_known(tf, stored):
    from tensorflow.core.framework import types_pb2

    names = {number: name for name, number in types_pb2.DataType.items() if 0 < number < 100}
    assert {dtype.number: dtype.enum for dtype in dtypes.ALL}.items() >= names.items()
    for dtype in stored:
        theirs = tf.as_dtype(dtype.number)
        assert (dtype.name, dtype.itemsize or 0) == (theirs.name, theirs.size)
        reference = dtypes.by_number(dtype.number + 100)
        assert tf.as_dtype(reference.number).name == reference.name


def test_we_read_what_tensorflow_reads(tf, theirs, values):
    reader = tf.train.load_checkpoint(str(theirs))
    with BundleReader(theirs) as mine:
        assert set(mine.keys()) == set(reader.get_variable_to_shape_map()) == set(values)
        for key, entry in mine.entries().items():
            assert list(entry.shape) == reader.get_variable_to_shape_map()[key]
            assert entry.dtype.number == reader.get_variable_to_dtype_map()[key].as_datatype_enum
            read = mine.read(key)
            assert bits(read, entry.dtype) == bits(values[key][1], entry.dtype), key
            if (
                entry.dtype.name != "string"
            ):  # TensorFlow gives a string scalar as bytes, without an array
                assert bits(read, entry.dtype) == bits(
                    np.asarray(reader.get_tensor(key)), entry.dtype
                ), key
            else:
                assert read.tolist() == np.asarray(reader.get_tensor(key), dtype=object).tolist(), (
                    key
                )
        mine.verify_all()


def test_tensorflow_reads_what_we_write(tf, ours, values):
    keys = list(values)
    assert keys
    restored = tf.raw_ops.RestoreV2(
        prefix=str(ours),
        tensor_names=keys,
        shape_and_slices=[""] * len(keys),
        dtypes=[values[key][0].number for key in keys],
    )
    for key, tensor in zip(keys, restored):
        dtype, array = values[key]
        if dtype.name.startswith("q"):
            tensor = tf.bitcast(tensor, tf.as_dtype(dtype.name[1:]))
        assert bits(
            np.asarray(tensor.numpy(), dtype=object if dtype.name == "string" else None), dtype
        ) == bits(array, dtype), key


def test_the_bytes_are_equal(ours, theirs):
    assert forge.contents(ours.parent) == forge.contents(theirs.parent)


def test_an_index_of_many_blocks(tf, tmp_path):
    """More than 256 KiB of index, with keys whose separators can be shortened and keys whose
    cannot.
    """
    keys = [
        f"layer_{number}/{'x' * (number % 37)}/.ATTRIBUTES/VARIABLE_VALUE" for number in range(5000)
    ]
    keys += [b"z%05d" % number + b"\xff" * 150 for number in range(2000)]
    values = [np.int8(number % 100) for number in range(len(keys))]
    (tmp_path / "theirs").mkdir()
    save(tf, tmp_path / "theirs" / "b", list(zip(keys, values)))
    with BundleWriter(tmp_path / "ours" / "b") as writer:
        for key, value in zip(keys, values):
            writer._add(key if isinstance(key, bytes) else key.encode(), value, None, 0)
    assert (tmp_path / "ours" / "b.index").stat().st_size > 512 << 10
    assert forge.contents(tmp_path / "ours") == forge.contents(tmp_path / "theirs")


def test_slices_have_the_same_keys_and_bytes(tf, tmp_path):
    """Starts of every magnitude, whole dimensions given and implied, names that need escaping,
    strings.
    """
    (tmp_path / "theirs").mkdir()
    matrix = np.arange(12, dtype=np.float32).reshape(4, 3)
    words = np.array([b"a", b"", b"c" * 200], dtype=object)
    starts = sorted({0} | {(1 << bit) + d for bit in range(5, 62) for d in (-1, 0, 1)})
    jobs = [("v", (4, 3), ((0, 1), FULL), matrix[:1]), ("v", (4, 3), ((1, 3), FULL), matrix[1:])]
    jobs += [
        ("w", (4, 3), ((0, 4), (0, 2)), matrix[:, :2]),
        ("w", (4, 3), ((0, 4), (2, 1)), matrix[:, 2:]),
    ]
    jobs += [
        ("whole", (4, 3), (FULL, FULL), matrix),
        ("\0\1n\0", (3,), ((0, 2),), words[:2]),
        ("\0\1n\0", (3,), ((2, 1),), words[2:]),
    ]
    jobs += [(f"at {start}", (2**62 + 5,), ((start, 1),), np.int8([1])) for start in starts]
    texts = []
    for _, shape, part, _ in jobs:
        extents = ":".join("-" if extent == FULL else "{},{}".format(*extent) for extent in part)
        texts.append(" ".join(map(str, shape)) + " " + extents)
    save(
        tf,
        tmp_path / "theirs" / "b",
        [(key, tf.constant(value)) for key, _, _, value in jobs],
        texts,
    )
    with BundleWriter(tmp_path / "ours" / "b") as writer:
        for job in jobs:
            writer.add_slice(*job)
    assert forge.contents(tmp_path / "ours") == forge.contents(tmp_path / "theirs")
    for side in ("ours", "theirs"):
        with BundleReader(tmp_path / side / "b") as reader:
            assert (
                reader.read("v").tolist()
                == reader.read("w").tolist()
                == reader.read("whole").tolist()
                == matrix.tolist()
            )
            assert reader.read("\0\1n\0").tolist() == words.tolist()
            assert "at 63" in reader.entries()


def test_merged_shards(tf, tmp_path):
    (tmp_path / "theirs").mkdir()
    parts = [
        tf.raw_ops.ShardedFilename(basename=str(tmp_path / "part"), shard=n, num_shards=3)
        .numpy()
        .decode()
        for n in range(3)
    ]
    whole = np.arange(6, dtype=np.int64).reshape(3, 2)
    for n, part in enumerate(parts):
        pairs = [
            (f"b{n}", tf.constant([n, 1.5])),
            ("whole", tf.constant(whole[n : n + 1])),
            (f"a{n}", tf.constant("text")),
        ]
        save(tf, part, pairs, ["", f"3 2 {n},1:-", ""])
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=parts, destination_prefix=str(tmp_path / "theirs" / "b")
    )
    with BundleWriter(tmp_path / "ours" / "b", 3) as writer:
        for n in range(3):
            writer.add(f"b{n}", np.float32([n, 1.5]), shard=n)
            writer.add_slice("whole", (3, 2), ((n, 1), FULL), whole[n : n + 1], shard=n)
            writer.add(f"a{n}", "text", shard=n)
    assert forge.contents(tmp_path / "ours") == forge.contents(tmp_path / "theirs")
    with BundleReader(tmp_path / "theirs" / "b") as reader:
        reader.verify_all()
        assert reader.num_shards == 3
        assert reader.read("whole").tolist() == whole.tolist()


def test_a_checkpoint_of_objects(tf, tmp_path):
    """tf.train.Checkpoint writes through temporary shards and a merge; its order is ours to
    repeat.
    """
    root = tf.train.Checkpoint(step=tf.Variable(3), model=tf.Module())
    root.model.layers = [tf.Variable(tf.random.normal([4, 2])), tf.Variable(["a", "b"])]
    (tmp_path / "theirs").mkdir()
    root.write(str(tmp_path / "theirs" / "b"))
    plain.copy(tmp_path / "theirs" / "b", tmp_path / "ours" / "b")
    assert forge.contents(tmp_path / "ours") == forge.contents(tmp_path / "theirs")
    before = root.model.layers[0].numpy()
    root.model.layers[0].assign(tf.zeros([4, 2]))
    root.read(str(tmp_path / "ours" / "b")).assert_consumed()
    assert root.model.layers[0].numpy().tolist() == before.tolist()


def test_variants(tf, tmp_path):
    """Opaque to us, but copied so that TensorFlow decodes them."""
    items = tf.raw_ops.TensorListFromTensor(
        tensor=tf.constant([[1.0, 2.0], [3.0, 4.0]]), element_shape=[2]
    )
    (tmp_path / "theirs").mkdir()
    save(tf, tmp_path / "theirs" / "b", [("v", tf.stack([items, items])), ("scalar", items)])
    plain.copy(tmp_path / "theirs" / "b", tmp_path / "ours" / "b")
    assert forge.contents(tmp_path / "ours") == forge.contents(tmp_path / "theirs")
    (value,) = tf.raw_ops.RestoreV2(
        prefix=str(tmp_path / "ours" / "b"),
        tensor_names=["v"],
        shape_and_slices=[""],
        dtypes=[tf.variant],
    )
    stacked = tf.raw_ops.TensorListStack(
        input_handle=value[1], element_shape=[2], element_dtype=tf.float32
    )
    assert stacked.numpy().tolist() == [[1, 2], [3, 4]]


def test_tensorflow_agrees_about_big_endian(tf, tmp_path):
    values = plain.big_endian(tmp_path / "b")
    reader = tf.train.load_checkpoint(str(tmp_path / "b"))
    for key, value in values.items():
        assert np.asarray(reader.get_tensor(key)).tolist() == value.tolist(), key
    assert reader.get_tensor("y").astype(np.float32).tolist() == [1, -2.5]


@pytest.mark.parametrize("name", [name for name in plain.BUNDLES if not name.endswith("variants")])
def test_the_committed_bundles_are_what_tensorflow_reads(tf, stored, name):
    expected_of = tensors.load(str(plain.DATA / f"{name}.npz"))
    readable = {
        key: value for key, value in expected_of.items() if dtypes.by_name(value.dtype) in stored
    }
    assert readable
    for key, expected in readable.items():
        # TensorFlow reads partitioned strings only slice by slice.
        slices = ["5 0,3", "5 3,2"] if key == "words" else [""]
        restored = tf.raw_ops.RestoreV2(
            prefix=str(plain.DATA / name),
            tensor_names=[key] * len(slices),
            shape_and_slices=slices,
            dtypes=[tf.as_dtype(expected.dtype)] * len(slices),
        )
        value = restored[0] if len(slices) == 1 else tf.concat(restored, 0)
        if expected.dtype.startswith("q"):
            value = tf.bitcast(value, tf.as_dtype(expected.dtype[1:]))
        assert plain.same(
            np.asarray(value.numpy(), dtype=object if expected.dtype == "string" else None),
            expected,
            expected.dtype,
        )


@pytest.mark.skipif(not zoo.models(), reason=zoo.ABSENT)
def test_real_models(tf):
    indexes = list(plain.real_indexes())
    assert indexes
    for index in indexes:
        prefix = os.fspath(Path(index).with_suffix(""))
        reader = tf.train.load_checkpoint(prefix)
        with BundleReader(prefix) as mine:
            assert set(mine.keys()) == set(reader.get_variable_to_shape_map())
            for key, entry in mine.entries().items():
                theirs = np.asarray(
                    reader.get_tensor(key), dtype=object if entry.dtype.name == "string" else None
                )
                assert bits(mine.read(key), entry.dtype) == bits(theirs, entry.dtype), (prefix, key)
