"""Guards of the inputs that kernels trust, on FunctionDefs alone."""

from __future__ import annotations

import pytest

from reference_impl.format import schema
from reference_impl.graph import trusted_inputs
from reference_impl.graph.node_defs import int_tensor, set_constant


def function(axis):
    """A function that joins all tensors of a Split, which one input names together."""
    made = schema.FunctionDef()
    made.signature.name = "f"
    constant = made.node_def.add(name="axis", op="Const")
    set_constant(constant, int_tensor(axis))
    joined = made.node_def.add(
        name="joined", op="ConcatV2", input=["split:output", "axis:output:0"]
    )
    joined.attr["N"].i, joined.attr["Tidx"].type = 2, schema.DT_INT32
    return made


@pytest.mark.parametrize("axis", [0, [0]])
def test_an_axis_of_one_number_needs_no_guard_whatever_is_joined(axis):
    made = function(axis)
    before = schema.to_text(made)
    trusted_inputs.guard(made)
    assert schema.to_text(made) == before
    assert list(trusted_inputs.faults(made.node_def)) == []


@pytest.mark.parametrize("axis", [[], [0, 1]])
def test_another_axis_is_made_a_scalar_which_fails(axis):
    made = function(axis)
    ((node, reason),) = trusted_inputs.faults(made.node_def)
    assert (node.name, "for one number" in reason) == ("joined", True)
    trusted_inputs.guard(made)
    (joined,) = [node for node in made.node_def if node.name == "joined"]
    assert list(joined.input) == ["split:output", "joined/element:output:0"]
