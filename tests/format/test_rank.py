"""The border of the rank: TensorFlow has tensors of 254 dimensions, and none of 255."""

from __future__ import annotations

import pytest

from reference_impl.errors import LimitError, MalformedError, ShapeError
from reference_impl.format import limits, schema
from reference_impl.format.bundle.entry import parse_entry
from reference_impl.format.values import shapes, tensor_proto
from reference_impl.graph import node_attributes, op_rules
from reference_impl.safety import known_tensors

MOST = 254


def shape_of_rank(rank: int) -> schema.TensorShapeProto:
    return shapes.shape_proto([1] * rank)


def tensor_of_rank(rank: int) -> schema.TensorProto:
    return schema.TensorProto(
        dtype=schema.DT_FLOAT, tensor_shape=shape_of_rank(rank), float_val=[1.0]
    )


def read_entry(rank: int) -> object:
    message = schema.BundleEntryProto(dtype=schema.DT_FLOAT, shape=shape_of_rank(rank), size=4)
    return parse_entry(message.SerializeToString(), "v")


READERS = {
    "the rule": shapes.check_rank,
    "an entry of a checkpoint": read_entry,
    "a constant": lambda rank: tensor_proto.check(tensor_of_rank(rank)),
    "the integers of a constant": lambda rank: tensor_proto.integers(
        schema.TensorProto(dtype=schema.DT_INT32, tensor_shape=shape_of_rank(rank), int_val=[1]),
        1,
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_254_dimensions_are_read_and_255_are_refused(reader):
    READERS[reader](MOST)
    with pytest.raises(ShapeError, match=r"255 .* 254"):
        READERS[reader](MOST + 1)


def test_readers_that_return_what_they_know():
    assert known_tensors.shape_of(shape_of_rank(MOST)) == (1,) * MOST
    assert known_tensors.shape_of(shape_of_rank(MOST + 1)) is None


@pytest.mark.parametrize("least", [0, -1])
def test_a_shape_in_a_node_leaves_room_for_one_more_dimension(least):
    """Ops that stack tensors of the shape add one, and TensorFlow ends the process at 255."""
    assert node_attributes.check_shape(shape_of_rank(MOST - 1), least) == 1
    with pytest.raises(ShapeError, match=r"254 .* 253"):
        node_attributes.check_shape(shape_of_rank(MOST), least)


def test_a_raised_limit_holds_at_once(monkeypatch):
    monkeypatch.setattr(limits, "RANK", 300)
    assert shapes.has_valid_rank(300)


def test_an_error_about_an_attribute_keeps_the_name_of_the_limit():
    """It was lost when the name of the attribute was put before the reason."""
    tensor = schema.TensorProto(dtype=schema.DT_FLOAT, tensor_shape=shapes.shape_proto([2**30]))
    with pytest.raises(LimitError, match="attribute 'value'") as info:
        node_attributes.check_item(tensor, "tensor", "value")
    assert info.value.limit == "TENSOR_BYTES"


def test_a_number_of_dimensions_in_an_attribute():
    rule = op_rules.rule("batch_dims", "int", False, None, None, False)
    node = schema.NodeDef(name="gather", op="GatherV2")
    node.attr["batch_dims"].i = MOST
    op_rules.check(node, [rule])
    node.attr["batch_dims"].i = MOST + 1
    with pytest.raises(MalformedError, match="at most 254 dimensions"):
        op_rules.check(node, [rule])
