"""Ops that run functions as control flow, and which of their inputs the functions take.

The first input of a branch chooses the function that runs; the others are the arguments. A loop
passes all its inputs. Other ops with functions, such as TakeWhileDataset, call them with values
that are not their inputs.
"""

from __future__ import annotations

from typing import Optional

# The ops that TensorFlow's Python writes.
IF_OPS = frozenset({"If", "StatelessIf"})
CASE_OPS = frozenset({"Case", "StatelessCase"})
WHILE_OPS = frozenset({"While", "StatelessWhile"})
# With those that its graph passes write.
BRANCHES = IF_OPS | CASE_OPS | {"_If", "XlaIf"}
LOOPS = WHILE_OPS | {"_While", "XlaWhile", "RiscWhile"}


def first_argument(op: str) -> Optional[int]:
    """Return the position of the input that is the first argument of the op's functions, or None if
    the op is neither a branch nor a loop: 1 for ``If``, 0 for ``While``.
    """
    if op in BRANCHES:
        return 1
    return 0 if op in LOOPS else None
