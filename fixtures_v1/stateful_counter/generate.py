"""A counter in a reference variable: signatures that read, increment by one or by an input, and reset it."""

CLAUSES = ("V1-10",)
FEATURES = ("stateful", "ref_variables")
RUNTIME = "tf1.8"
STATEFUL = True


def generate(tf, rec):
    counter = tf.Variable(5.0, name="counter")
    total = tf.get_variable("calls", initializer=0, use_resource=True)
    delta = tf.placeholder(tf.float32, [], "delta")
    with tf.control_dependencies([total.assign_add(1)]):
        calls = total.read_value()
    sess = rec.initialized_session()
    rec.export(
        sess,
        {
            "get_counter": rec.signature({}, {"output": tf.identity(counter)}),
            "incr_counter": rec.signature({}, {"output": tf.identity(tf.assign_add(counter, 1.0))}),
            "incr_counter_by": rec.signature(
                {"delta": delta}, {"output": tf.identity(tf.assign_add(counter, delta)), "calls": calls}
            ),
            "reset_counter": rec.signature({}, {"output": tf.identity(tf.assign(counter, 0.0))}),
        },
    )
    rec.ask("get_counter", {})
    rec.ask("incr_counter", {})
    rec.ask("incr_counter_by", {"delta": 2.5})
    rec.ask("incr_counter_by", {"delta": -1.0})
    rec.ask("get_counter", {})
    rec.ask("reset_counter", {})
    rec.ask("get_counter", {})
