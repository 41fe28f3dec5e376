"""The report page of a proof."""

import numpy as np

from savedmodel_common.tensors import from_numpy
from savedmodel_prove.certificate import Certificate, Files, Node
from savedmodel_prove.page import histogram, render
from savedmodel_prove.records import CONVERTED, ORIGINAL, Answer, Record
from savedmodel_prove.told import lines

ONE = np.float32([1, 1, 1, 1])


def certificate(nodes=(), name="y"):
    moved = ONE.copy()
    moved[1] = np.nextafter(ONE[1], np.float32(2))
    moved[2] = 7
    sides = {
        ORIGINAL: Answer({name: from_numpy(ONE)}),
        CONVERTED: Answer({name: from_numpy(moved)}),
    }
    return Certificate(
        Files("model", {}), Files("model.onnx", {}), ("serve",), "serving_default", 0,
        {ORIGINAL: "TensorFlow"}, {ORIGINAL: {"tensorflow": "2.21.0"}},
        [Record("random 0", {}, sides)], {name: nodes} if nodes else {}, ["a note"],
    )  # fmt: skip


def test_a_histogram_counts_every_number_once():
    bars = histogram(certificate(), "y")
    assert sum(bar.count for bar in bars) == 4
    assert {bar.label: bar.count for bar in bars if bar.count} == {
        "0": 2,
        "1": 1,
        "more than 1024": 1,
    }


def test_the_page_names_the_verdict_the_nodes_and_the_notes():
    node = Node("dense/MatMul", "MatMul", "dense/MatMul:0", "random 0", 6.0, 1e-6)
    page = render(certificate([node]))
    for text in ("differs", "dense/", "MatMul", "random 0", "a note", "2.21.0", "more than 1024"):
        assert text in page


def test_the_terminal_and_the_page_tell_whose_value_differs():
    of_file = Node("a", "Add", "call/a:0", "random 0", 6.0, 1e-6)
    of_tensorflow = Node("b", "Elu", "b:0", "random 0", 6.0, 1e-6, ORIGINAL)
    found = certificate([of_file, of_file, of_tensorflow])
    first = [line for line in lines(found) if "first at node" in line]
    assert ["converted" in line for line in first] == [True, False]
    assert "TensorFlow's value" in first[1]
    assert "<td>TensorFlow</td>" in render(found)


def test_what_a_certificate_says_is_escaped():
    assert "<script>" not in render(certificate(name="<script>alert(1)</script>"))
