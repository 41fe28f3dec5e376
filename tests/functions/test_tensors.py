"""``LoadOptions(weights="mapped")``: the same values, in a private mapping of the checkpoint; large
values copied by threads.
"""

from __future__ import annotations

import gc
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import reference_impl
from reference_impl import errors

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tensorflow

ROWS = 1 << 18


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A SavedModel of TensorFlow: large values of several dtypes, strings, small ones, one at an
    odd place in the file.
    """
    root = tf.Module()
    root.aaa = tf.Variable(tf.range(ROWS * 4, dtype=tf.float32), name="aaa")
    root.half = tf.Variable(tf.cast(tf.range(ROWS * 2), tf.bfloat16), name="half")
    root.ints = tf.Variable(tf.range(ROWS, dtype=tf.int64), name="ints")
    root.odd = tf.Variable(tf.constant([1, 2, 3], tf.int8), name="odd")
    root.shifted = tf.Variable(tf.range(ROWS * 2, dtype=tf.float64), name="shifted")
    root.small = tf.Variable([1.0, 2.0])
    root.words = tf.Variable(["some", "words"])
    root.use = tf.function(lambda x: root.aaa[:4] * x, input_signature=[tf.TensorSpec([4])])
    path = tmp_path_factory.mktemp("mapped") / "model"
    tf.saved_model.save(root, str(path))
    return path


NAMES = ("aaa", "half", "ints", "odd", "shifted", "small", "words")


def shard(model):
    return next((model / "variables").glob("variables.data-*"))


def mapped(model, **options):
    with tf.device("CPU"):
        return reference_impl.load(
            model, options=reference_impl.LoadOptions(weights="mapped", **options)
        )


def mappings(file):
    """The lines of this process's memory map that name a file, by their permissions."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return [line.split()[1] for line in lines if line.endswith(os.fspath(file))]


@pytest.mark.parametrize("verify", [False, True])
def test_values_are_those_of_tensorflow(model, verify):
    found, expected = mapped(model, verify_mapped=verify), tf.saved_model.load(str(model))
    for name in NAMES:
        ours, theirs = getattr(found, name), getattr(expected, name)
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    np.testing.assert_array_equal(found.use(tf.ones(4)), [0, 1, 2, 3])


@pytest.mark.skipif(
    not Path("/proc/self/maps").exists(),
    reason="the system does not list the mappings of a process",
)
def test_mapping_lives_as_long_as_the_variables(model):
    file = shard(model)
    found = mapped(model)
    assert "rw-p" in mappings(file)
    kept = found.aaa
    del found
    gc.collect()
    assert "rw-p" in mappings(file)
    assert float(kept[5]) == 5.0
    del kept
    gc.collect()
    assert not mappings(file)


def test_copied_weights_keep_no_mapping(model):
    found = reference_impl.load(model)
    if Path("/proc/self/maps").exists():
        assert not mappings(shard(model))
    assert float(found.aaa[7]) == 7.0


def test_assigning_does_not_change_the_file_nor_another_load(model):
    before = hashlib.sha256(shard(model).read_bytes()).hexdigest()
    one, other = mapped(model), mapped(model)
    one.aaa.assign_add(tf.ones_like(one.aaa))
    one.ints.assign(tf.zeros_like(one.ints))
    one.aaa.scatter_nd_update([[3]], [100.0])
    one.half.assign_sub(tf.ones_like(one.half))
    optimizer = tf.raw_ops.ResourceApplyGradientDescent
    optimizer(var=one.aaa.handle, alpha=1.0, delta=tf.ones_like(one.aaa))
    assert float(one.aaa[3]) == 99.0
    assert float(one.aaa[4]) == 4.0
    assert int(tf.reduce_sum(one.ints)) == 0
    assert float(other.aaa[3]) == 3.0
    assert int(other.ints[9]) == 9
    assert hashlib.sha256(shard(model).read_bytes()).hexdigest() == before
    assert float(mapped(model).aaa[3]) == 3.0


