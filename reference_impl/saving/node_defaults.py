"""Attributes that an export leaves out of nodes, or adds to functions, so that readers of every
release understand them.

RFC: COMPAT-04
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reference_impl.format import schema
from reference_impl.graph.node_attributes import argument_shapes

# Attributes that TensorFlow before 2.16 does not know and that do not affect the meaning of a node.
_TOO_NEW = {"VarHandleOp": ("debug_name",)}


def strip_defaults(nodes: Iterable[schema.NodeDef], op_defs: Mapping[str, schema.OpDef]) -> None:
    """Leave out attributes that equal the op's default: older readers need not know them."""
    for node in nodes:
        for key in _TOO_NEW.get(node.op, ()):
            node.attr.pop(key, None)
        for attr in op_defs[node.op].attr if node.op in op_defs else ():
            if (
                attr.HasField("default_value")
                and attr.name in node.attr
                and node.attr[attr.name] == attr.default_value
            ):
                del node.attr[attr.name]


def add_input_shapes(definition: schema.FunctionDef) -> None:
    """Set the shapes of all arguments in one attribute; TensorFlow reads a handle without a shape
    as a tensor of unknown rank.
    """
    if "_input_shapes" in definition.attr:
        return
    shapes = definition.attr["_input_shapes"].list
    shapes.SetInParent()
    for argument, noted in zip(definition.signature.input_arg, argument_shapes(definition)):
        if noted is not None:
            shapes.shape.add().CopyFrom(noted)
        else:
            shapes.shape.add(
                unknown_rank=argument.type not in (schema.DT_RESOURCE, schema.DT_VARIANT)
            )
