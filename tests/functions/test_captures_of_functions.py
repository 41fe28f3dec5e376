"""The tensors that a function takes for its captured objects, and what it does with them."""

from __future__ import annotations

import pytest

from reference_impl.errors import UnsupportedModelError
from reference_impl.format import schema

pytestmark = pytest.mark.tensorflow


def _function(library, name, op, inputs, called=""):
    """Add a function whose only node takes the arguments ``a`` and ``b``."""
    function = library.function.add()
    function.signature.name = name
    for argument in "ab":
        function.signature.input_arg.add(name=argument, type=schema.DT_RESOURCE)
    node = function.node_def.add(name="node", op=op, input=inputs)
    if called:
        node.attr["f"].func.name = called
        node.attr["then_branch"].func.name = node.attr["else_branch"].func.name = called


def _assigned(library, name):
    from reference_impl.functions.captures import used_arguments
    from reference_impl.functions.library import FunctionLibrary

    return used_arguments(
        FunctionLibrary(library),
        name,
        lambda node, position: node.op == "AssignVariableOp" and position == 0,
    )


def test_the_use_of_an_argument_is_followed_into_calls(tf):
    library = schema.FunctionDefLibrary()
    _function(library, "inner", "AssignVariableOp", ["b", "a"])
    _function(library, "outer", "PartitionedCall", ["b", "a"], called="inner")
    assert _assigned(library, "inner") == {1} and _assigned(library, "outer") == {0}


def test_the_first_input_of_a_branch_is_no_argument(tf):
    library = schema.FunctionDefLibrary()
    _function(library, "inner", "AssignVariableOp", ["b", "a"])
    _function(library, "branch", "If", ["a", "a", "b"], called="inner")
    assert _assigned(library, "branch") == {1}


def test_a_function_called_as_an_op_is_no_branch_because_of_its_name(tf):
    """The name has "If" in it; the position of its arguments was taken to be that of an If's."""
    library = schema.FunctionDefLibrary()
    _function(library, "NotifyIfNew", "AssignVariableOp", ["b", "a"])
    _function(library, "outer", "NotifyIfNew", ["b", "a"])
    assert _assigned(library, "outer") == {0}


def test_only_state_and_tensors_are_captured(tf):
    from reference_impl.functions.captures import handle_of

    variable, tensor = tf.Variable(1.0), tf.constant(2.0)
    assert handle_of(variable, "f") is variable.handle and handle_of(tensor, "f") is tensor
    with pytest.raises(UnsupportedModelError, match="captures dict") as raised:
        handle_of({}, "f")
    assert raised.value.node == "f"


def test_names_of_placeholders(tf):
    from reference_impl.functions.captures import placeholder_name

    assert placeholder_name("x/y") == "x/y"
    assert placeholder_name("_x") is None and placeholder_name("") is None
