"""A signature for every dtype, so that each is tested alone: JSON cannot represent some, and 64-bit
integers lose digits.

Values are the extremes, NaN, infinities, negative zero, integers beyond 2**53 and bytes that are
not text.
"""

CLAUSES = ("SIG-07", "SIG-17", "COMPAT-05")
FEATURES = ("signatures", "dtypes", "bfloat16", "strings", "serving")

_NAMES = (
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64"
    " complex128 bool string"
)


def build(tf, work):
    root = tf.Module()
    root.functions = {
        name: tf.function(
            lambda x: {"y": tf.identity(x)},
            input_signature=[tf.TensorSpec([None], tf.as_dtype(name), name="x")],
        )
        for name in _NAMES.split()
    }
    return root, dict(root.functions)


def requests(np):
    out = []
    for name in _NAMES.split():
        if name == "string":
            value = np.array(
                [b"text", b"", "größe \U0001f600".encode(), b"\xff\xfe\x00", b'"\\\n'], object
            )
        elif name == "bfloat16":
            value = {"$cast": ["bfloat16", np.float32([1.5, -0.0, np.inf, np.nan])]}
        elif name == "bool":
            value = np.array([True, False, False])
        elif "int64" in name:
            value = np.array([np.iinfo(name).min, 2**53, 2**53 + 1, np.iinfo(name).max], name)
        elif "int" in name:
            value = np.array([np.iinfo(name).min, 3, np.iinfo(name).max], name)
        else:
            parts = np.finfo(name)  # for a complex dtype: the limits of its parts
            value = np.array([0.1, -0.0, parts.max, parts.tiny, np.inf, -np.inf, np.nan], name)
        out.append((name, {"x": value}))
    return out
