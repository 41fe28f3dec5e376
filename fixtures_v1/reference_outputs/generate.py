"""Signatures whose outputs are references: a variable itself, and the results of assign and assign_add."""

CLAUSES = ("V1-10",)
FEATURES = ("ref_variables", "reference_outputs", "stateful")
RUNTIME = "tf1.12"
STATEFUL = True


def generate(tf, rec):
    w = tf.get_variable("w", initializer=tf.constant(rec.exact(2, 2)), use_resource=False)
    names = tf.get_variable("names", initializer=tf.constant(["a", "bc"]), use_resource=False)
    delta = tf.placeholder(tf.float32, [], "delta")
    sess = rec.initialized_session()
    rec.export(
        sess,
        {
            "serving_default": rec.signature({}, {"w": w, "names": names}),
            "add": rec.signature({"delta": delta}, {"w": tf.assign_add(w, tf.fill([2, 2], delta))}),
            "clear": rec.signature({}, {"w": tf.assign(w, tf.zeros([2, 2]))}),
        },
    )
    rec.ask("serving_default", {})
    rec.ask("add", {"delta": 2.0})
    rec.ask("serving_default", {})
    rec.ask("clear", {})
