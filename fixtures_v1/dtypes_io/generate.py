"""Inputs and outputs of every dtype a 1.15 session can feed and fetch."""

CLAUSES = ("V1-02",)
FEATURES = ("dtypes", "dtype_io")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.8"  # 1.4 has no uint32 and uint64


def generate(tf, rec):
    import numpy as np

    from fixtures_v1.dtypes_reference.generate import values

    inputs, outputs, asked = {}, {}, {}
    for name, data in sorted(values(tf, np).items()):
        dtype = tf.as_dtype(name)
        inputs[name] = tf.placeholder(dtype, [None], "in_" + name)
        outputs[name + "_out"] = tf.identity(inputs[name])
        asked[name] = np.array(data, dtype=object) if name == "string" else np.array(data).astype(dtype.as_numpy_dtype)
    sess = rec.session()
    rec.export(sess, {"serving_default": rec.signature(inputs, outputs)})
    rec.ask("serving_default", asked)
    rec.ask("serving_default", {name: data[:0] for name, data in asked.items()})
