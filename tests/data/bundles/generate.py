"""Writes the bundles of this folder with the TensorFlow that runs it, and beside each the values it
reads back.

    PYTHONPATH=. python tests/data/bundles/generate.py          # under TensorFlow 1.15.5, then
                                                                under 2.21.0

`NAME.npz` (docs/exporters/artifacts.md, section 2) holds what the checkpoint `NAME` must read as. Python 3.6
syntax.
"""

import pathlib
import sys

import numpy as np
import tensorflow as tf

from compat_matrix.workers import tensors

HERE = pathlib.Path(__file__).resolve().parent
V1 = tf.__version__.startswith("1.")
VERSION = "tf" + "_".join(tf.__version__.split(".")[:2])
if V1:
    tf = tf.compat.v1

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64", "complex64", "complex128"]
# As TensorFlow has no NumPy type for these, they are made from integers of the same width.
QUANTIZED = ["qint8", "quint8", "qint16", "quint16", "qint32"]
ML_DTYPES = [
    "bfloat16", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz",
    "float8_e5m2fnuz", "int4", "uint4", "int2", "uint2", "float4_e2m1fn",
]  # fmt: skip
STRINGS = [b"", b"a", "\u00e4\u00f6\u4e16".encode("utf-8"), b"\x00\xff\x00", b"long " * 60]


def every_dtype():
    """Yields (key, Tensor, tensor): extreme values of every dtype, and the shapes that are
    special.
    """
    for name in INTEGERS:
        info = np.iinfo(name)
        yield name, np.array([info.min, info.max, 0, 1, 100], dtype=name)
    for name in FLOATS:
        special = np.array([0, -0.0, 1.5, -2.25, np.nan, np.inf, -np.inf], dtype=name)
        yield name, special
    yield "complex", np.array([[1 + 2j], [-3.5j]], dtype=np.complex64)
    yield "bool", np.array([[True, False], [False, True]])
    for name in ["float32", "int64", "bool"]:
        yield name + "/scalar", np.array(3, dtype=name)
        yield name + "/empty", np.zeros([0], dtype=name)
        yield name + "/empty_middle", np.zeros([2, 0, 3], dtype=name)
    yield "float32/rank5", np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4, 1)
    text = np.array(STRINGS, dtype=object)
    yield "string", text
    yield "string/matrix", text[:4].reshape(2, 2)
    yield "string/scalar", np.array(b"scalar", dtype=object)
    yield "string/empty", np.zeros([0, 2], dtype=object)


def narrow(name):
    """An array of a dtype of ml_dtypes with every bit pattern it has, but at most 256."""
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, name))
    bits = (
        2
        if name.endswith("int2")
        else 4
        if name.endswith("int4") or name.startswith("float4")
        else 8
    )
    if dtype.itemsize == 2:
        return np.arange(0, 65536, 1021, dtype=np.uint16).view(dtype)
    return np.arange(1 << bits, dtype=np.uint8).view(dtype)


def save(prefix, pairs):
    """Saves (key, tensor) pairs in the order given."""
    keys = [key for key, _ in pairs]
    return tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=keys,
        shape_and_slices=[""] * len(keys),
        tensors=[tensor for _, tensor in pairs],
    )


def dtypes(prefix):
    expected, pairs = {}, []
    for key, array in every_dtype():
        expected[key] = tensors.from_numpy(array)
        # An empty NumPy array of objects says nothing about its dtype.
        pairs.append(
            (
                key,
                tf.constant(array, tf.string if array.dtype == object else None, shape=array.shape),
            )
        )
    for name in QUANTIZED:
        array = np.array([0, 1, 100, np.iinfo(name[1:]).max], dtype=name[1:])
        expected[name] = tensors.Tensor(name, array)
        pairs.append((name, tf.bitcast(tf.constant(array), getattr(tf, name))))
    if V1:
        array = np.array([0x3F80, 0xC020, 0x7FC0], dtype=np.uint16)
        expected["bfloat16"] = tensors.Tensor("bfloat16", array)
        pairs.append(("bfloat16", tf.bitcast(tf.constant(array), tf.bfloat16)))
    else:
        for name in ML_DTYPES:
            array = narrow(name)
            expected[name] = tensors.from_numpy(array)
            pairs.append((name, tf.constant(array)))
    run(save(prefix, pairs))
    return expected


def run(operation):
    if V1:
        with tf.Session() as session:
            session.run(operation)


