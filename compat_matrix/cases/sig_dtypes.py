"""Inputs and outputs of every dtype through one signature, with their extreme values."""

CLAUSES = ("SIG-17", "SIG-07", "RP-10")
FEATURES = ("signatures", "dtypes", "bfloat16", "strings")

_NAMES = (
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64"
    " complex128 bool string"
)
_DTYPES = tuple(_NAMES.split())


def build(tf, work):
    root = tf.Module()
    specs = [tf.TensorSpec([None], tf.as_dtype(name), name="in_" + name) for name in _DTYPES]

    @tf.function(input_signature=specs)
    def echo(*values):
        return {"out_" + name: tf.reverse(value, [0]) for name, value in zip(_DTYPES, values)}

    root.echo = echo
    return (
        root,
        echo,
        {"serving_default": lambda **given: echo(*[given["in_" + name] for name in _DTYPES])},
    )


def requests(np):
    given = {}
    for name in _DTYPES:
        if name == "string":
            given["in_string"] = np.array([b"\x00\xff", b"", b"text\x00"], object)
        elif name == "bfloat16":
            given["in_bfloat16"] = {"$cast": ["bfloat16", np.float32([1.5, -2.0, np.inf])]}
        elif name == "bool":
            given["in_bool"] = np.array([True, False, False])
        elif "int" in name:
            given["in_" + name] = np.array([np.iinfo(name).min, 3, np.iinfo(name).max], name)
        else:
            given["in_" + name] = np.array([1.5, -2.0, np.nan], name)
    return [("serving_default", given)]
