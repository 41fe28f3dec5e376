"""Measure whose values shape functions ask for: `python tests/support/asked_inputs.py OP...` with
the TensorFlow to be asked.

Each input of an op comes from a DebugIdentity of a constant in turn. It writes a file if TensorFlow
computes it at import. Shapes, types and the other inputs are tried out; with all ops this takes
some minutes, and TensorFlow crashes at a few of them.
"""

from __future__ import annotations

import itertools
import shutil
import sys
import tempfile
from pathlib import Path

SHAPES = ([], [1], [2], [1, 2], [2, 2], [4])
OTHERS = (None, [], [1], [2], [1, 1], [4], [3], [2, 2], [4, 2])


def main(names):
    """Print OP:INPUT for each input that is asked for; a list of inputs counts as one."""
    from tensorflow.python.framework import op_def_registry

    for name in names:
        op = op_def_registry.get(name)
        for number in range(len(op.input_arg)):
            if any(
                _is_asked(op, number, *tried)
                for tried in itertools.product(OTHERS, SHAPES, (False, True))
            ):
                print(f"{name}:{number}")


def _is_asked(op, number, others, shape, floats):
    import tensorflow as tf

    place = Path(tempfile.mkdtemp())
    graph = tf.compat.v1.GraphDef()
    graph.versions.producer = tf.version.GRAPH_DEF_VERSION
    try:
        _fill(graph, op, number, others, shape, floats, place / "asked")
        with tf.Graph().as_default():
            tf.import_graph_def(graph, name="")
    except (ValueError, TypeError, tf.errors.OpError):
        pass  # these inputs do not fit; the file tells whether they were asked for before
    finally:
        asked = (place / "asked").exists()
        shutil.rmtree(place)
    return asked


def _fill(graph, op, number, others, shape, floats, place):
    import tensorflow as tf

    preferred = (tf.float32, tf.int64, tf.int32) if floats else (tf.int32, tf.int64, tf.float32)
    node = tf.compat.v1.NodeDef(name="asking", op=op.name)
    for attr in op.attr:
        _set(node, attr, [dtype.as_datatype_enum for dtype in (*preferred, tf.string, tf.bool)])
    for place_of, argument in enumerate(op.input_arg):
        dtype = (
            node.attr[argument.type_attr].type
            if argument.type_attr
            else argument.type or tf.int32.as_datatype_enum
        )
        for item in range(node.attr[argument.number_attr].i if argument.number_attr else 1):
            name = f"input_{place_of}_{item}"
            node.input.append(name)
            if place_of == number:
                _constant(graph, f"{name}_value", dtype, shape)
                debug = graph.node.add(name=name, op="DebugIdentity", input=[f"{name}_value"])
                debug.attr["T"].type = dtype
                debug.attr["debug_urls"].list.s.append(f"file://{place}".encode())
                debug.attr["tensor_name"].s = b"value:0"
            elif others is None:
                given = graph.node.add(name=name, op="Placeholder")
                given.attr["dtype"].type = dtype
                given.attr["shape"].shape.unknown_rank = True
            else:
                _constant(graph, name, dtype, others)
    graph.node.append(node)


def _constant(graph, name, dtype, shape):
    import tensorflow as tf

    node = graph.node.add(name=name, op="Const")
    node.attr["dtype"].type = dtype
    value = b"1" if dtype == tf.string.as_datatype_enum else 1
    node.attr["value"].tensor.CopyFrom(
        tf.make_tensor_proto(value, dtype=tf.as_dtype(dtype), shape=shape)
    )


def _set(node, attr, preferred):
    allowed = list(attr.allowed_values.list.type) or preferred
    if attr.type == "type":
        node.attr[attr.name].type = next(
            (dtype for dtype in preferred if dtype in allowed), allowed[0]
        )
    elif attr.type == "list(type)":
        node.attr[attr.name].list.type.append(preferred[0])
    elif attr.HasField("default_value"):
        node.attr[attr.name].CopyFrom(attr.default_value)
    elif attr.type == "int":
        node.attr[attr.name].i = max(attr.minimum, 1)
    elif attr.type == "bool":
        node.attr[attr.name].b = False
    elif attr.type == "shape":
        node.attr[attr.name].shape.unknown_rank = True


if __name__ == "__main__":
    main(sys.argv[1:])
