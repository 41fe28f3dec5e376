"""Resource variables of qint16 and quint16, which later TensorFlows cannot assign on a CPU, and a constant of each."""

CLAUSES = ("V1-08", "RP-03")
FEATURES = ("dtypes", "quantized_variables", "resource_variables", "removed_kernel")
RUNTIME = "tf1.15"


def generate(tf, rec):
    import numpy as np

    outputs = {}
    for name, data in (("qint16", [-3, 0, 32767]), ("quint16", [0, 65535])):
        dtype = tf.as_dtype(name)
        constant = tf.constant(np.array(data, dtype.as_numpy_dtype), dtype)
        outputs[name] = tf.identity(tf.get_variable("var_" + name, initializer=constant, use_resource=True))
        outputs[name + "_constant"] = tf.identity(constant)
    sess = rec.initialized_session()
    rec.export(sess, {"serving_default": rec.signature({}, outputs)})
    rec.ask("serving_default", {})
