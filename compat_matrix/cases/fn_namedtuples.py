"""Namedtuples in arguments and results, nested in each other.

They are matched by type name and fields; the class itself is not in the file.
"""

import collections

CLAUSES = ("PY-04", "DR-01")
FEATURES = ("functions", "nests", "namedtuples")

Point = collections.namedtuple("Point", ["x", "y"])
Box = collections.namedtuple("Box", ["low", "high", "label"])


def build(tf, work):
    root = tf.Module()

    @tf.function
    def corners(box):
        return Point(x=(box.low.x, box.high.x), y=Box(box.low.y, box.high.y, box.label + 1))

    one = tf.constant(1.0)
    corners(Box(Point(one, one), Point(one, one), tf.constant(1)))
    root.corners = corners
    return root


def requests(np):
    box = Box(Point(np.float32(1), np.float32(2)), Point(np.float32(3), np.float32(4)), np.int32(7))
    return [("corners", (box,), {})]