def partitioned(prefix):
    """Partitioned variables, saved by the Saver of TF 1.x: along the first axis, the last, and of
    strings.
    """
    values = {
        "rows": np.arange(14, dtype=np.float32).reshape(7, 2),
        "columns": np.arange(10, dtype=np.int64).reshape(2, 5),
        "words": np.array([b"one", b"two", b"", b"four", b"five"], dtype=object),
        "whole": np.float64(2.5),
    }
    for name, axis, parts in [("rows", 0, 3), ("columns", 1, 2), ("words", 0, 2)]:
        array = values[name]
        tf.get_variable(
            name,
            initializer=tf.constant(array),
            partitioner=tf.fixed_size_partitioner(parts, axis),
            use_resource=name != "rows",
        )
    tf.get_variable("whole", initializer=tf.constant(values["whole"]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, prefix, write_meta_graph=False, write_state=False)
    return {name: tensors.from_numpy(value) for name, value in values.items()}


def format_v1(prefix):
    """A checkpoint in the format before tensor bundles."""
    tf.get_variable("v", initializer=tf.constant([1.0, 2.0]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver(write_version=tf.train.SaverDef.V1)
        saver.save(session, prefix, write_meta_graph=False, write_state=False)
    return {"v": tensors.from_numpy(np.float32([1, 2]))}


def sharded(prefix):
    """Two shards, merged; a tensor partitioned over both."""
    parts = []
    array = np.arange(12, dtype=np.int32).reshape(3, 4)
    expected = {"split": tensors.from_numpy(array)}
    for shard in range(2):
        parts.append(f"{prefix}_part-{shard}")
        own = {
            f"number/{shard}": np.float32([shard, 0.5]),
            f"text/{shard}": np.array(f"in shard {shard}".encode(), dtype=object),
        }
        expected.update((key, tensors.from_numpy(value)) for key, value in own.items())
        tf.raw_ops.SaveV2(
            prefix=parts[-1],
            tensor_names=[*own, "split"],
            shape_and_slices=["", "", f"3 4 -:{2 * shard},2"],
            tensors=[tf.constant(value) for value in own.values()]
            + [tf.constant(array[:, 2 * shard : 2 * shard + 2])],
        )
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=prefix)
    return expected


def objects(prefix):
    """An object-based checkpoint: dependencies, a list, a slot variable."""
    root = tf.train.Checkpoint(
        weights=[tf.Variable([[1.0, 2.0]], name="w"), tf.Variable(3, name="n")],
        child=tf.Module(),
        step=tf.Variable(np.int64(7)),
    )
    root.child.text = tf.Variable(["x", "y"])
    root.write(prefix)
    reader = tf.train.load_checkpoint(prefix)
    return {
        key: tensors.from_numpy(reader.get_tensor(key))
        for key in reader.get_variable_to_shape_map()
    }


def variants(prefix):
    """Elements without a NumPy type; expected are the serialised VariantTensorDataProto, as
    serialize_tensor gives them.
    """
    one = tf.raw_ops.EmptyTensorList(
        element_shape=[2], max_num_elements=2, element_dtype=tf.float32
    )
    one = tf.raw_ops.TensorListPushBack(input_handle=one, tensor=tf.constant([1.0, 2.0]))
    two = tf.raw_ops.TensorListPushBack(input_handle=one, tensor=tf.constant([3.0, 4.0]))
    pairs = [("scalar", one), ("pair", tf.stack([one, two]))]
    save(prefix, pairs)
    return {key: tensors.from_numpy(variant_elements(tensor)) for key, tensor in pairs}


def variant_elements(tensor):
    from google.protobuf.internal.decoder import _DecodeVarint
    from tensorflow.core.framework import tensor_pb2

    content = tensor_pb2.TensorProto.FromString(
        tf.io.serialize_tensor(tensor).numpy()
    ).tensor_content
    values = np.empty(tensor.shape.num_elements(), dtype=object)
    position, lengths = 0, []
    for _ in range(len(values)):
        length, position = _DecodeVarint(content, position)
        lengths.append(length)
    for index, length in enumerate(lengths):
        values[index] = content[position : position + length]
        position += length
    return values.reshape(tensor.shape)


def main():
    for make in [dtypes, partitioned, format_v1] if V1 else [dtypes, sharded, objects, variants]:
        prefix = str(HERE / f"{VERSION}_{make.__name__}")
        if V1:
            tf.reset_default_graph()
        tensors.save(prefix + ".npz", make(prefix))
        print(prefix)


if __name__ == "__main__":
    sys.exit(main())
