"""The kind of a node is read from its message alone, without TensorFlow."""

from __future__ import annotations

import pytest

from reference_impl.format import names, schema
from reference_impl.graph import node_kinds


@pytest.mark.parametrize(
    ("identifier", "kind"),
    [
        (names.LIST, node_kinds.CONTAINER),
        (names.DICT, node_kinds.CONTAINER),
        (names.TUPLE, node_kinds.CONTAINER),
        (names.SIGNATURES, node_kinds.SIGNATURE_MAP),
        ("_generic_user_object", node_kinds.USER_OBJECT),
        ("an identifier of the future", node_kinds.USER_OBJECT),
    ],
)
def test_the_identifier_tells_the_kinds_of_user_objects(identifier, kind):
    node = schema.SavedObject()
    node.user_object.identifier = identifier
    assert node_kinds.of_node(node) is kind


def test_a_user_object_with_slots_is_an_optimizer():
    node = schema.SavedObject()
    node.user_object.identifier = "optimizer"
    assert node_kinds.of_node(node) is node_kinds.USER_OBJECT
    node.slot_variables.add(slot_name="m")
    assert node_kinds.of_node(node) is node_kinds.OPTIMIZER


def test_every_other_field_of_the_message_is_one_kind():
    fields = [field.name for field in schema.SavedObject.DESCRIPTOR.oneofs_by_name["kind"].fields]
    for name in fields:
        node = schema.SavedObject()
        getattr(node, name).SetInParent()
        found = node_kinds.of_node(node)
        assert found is not None
        assert found.field == name
    assert len(fields) > 7


def test_an_empty_node_has_no_kind():
    assert node_kinds.of_node(schema.SavedObject()) is None
