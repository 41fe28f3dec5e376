"""Inputs that are made up for a signature, and the line of an error that says why none was
taken.
"""

import numpy as np
import pytest

from compat_matrix.requests.made_up import examples_of, made_up
from reference_impl.format import schema
from reference_impl.format.values.tensor_proto import encode
from savedmodel_common.gist import gist
from savedmodel_common.serving.messages import Example


def test_the_parts_of_a_sparse_tensor_fit_each_other():
    inputs = {
        "a$values": {"dtype": "string", "shape": [None]},
        "a$indices": {"dtype": "int64", "shape": [None, None]},
        "a$dense_shape": {"dtype": "int64", "shape": [2]},
        "values": {"dtype": "float32", "shape": [None]},
        "indices": {"dtype": "int64", "shape": [None, 3]},
        "dense_shape": {"dtype": "int64", "shape": [3]},
        "b/values": {"dtype": "float32", "shape": [None]},
    }
    requests = list(made_up(inputs))
    assert requests
    for made in requests:
        for prefix, rank in (("a$", 2), ("", 3)):
            values, indices, shape = (
                made[prefix + part].array for part in ("values", "indices", "dense_shape")
            )
            assert indices.shape == (len(values), rank)
            assert (indices >= 0).all() and (indices < shape).all()
            assert len(np.unique(indices, axis=0)) == len(values)


def test_what_has_no_known_rank_is_tried_as_a_scalar_too():
    shapes = [made["x"].array.shape for made in made_up({"x": {"dtype": "float32", "shape": None}})]
    assert shapes[0] == (2,)
    assert () in shapes
    assert len(set(shapes)) == len(shapes)


def test_examples_are_tried_with_and_without_what_may_be_absent():
    graph = schema.MetaGraphDef()
    for name, value in (("dense", [b"d"]), ("sparse", [b"s"])):
        node = graph.graph_def.node.add(name=name, op="Const")
        node.attr["value"].tensor.CopyFrom(encode(np.array(value[0], dtype=object)))
    parser = graph.graph_def.node.add(
        name="parse", op="ParseExample", input=["x", "n", "sparse", "dense", "default"]
    )
    parser.attr["dense_shapes"].list.shape.add().dim.add(size=2)
    parser.attr["Tdense"].list.type.append(schema.DT_FLOAT)
    parser.attr["sparse_types"].list.type.append(schema.DT_INT64)
    found = [Example.FromString(text).features.feature for text in examples_of(graph)]
    assert [sorted(each) for each in found] == [["d", "s"], ["d"]]
    assert len(found[0]["d"].float_list.value) == 2


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ("", ""),
        ("one\ntwo", "one"),
        (
            (
                "Graph execution error:\n\nDetected at node 'a/b' defined at (most recent call"
                " last):\nNode: 'a/b'\nTable not initialized.\n\t [[{{node a/b}}]]\n\nOriginal"
                " stack trace for 'a/b':\n"
            ),
            "Table not initialized. (node 'a/b')",
        ),
        (
            (
                "Graph execution error:\n\nDetected at node c defined at (most recent call last):\n"
                '  File "x.py", line 1\n\nassertion failed: [no]\n\t [[{{node c}}]] [Op:f]'
            ),
            "assertion failed: [no] (node 'c')",
        ),
        (
            (
                "Graph execution error:\n\n2 root error(s) found.\n  (0) INTERNAL: bad\n\t [[{{node"
                " d}}]]"
            ),
            "INTERNAL: bad (node 'd')",
        ),
        ("Graph execution error:", "Graph execution error:"),
        (
            "request 0-f: Graph execution error:\n\n2 root error(s) found.\n  (0) INTERNAL: bad",
            "request 0-f: INTERNAL: bad",
        ),
        ("word " * 99, "word " * 59 + "wo..."),
    ],
)
def test_the_line_that_says_something(message, says):
    assert gist(message) == says
