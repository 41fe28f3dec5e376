"""dynamic_rnn of an LSTM cell over padded sequences, final state returned (v1 loops, TensorArray, TF 1.8)."""

CLAUSES = ("V1-11",)
FEATURES = ("v1_control_flow", "dynamic_rnn", "lstm", "tensor_array")
RUNTIME = "tf1.8"
REQUIRES = "tensorflow<2.16"  # tf.nn.rnn_cell is part of Keras 2
TOLERANCE = (1e-5, 1e-6, "sigmoid and tanh are approximated differently by newer kernels")


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None, None, 3], "x")
    length = tf.placeholder(tf.int32, [None], "length")
    cell = tf.nn.rnn_cell.LSTMCell(4, initializer=tf.constant_initializer(rec.exact(7, 16) / 2))
    outputs, state = tf.nn.dynamic_rnn(cell, x, sequence_length=length, dtype=tf.float32)
    sess = rec.initialized_session()
    rec.export(
        sess, {"serving_default": rec.signature({"x": x, "length": length}, {"outputs": outputs, "c": state.c, "h": state.h})}
    )
    rec.ask("serving_default", {"x": rec.exact(1, 2, 3), "length": [2]})
    rec.ask("serving_default", {"x": rec.exact(3, 5, 3), "length": [5, 1, 0]})
