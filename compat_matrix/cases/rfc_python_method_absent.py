"""RFC example: a method that is not a tf.function is not part of a SavedModel; calling it must
fail.

The type is not preserved either, so the tf.function beside it answers and `tokenize` is gone.
"""

CLAUSES = ("PRIM-10", "NG-02", "METH-04", "PRIM-02")
FEATURES = ("functions", "refusal")
CHECKS = ("load", "signatures", "values")
UNANSWERED = ("tokenize",)


def build(tf, work):
    class Model(tf.Module):
        def tokenize(self, x):
            return x * 2.0

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def embed(self, x):
            return self.tokenize(x) + 1.0

    return Model()


def requests(np):
    return [("embed", (np.float32(1),), {}), ("tokenize", (np.float32(1),), {})]