def test_variables_in_a_scope_of_a_strategy_and_of_a_creator_are_mapped_too(model):
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        found = mapped(model)
    assert float(found.aaa[11]) == 11.0
    seen = []

    def creator(make, **settings):
        seen.append(settings["name"])
        return make(**settings)

    with tf.variable_creator_scope(creator):
        assert float(mapped(model).aaa[11]) == 11.0
        assert float(reference_impl.load(model).aaa[11]) == 11.0
    assert len(seen) == 2 * len(NAMES)


@pytest.mark.parametrize("weights", ["copied", "mapped"])
def test_large_values_of_every_width(tmp_path, weights):
    """Releases differ in the dtypes of which they make empty tensors."""
    names = (
        "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 bool"
        " complex64 complex128 qint8"
    )
    root = tf.Module()
    numbers = tf.range(1 << 20) % 100
    root.values = {
        name: tf.Variable(tf.cast(numbers, name)) for name in names.split() if name != "qint8"
    }
    root.values["qint8"] = tf.Variable(tf.bitcast(tf.cast(numbers, "int8"), "qint8"))
    tf.saved_model.save(root, str(tmp_path / "model"))
    found = reference_impl.load(
        tmp_path / "model", options=reference_impl.LoadOptions(weights=weights)
    )
    written = names.split()
    assert written
    for name in written:
        variable, loaded = root.values[name], found.values[name]
        assert loaded.dtype == variable.dtype
        same = [
            tf.bitcast(value, "int8") if name == "qint8" else value
            for value in (loaded.read_value(), variable.read_value())
        ]
        assert same[0].numpy().tobytes() == same[1].numpy().tobytes(), name


def damaged(model, folder):
    """The model with one bit of a large value turned."""
    copy = folder / "damaged"
    subprocess.run(["cp", "-r", os.fspath(model), os.fspath(copy)], check=True)
    with shard(copy).open("r+b") as stream:
        stream.seek(1 << 20)
        byte = stream.read(1)[0]
        stream.seek(1 << 20)
        stream.write(bytes([byte ^ 1]))
    return copy


def test_damage_is_noticed_when_values_are_copied_or_verified(model, tmp_path):
    copy = damaged(model, tmp_path)
    for options in (
        reference_impl.LoadOptions(),
        reference_impl.LoadOptions(weights="mapped", verify_mapped=True),
    ):
        with pytest.raises(errors.ChecksumError) as caught, tf.device("CPU"):
            reference_impl.load(copy, options=options)
        assert "aaa" in str(caught.value)
        assert isinstance(caught.value, tf.errors.DataLossError)
    mapped(copy)  # nothing is read, so nothing is noticed


def test_a_file_that_is_replaced_does_not_change_mapped_weights(model, tmp_path):
    copy = tmp_path / "model"
    subprocess.run(["cp", "-r", os.fspath(model), os.fspath(copy)], check=True)
    found = mapped(copy)
    fresh = shard(copy).with_name("fresh")
    fresh.write_bytes(bytes(shard(copy).stat().st_size))
    fresh.replace(shard(copy))
    assert float(tf.reduce_sum(found.ints)) == ROWS * (ROWS - 1) / 2


def test_a_saved_copy_of_a_mapped_model_is_whole(model, tmp_path):
    reference_impl.save(mapped(model), tmp_path / "again")
    again = reference_impl.load(tmp_path / "again")
    np.testing.assert_array_equal(again.shifted.numpy(), np.arange(ROWS * 2, dtype=np.float64))


def test_unknown_ways_are_refused():
    with pytest.raises(ValueError, match="'lazy'") as info:
        reference_impl.LoadOptions(weights="lazy")
    assert isinstance(info.value, reference_impl.OptionError)


def test_many_loads_of_many_large_values_at_the_same_time(model):
    """Threads copy for several loads at once; none sees the values of another, and none hangs at
    the end of the process.
    """
    code = """
import sys, threading
import numpy as np, tensorflow as tf, reference_impl
found = []
def load():
    model = reference_impl.load(sys.argv[1])
    found.append(float(tf.reduce_sum(tf.cast(model.ints, tf.float64))))
threads = [threading.Thread(target=load) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(found)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, os.fspath(model)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout.strip() == str([ROWS * (ROWS - 1) / 2] * 4), done.stderr[-1000:]
