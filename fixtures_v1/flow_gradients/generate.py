"""Loops, branches, TensorArrays and embeddings with the gradients that tf.gradients made for them, one signature each."""

CLAUSES = ("V1-11", "V1-14")
FEATURES = (
    "v1_control_flow",
    "while_loop",
    "cond",
    "tensor_array",
    "gradient",
    "stacks",
    "partitioned_variables",
    "ref_variables",
)
RUNTIME = "tf1.15"
REQUIRES = "tensorflow<2.16"  # tf.nn.rnn_cell is part of Keras 2
TOLERANCE = (1e-5, 1e-6, "tanh, and sums over iterations whose order depends on the kernels")


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None, 3], "x")
    n = tf.placeholder(tf.int32, [], "n")
    w = tf.get_variable("w", initializer=rec.exact(3, 3))
    b = tf.get_variable("b", initializer=rec.exact(3))

    def part(shape, dtype=None, partition_info=None):
        start = partition_info.var_offset[0]
        return tf.constant(rec.exact(6, 3)[start : start + shape[0]])

    table = tf.get_variable("table", [6, 3], initializer=part, partitioner=tf.fixed_size_partitioner(2))

    def nested():
        def outer(i, a):
            start = tf.cond(tf.reduce_sum(a) > 0.0, lambda: tf.tanh(a * b), lambda: a - b * 0.5)
            _, inner = tf.while_loop(lambda j, c: j < i + 1, lambda j, c: (j + 1, tf.tanh(tf.matmul(c, w))), [0, start])
            return i + 1, tf.where(tf.equal(i % 2, 0), inner, inner + a)

        return tf.while_loop(lambda i, a: i < n, outer, [0, x])[1]

    def branches():
        inner = lambda: tf.cond(n > 2, lambda: tf.matmul(x, w), lambda: x * b)  # noqa: E731
        return tf.cond(n > 0, inner, lambda: tf.constant(1.0) * x * x)

    def recurrent():
        inputs = tf.stack([x, x * 0.5, tf.sin(x)], 1)
        lengths = tf.fill([tf.shape(x)[0]], tf.minimum(n, 3))
        cell = tf.nn.rnn_cell.BasicRNNCell(2)
        outputs, state = tf.nn.dynamic_rnn(cell, inputs, sequence_length=lengths, dtype=tf.float32)
        return tf.reduce_sum(outputs, 1) + state

    def arrays():
        rows = tf.map_fn(lambda row: tf.tanh(row * b), x)
        return tf.scan(lambda a, row: tf.tanh(a + row), rows, initializer=b)

    def embedded():
        def step(i, a):
            return i + 1, a + tf.nn.embedding_lookup(table, tf.stack([i % 6, 2, (i * 2) % 6]), "div") * tf.gather(
                w, [0, i % 3, 2]
            )

        _, looped = tf.while_loop(lambda i, a: i < n, step, [0, tf.zeros([3, 3])])
        return tf.matmul(x, looped) + tf.nn.embedding_lookup(table, [5], "div")

    def growing():
        shapes = [tf.TensorShape([]), tf.TensorShape([None, 3])]
        step = lambda i, a: (i + 1, tf.concat([a, tf.tanh(a[:1] * b)], 0))  # noqa: E731
        return tf.while_loop(lambda i, a: i < n, step, [0, x[:1]], shape_invariants=shapes)[1]

    signatures = {}
    for make in (nested, branches, recurrent, arrays, embedded, growing):
        name = make.__name__
        with tf.variable_scope(name, initializer=tf.constant_initializer(rec.exact(5, 2))):
            y = make()
        sources = {"x": x}
        for variable in tf.trainable_variables():
            sources[variable.op.name] = variable
        found = dict(zip(sorted(sources), tf.gradients(y, [sources[key] for key in sorted(sources)])))
        gradients = {key: tf.convert_to_tensor(value) for key, value in found.items() if value is not None}
        signatures[name] = rec.signature({"x": x, "n": n}, {"y": y})
        signatures[name + "_gradients"] = rec.signature({"x": x, "n": n}, gradients)
    rec.export(rec.initialized_session(), signatures)
    for name in sorted(signatures):
        # In a loop of no iteration the gradient that TF 1.15 makes for a gather fails: "segment_ids[0] = 0 is out of range".
        for count in (1, 4) if name == "embedded_gradients" else (0, 1, 4):
            rec.ask(name, {"x": rec.exact(2, 3), "n": count})
