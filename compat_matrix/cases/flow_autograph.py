"""Python control flow turned into graph control flow: break, continue, early return, assert and
nested loops.
"""

CLAUSES = ("RP-07", "COMPAT-05", "FN-10")
FEATURES = ("control flow", "autograph")


def build(tf, work):
    root = tf.Module()
    root.limit = tf.Variable(20)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def collatz(x):
        longest = tf.constant(0)
        for start in x:
            if start < 1:
                continue
            n, steps = start, 0
            while n != 1:
                n = n // 2 if n % 2 == 0 else 3 * n + 1
                steps += 1
                if steps >= root.limit:
                    break
            longest = tf.maximum(longest, steps)
        tf.debugging.assert_less(longest, 1000)
        if longest == 0:
            return tf.constant(-1)
        return longest

    root.collatz = collatz
    return root, collatz


def requests(np):
    return [("serving_default", {"x": np.int32(x)}) for x in ([6, 0, 7], [27], [0, -3], [])]
