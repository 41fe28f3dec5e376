"""The attributes that the running TensorFlow declares for an op.

A library may register an op later, so only answers about known ops are kept.
"""

from __future__ import annotations

from typing import Optional

from reference_impl import tensorflow_api as api
from reference_impl.graph import op_rules
from reference_impl.remembering import found_once


@found_once
def names_of_type(op: str, *kinds: str) -> Optional[tuple[str, ...]]:
    """Return the names of an op's attributes of given types, or None if this TensorFlow does not
    know the op: ``("then_branch", "else_branch")`` for ``If`` and ``func``.
    """
    op_def = api.op_def(op)
    if op_def is None:
        return None
    return tuple(attr.name for attr in op_def.attr if attr.type in kinds)


def with_functions(op: str) -> Optional[tuple[str, ...]]:
    """Return the names of an op's attributes that hold functions, or None for an unknown op."""
    return names_of_type(op, "func", "list(func)")


@found_once
def rules_of(op: str) -> Optional[op_rules.OpRules]:
    """Return the rules of an op, or None if this TensorFlow does not know it."""
    op_def = api.op_def(op)
    return None if op_def is None else op_rules.of_definition(op_def)
