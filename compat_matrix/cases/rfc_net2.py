"""RFC example Net2: the signature is chosen at export, and a Python argument picks the trace
without becoming an input.

Inputs are labels, x1 and x2, in any order; the outputs of a sequence are numbered from zero, as
shipped.
"""

CLAUSES = ("SIG-05", "SIG-06", "SIG-07", "SIG-08", "SIG-09")
FEATURES = ("signatures", "literals", "unknown rank")


def build(tf, work):
    class Net2(tf.Module):
        @tf.function
        def infer(self, labels, training, x1, x2):
            if training:
                return labels, x1, x2
            return labels, x1 + 1.0, x2 + 1.0

    net = Net2()
    infer = net.infer.get_concrete_function(
        tf.TensorSpec(None, tf.int64),
        training=False,
        x1=tf.TensorSpec([None, None, 3], tf.float32),
        x2=tf.TensorSpec(None, tf.float64),
    )
    return net, infer


def requests(np):
    given = {"labels": np.int64([0, 1]), "x1": np.float32([[[1, 2, 3]]]), "x2": np.float64(0)}
    return [
        ("serving_default", given),
        ("infer", (given["labels"],), {"training": False, "x1": given["x1"], "x2": given["x2"]}),
    ]
