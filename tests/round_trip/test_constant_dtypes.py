"""Constants of types that TensorFlow has no op to serialise: 8-bit floating point, narrower ones,
quantized integers.
"""

import numpy as np
import pytest

import reference_impl

pytestmark = [pytest.mark.tensorflow, pytest.mark.clause("RES-04")]
FLOATS = (
    "float8_e5m2",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e4m3b11fnuz",
    "float8_e5m2fnuz",
    "float4_e2m1fn",
)
INTEGERS = ("int4", "uint4", "int2", "uint2")
QUANTIZED = ("qint8", "quint8", "qint16", "quint16", "qint32")


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    return tensorflow


def values(tf, name):
    """Two rows of a type."""
    dtype = tf.as_dtype(name)
    return tf.constant(np.array([[0, 1], [1, 0]]).astype(dtype.as_numpy_dtype), dtype)


def root_with(tf, constant):
    root = tf.Module()
    root.captured = tf.function(lambda: tf.identity(constant), input_signature=[])
    root.default = tf.function(lambda x=constant: tf.identity(x))
    root.default.get_concrete_function()
    return root


def available(tf, name):
    try:
        tf.as_dtype(name)
    except TypeError:  # a type of later releases
        return False
    return True


ALL = (*FLOATS, *INTEGERS, *QUANTIZED, "bfloat16", "float16", "complex64", "bool", "uint64")
NOT_TRACED_WHEN_SMALL = (
    "float8_e4m3fnuz",
    "float8_e4m3b11fnuz",
    "float8_e5m2fnuz",
)  # TypeError of TensorFlow's capture
SHAPES = [(name, shape) for name in ALL for shape in ("matrix", "scalar", "empty")]


@pytest.mark.parametrize(
    "name, shape",
    [pair for pair in SHAPES if pair[1] == "matrix" or pair[0] not in NOT_TRACED_WHEN_SMALL],
)
def test_constants_keep_their_bits_in_two_generations(tf, tmp_path, name, shape):
    if not available(tf, name):
        pytest.skip(f"TensorFlow {tf.__version__} has no {name}")
    constant = values(tf, name)
    given = {
        "matrix": constant.numpy(),
        "scalar": constant.numpy()[0, 1],
        "empty": constant.numpy()[:0],
    }[shape]
    constant = tf.constant(np.asarray(given), constant.dtype)
    root = root_with(tf, constant)
    for generation in range(2):
        reference_impl.save(root, tmp_path / str(generation))
        root = reference_impl.load(tmp_path / str(generation))
        for function in (root.captured, root.default):
            found = function()
            assert found.dtype == constant.dtype and found.shape == constant.shape
            assert found.numpy().tobytes() == constant.numpy().tobytes()


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn", "int4"])
def test_tensorflow_reads_them(tf, tmp_path, name):
    if not available(tf, name):
        pytest.skip(f"TensorFlow {tf.__version__} has no {name}")
    constant = values(tf, name)
    reference_impl.save(root_with(tf, constant), tmp_path / "m")
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    assert loaded.captured().numpy().tobytes() == constant.numpy().tobytes()
    assert loaded.default().numpy().tobytes() == constant.numpy().tobytes()
