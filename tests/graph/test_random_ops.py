"""The ops that draw: each has the attributes or inputs from which its numbers come."""

from reference_eval import registry
from reference_impl.graph.random_ops import GENERATOR_OPS, SEEDED_OPS, UNSEEDED_OPS
from savedmodel_tools.skew.history import history


def test_a_seeded_op_has_a_seed_and_an_op_of_a_generator_has_none():
    def has_seed(name: str) -> bool:
        known = history().op(name)
        return known is not None and "seed" in known.attr_names

    assert all(map(has_seed, SEEDED_OPS))
    assert not any(map(has_seed, GENERATOR_OPS))


def test_the_evaluator_refuses_each_by_name():
    assert not SEEDED_OPS & GENERATOR_OPS
    for op in SEEDED_OPS | UNSEEDED_OPS:
        assert op not in registry.known() and registry.refusal(op) is not None
