"""The kind of a node of an object graph, by its message."""

from __future__ import annotations

from reference_impl.format import schema
from reference_impl.format.names import LIST, SIGNATURES
from reference_impl.graph import node_kinds


def user_object(identifier):
    node = schema.SavedObject()
    node.user_object.identifier = identifier
    return node


def test_a_field_tells_the_kind():
    node = schema.SavedObject()
    assert node_kinds.of_node(node) is None
    node.variable.SetInParent()
    assert node_kinds.of_node(node) is node_kinds.VARIABLE


def test_user_objects_are_of_several_kinds():
    assert node_kinds.of_node(user_object(LIST)) is node_kinds.CONTAINER
    assert node_kinds.of_node(user_object(SIGNATURES)) is node_kinds.SIGNATURE_MAP
    assert node_kinds.of_node(user_object("of_a_program")) is node_kinds.USER_OBJECT
    with_slots = user_object("of_a_program")
    with_slots.slot_variables.add(slot_name="m")
    assert node_kinds.of_node(with_slots) is node_kinds.OPTIMIZER
