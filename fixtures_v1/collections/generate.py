"""Collections of every kind: variables, nodes, ints, floats, bytes, protos, while and cond contexts, a custom proto type."""

CLAUSES = ("V1-08",)
FEATURES = ("collections", "custom_collection", "while_context", "cond_context", "ref_variables")
RUNTIME = "tf1.15"


def generate(tf, rec):
    from tensorflow.python.framework import ops

    class Note(object):  # what a library would register: an object which travels as a proto
        def __init__(self, text):
            self.text = text

        def to_proto(self, export_scope=None):
            feature = tf.train.Feature()
            feature.bytes_list.value.append(self.text)
            return feature

        @staticmethod
        def from_proto(proto, import_scope=None):
            return Note(proto.bytes_list.value[0])

    ops.register_proto_function("notes", proto_type=tf.train.Feature, to_proto=Note.to_proto, from_proto=Note.from_proto)
    x = tf.placeholder(tf.float32, [None], "x")
    with tf.variable_scope("layer"):
        w = tf.get_variable("w", initializer=2.0, regularizer=lambda v: v * 0.5, collections=["mine", "variables"])
        tf.get_variable("frozen", initializer=7.0, trainable=False)
    tf.train.get_or_create_global_step()
    _, y = tf.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t * w), [0, x])
    y = tf.cond(tf.reduce_sum(y) > 0, lambda: y, lambda: -y)
    for value in (3, -1):
        tf.add_to_collection("ints", value)
    tf.add_to_collection("floats", 2.5)
    tf.add_to_collection("texts", "some text")
    tf.add_to_collection("notes", Note(b"first"))
    tf.add_to_collection("notes", Note(b"second \xff"))
    tf.add_to_collection("nodes", y)
    tf.add_to_collection("nodes", y.op)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(w, 1.0, name="update"))
    tf.summary.scalar("total", tf.reduce_sum(y))
    sess = rec.initialized_session()
    rec.export(sess, {"serving_default": rec.signature({"x": x}, {"y": y})})
    rec.ask("serving_default", {"x": [1.0]})
    rec.ask("serving_default", {"x": [-1.0, 0.5]})
