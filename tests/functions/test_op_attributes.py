"""What the running TensorFlow declares for an op."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tensorflow


def test_attributes_by_type(tf):
    from reference_impl.functions import op_attributes

    assert set(op_attributes.with_functions("If")) == {"then_branch", "else_branch"}
    assert op_attributes.with_functions("Case") == ("branches",)
    assert op_attributes.with_functions("Add") == ()
    assert "shared_name" in op_attributes.names_of_type("HashTableV2", "string")


def test_an_unknown_op_has_none_and_no_rules(tf):
    from reference_impl.functions import op_attributes

    assert op_attributes.with_functions("NoSuchOp") is None
    assert op_attributes.rules_of("NoSuchOp") is None
    assert op_attributes.rules_of("Add") is not None
