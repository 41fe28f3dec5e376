"""Bidirectional dynamic_rnn with GRU cells and resource variables: ReverseSequence and two v1 loops side by side."""

CLAUSES = ("V1-11", "V1-14")
FEATURES = ("v1_control_flow", "dynamic_rnn", "gru", "resource_variables")
RUNTIME = "tf1.14"
REQUIRES = "tensorflow<2.16"  # tf.nn.rnn_cell is part of Keras 2
TOLERANCE = (1e-5, 1e-6, "sigmoid and tanh are approximated differently by newer kernels")


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None, None, 2], "x")
    length = tf.placeholder(tf.int64, [None], "length")
    with tf.variable_scope("encoder", use_resource=True, initializer=tf.constant_initializer(0.25)):
        forward, backward = tf.nn.rnn_cell.GRUCell(3), tf.nn.rnn_cell.GRUCell(3)
        (left, right), _ = tf.nn.bidirectional_dynamic_rnn(forward, backward, x, length, dtype=tf.float32)
    sess = rec.initialized_session()
    rec.export(sess, {"serving_default": rec.signature({"x": x, "length": length}, {"y": tf.concat([left, right], 2)})})
    rec.ask("serving_default", {"x": rec.exact(1, 3, 2), "length": [3]})
    rec.ask("serving_default", {"x": rec.exact(2, 4, 2), "length": [4, 2]})
