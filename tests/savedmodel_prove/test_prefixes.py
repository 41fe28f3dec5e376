"""The prefix that the names of a function's nodes have in another program."""

from types import SimpleNamespace

import pytest

from reference_eval.executor import Ran
from savedmodel_prove import prefixes


def ran(function, node, op="Add", called=""):
    attributes = {"f": SimpleNamespace(name=called)} if called else {}
    return Ran(function, node, op, attributes, [], [])


# `signature` calls `wrapper`, which calls `model`, in which a loop runs `body` once.
RAN = [
    ran("body", "add"),
    ran("body", "only_here"),
    ran("model", "dense/MatMul"),
    ran("model", "add"),
    ran("model", "loop", "While"),
    ran("wrapper", "call", "StatefulPartitionedCall", "model"),
    ran("wrapper", "Identity"),
    ran("signature", "outer", "PartitionedCall", "wrapper"),
]


def of(*there):
    return prefixes.of_functions(there, RAN, RAN)


@pytest.mark.parametrize(
    ("lead", "wrapper"),
    [("outer/call/", "outer/"), ("call/", ""), ("more/outer/call/", "more/outer/")],
)
def test_a_program_may_begin_above_or_below_the_signature(lead, wrapper):
    found = of(f"{lead}dense/MatMul", f"{lead}add", f"{lead}loop", f"{wrapper}Identity")
    assert (found["model"], found["wrapper"]) == (lead, wrapper)


def test_equal_names_of_a_function_that_is_not_inlined_are_not_taken():
    assert "body" not in of("call/dense/MatMul", "call/add", "call/loop", "call/x/add")


def test_a_function_without_a_path_whose_nodes_are_there():
    found = of("call/dense/MatMul", "call/add", "call/loop", "while/add", "while/only_here")
    assert found["body"] == "while/"


def test_a_saved_model_names_its_functions():
    found = of("model/dense/MatMul", "model/add", "body/add", "body/only_here")
    assert (found["model"], found["body"]) == ("model/", "body/")


def test_nothing_is_named():
    assert of("x", "y") == {}
    assert prefixes.of_functions(["x"], [], []) == {}
