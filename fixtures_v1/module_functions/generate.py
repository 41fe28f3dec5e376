"""tf.saved_model.save of a tf.Module in 1.15: several traces, a table with an asset, lists and dicts of variables."""

CLAUSES = ("FN-05", "FN-12", "PRIM-01", "PRIM-04", "PRIM-05", "SIG-02", "RES-05")
FEATURES = ("object_graph", "functions", "tables", "assets", "object_based_checkpoint")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.14"  # tf.saved_model.save


def generate(tf, rec):
    import numpy as np

    tf.enable_v2_behavior()
    tf2 = rec.v2()
    path = rec.file("vocabulary.txt", "a\nb\nc\n")

    class Model(tf.Module):
        def __init__(self):
            super(Model, self).__init__()
            self.scale = tf2.Variable(2.0, name="scale")
            self.parts = [tf2.Variable([1.0, 2.0]), tf2.Variable(3, trainable=False)]
            self.named = {"left": tf2.Variable([[0.5]]), "right": tf2.Variable("text")}
            self.child = tf.Module()
            self.child.scale = self.scale
            lines = tf2.lookup.TextFileInitializer(
                path, tf.string, tf2.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf2.lookup.TextFileIndex.LINE_NUMBER
            )
            self.table = tf2.lookup.StaticHashTable(lines, -1)

        @tf2.function
        def multiply(self, x, training=False):
            return x * self.scale if training else x * 2.0 * self.scale

        @tf2.function(input_signature=[tf2.TensorSpec([None], tf.string)])
        def lookup(self, words):
            return {"ids": self.table.lookup(words), "size": self.table.size()}

        @tf2.function
        def nested(self, pair):
            x, y = pair["x"], pair["y"]
            return [x + y, {"product": x * y}]

    model = Model()
    model.multiply.get_concrete_function(tf2.TensorSpec([None], tf.float32), training=True)
    serve = model.multiply.get_concrete_function(tf2.TensorSpec([None], tf.float32, name="x"))
    model.nested({"x": tf.constant(1.0), "y": tf.constant(2.0)})
    tf.saved_model.save(model, rec.model, signatures={"serving_default": serve, "lookup": model.lookup})
    rec.live({"serving_default": lambda x: {"output_0": model.multiply(x)}, "lookup": lambda words: model.lookup(words)})
    rec.live_object = model
    rec.ask("serving_default", {"x": [1.0, 2.5]})
    rec.ask("lookup", {"words": ["a", "c", "zebra"]})
    rec.ask_function("multiply", np.float32([1, 2, 3]), training=True)
    rec.ask_function("multiply", np.float32([1, 2, 3]), False)
    rec.ask_function("nested", {"x": np.float32(3), "y": np.float32(-4)})
