"""The kinds of nodes of an object graph, as their messages tell them.

A SavedObject stores its kind in one field of the oneof ``kind``. The field `user_object` stands for
several kinds: lists, dicts and tuples, the map of signatures, optimizers (user objects with slots),
and all other objects.

This table needs no TensorFlow. `reference_impl.kinds` has one live `Kind` for each entry, which
makes, fills and writes the objects.

RFC: FMT-01
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from reference_impl.format import schema
from reference_impl.format.names import DICT, LIST, SIGNATURES, TUPLE

_USER_OBJECT = "user_object"
_CONTAINERS = frozenset({LIST, DICT, TUPLE})


@dataclass(frozen=True, eq=False)
class NodeKind:
    """One kind of node: its name, the field of its message, and the clause that describes it."""

    name: str
    field: str
    clause: str


VARIABLE = NodeKind("variable", "variable", "RP-03")
CONSTANT = NodeKind("constant", "constant", "RES-04")
ASSET = NodeKind("asset", "asset", "RES-07")
CAPTURED_TENSOR = NodeKind("captured_tensor", "captured_tensor", "FMT-14")
RESOURCE = NodeKind("resource", "resource", "RP-04")
FUNCTION = NodeKind("function", "function", "PRIM-03")
BARE_CONCRETE_FUNCTION = NodeKind("bare_concrete_function", "bare_concrete_function", "RP-07")
CONTAINER = NodeKind("container", _USER_OBJECT, "RP-05")
SIGNATURE_MAP = NodeKind("signature_map", _USER_OBJECT, "RP-05")
OPTIMIZER = NodeKind("optimizer", _USER_OBJECT, "OPT-02")
USER_OBJECT = NodeKind(_USER_OBJECT, _USER_OBJECT, "RP-05")

_BY_FIELD = {
    kind.field: kind
    for kind in (
        VARIABLE,
        CONSTANT,
        ASSET,
        CAPTURED_TENSOR,
        RESOURCE,
        FUNCTION,
        BARE_CONCRETE_FUNCTION,
    )
}


def of_node(node: schema.SavedObject) -> Optional[NodeKind]:
    """Return the kind of a node, or None for an empty node or a kind that no release has."""
    field = node.WhichOneof("kind")
    if field != _USER_OBJECT:
        return _BY_FIELD.get(field or "")
    identifier = node.user_object.identifier
    if identifier in _CONTAINERS:
        return CONTAINER
    if identifier == SIGNATURES:
        return SIGNATURE_MAP
    return OPTIMIZER if node.slot_variables else USER_OBJECT
