"""TensorArray written and read in a loop, scattered, gathered, split and concatenated."""

CLAUSES = ("V1-11",)
FEATURES = ("v1_control_flow", "tensor_array", "while_loop")
RUNTIME = "tf1.15"


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None, 2], "x")
    n = tf.shape(x)[0]
    source = tf.TensorArray(tf.float32, n, element_shape=[2]).unstack(x)
    sums = tf.TensorArray(tf.float32, 0, dynamic_size=True, clear_after_read=False, infer_shape=True)

    def body(i, total, out):
        total = total + source.read(i)
        return i + 1, total, out.write(i, total)

    _, total, out = tf.while_loop(lambda i, *_: i < n, body, [0, tf.zeros([2]), sums])
    pieces = tf.TensorArray(tf.float32, n, infer_shape=False).split(tf.reshape(x, [-1]), tf.fill([n], 2))
    sess = rec.session()
    rec.export(
        sess,
        {
            "serving_default": rec.signature(
                {"x": x}, {"running": out.stack(), "total": total, "last": out.gather([n - 1]), "flat": pieces.concat()}
            )
        },
    )
    rec.ask("serving_default", {"x": rec.exact(1, 2)})
    rec.ask("serving_default", {"x": rec.exact(4, 2)})
