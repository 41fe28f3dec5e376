"""A model that kills the process: its signature runs the real op `Abort`.

The call must cost one cell and nothing else. No answer can be recorded; a crash is the expected
outcome.
"""

CLAUSES = ("GOAL-09",)
FEATURES = ("fault",)
CHECKS = ("load", "signatures", "values")
UNANSWERED = ("abort",)


def build(tf, work):
    root = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def abort(x):
        # The op has no output: without the control dependency it would be pruned.
        with tf.control_dependencies(
            [tf.raw_ops.Abort(error_msg="aborted on purpose", exit_without_error=False)]
        ):
            return x + 1.0

    root.fine = tf.function(lambda x: x + 1.0, input_signature=[tf.TensorSpec([], tf.float32)])
    root.abort = abort
    return root, {"fine": root.fine, "abort": abort}


def requests(np):
    return [("fine", {"x": np.float32(1)}), ("abort", {"x": np.float32(1)})]
