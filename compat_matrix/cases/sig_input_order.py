"""Input names whose order changes when they become Python keywords: `user/id` becomes `user_id`,
which sorts after `user_age`.

Every input is weighted differently, so a reader that binds the inputs in another order than the
writer gives a wrong number.
"""

CLAUSES = ("SIG-07", "ATTR-02")
FEATURES = ("signatures", "names")


def build(tf, work):
    root = tf.Module()
    scalar = lambda name: tf.TensorSpec([None], tf.float32, name=name)  # noqa: E731

    @tf.function(
        input_signature=[scalar("user/id"), scalar("user_age"), scalar("user.B"), scalar("user-a")]
    )
    def slashes(a, b, c, d):
        return {"y": a + 10.0 * b + 100.0 * c + 1000.0 * d}

    @tf.function(input_signature=[scalar("in-x"), scalar("in1"), scalar("b/1"), scalar("b1")])
    def digits(a, b, c, d):
        return {"y": a + 10.0 * b + 100.0 * c + 1000.0 * d}

    root.slashes, root.digits = slashes, digits
    answers = {
        "slashes": lambda **given: slashes(
            given["user/id"], given["user_age"], given["user.B"], given["user-a"]
        ),
        "digits": lambda **given: digits(given["in-x"], given["in1"], given["b/1"], given["b1"]),
    }
    return root, {"slashes": slashes, "digits": digits}, answers


def requests(np):
    def given(*names):
        return {name: np.float32([number]) for number, name in enumerate(names, 1)}

    return [
        ("slashes", given("user/id", "user_age", "user.B", "user-a")),
        ("digits", given("in-x", "in1", "b/1", "b1")),
    ]
