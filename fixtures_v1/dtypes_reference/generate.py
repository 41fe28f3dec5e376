"""A reference variable of every dtype TF 1.15 can keep on a CPU, each with a scalar, a vector and edge values."""

CLAUSES = ("V1-10", "RP-03")
FEATURES = ("dtypes", "ref_variables", "string_variables", "quantized_variables")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.12"  # 1.8 cannot assign a quint16
# No Assign kernel for these on a CPU; a resource variable can hold them.
NO_REFERENCE_KERNEL = ("qint16", "uint32", "uint64")


def values(tf, np):
    """{dtype: edge values}."""
    out = {
        name: [np.iinfo(name).min, 0, 1, np.iinfo(name).max]
        for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    }
    floats = [0.0, -0.0, 1.5, -2.25, float("inf"), float("-inf"), float("nan")]
    out.update(dict.fromkeys(("float16", "bfloat16", "float32", "float64"), floats))
    out.update(
        {
            "bool": [True, False],
            "string": [b"", b"ascii", "größe".encode("utf-8"), b"\x00\xff\x00"],
            "complex64": [1 + 2j, -0.5j],
            "complex128": [1e300 - 1e-300j, 0],
        }
    )
    out.update({name: [-3, 0, 100] for name in ("qint8", "qint16", "qint32")})
    out.update({name: [0, 200] for name in ("quint8", "quint16")})
    return out


def generate(tf, rec, resource=False, leave_out=NO_REFERENCE_KERNEL):
    import numpy as np

    outputs = {}
    for name, data in sorted(values(tf, np).items()):
        if name in leave_out:
            continue
        dtype = tf.as_dtype(name)
        array = np.array(data, dtype=object if name == "string" else dtype.as_numpy_dtype)
        variable = tf.get_variable("var_" + name, initializer=tf.constant(array, dtype), use_resource=resource)
        outputs[name] = tf.identity(variable)
        if not dtype.is_quantized:  # 1.15 cannot make a constant of a single quantized value
            scalar = tf.get_variable("scalar_" + name, initializer=tf.constant(array[1], dtype), use_resource=resource)
            outputs[name + "_scalar"] = tf.identity(scalar)
    sess = rec.initialized_session()
    rec.export(sess, {"serving_default": rec.signature({}, outputs)})
    rec.ask("serving_default", {})
