"""Which ops run functions as branches and loops: known by name, not by a part of the name."""

from __future__ import annotations

import pytest
from op_registry import op_def

from reference_impl.graph.functional_ops import BRANCHES, LOOPS, first_argument
from savedmodel_tools.skew.history import history

WORDS = ("If", "Case", "While")


@pytest.mark.parametrize(
    ("op", "first"),
    [
        ("If", 1),
        ("StatelessCase", 1),
        ("While", 0),
        ("TakeWhileDataset", None),
        ("NotifyIfNew", None),
        ("PartitionedCall", None),
    ],
)
def test_the_first_argument_of_the_functions(op, first):
    assert first_argument(op) == first


def test_an_op_is_a_branch_or_a_loop():
    assert not BRANCHES & LOOPS


def test_no_other_op_that_a_release_has_is_named_like_one():
    alike = [name for name in history().names if any(word in name for word in WORDS)]
    calling = {name for name in alike if _calls(op_def(name))}
    assert calling - BRANCHES - LOOPS == {"TakeWhileDataset", "ExperimentalTakeWhileDataset"}


def _calls(definition):
    return definition is not None and any("func" in attr.type for attr in definition.attr)
