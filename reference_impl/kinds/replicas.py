"""Which of the variables behind a variable of a strategy a loaded function uses (DIST-01).

In a replica a function uses the variable of that replica. In the scope of a strategy but outside of replicas, only values that
are the same in every replica have a meaning: a function reads such a value from the first one. It cannot update all replicas or
read what they would have to add up. Functions that do can be traced there, as Keras does to build a model, but not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import UnsupportedModelError
from reference_impl.graph.argument_uses import used_arguments
from reference_impl.kinds.library import FunctionLibrary

READS = ("ReadVariableOp", "VariableShape", "VarIsInitializedOp", "ResourceGather", "ResourceGatherNd")

_FIX = "call it in a replica (strategy.run), or load the model outside of the scope of the strategy"


def first_replicas(owners: Sequence[Any], handles: Sequence[Optional[tf.Tensor]]) -> list[tf.Tensor]:
    """Return the handles of captured objects; of variables without one, that of the first replica."""
    parts = (api.variable_components(owner)[0] if handle is None else None for owner, handle in zip(owners, handles))
    return [handle if part is None else part.handle for part, handle in zip(parts, handles)]


def cross_replica(library: FunctionLibrary, name: str, owners: Sequence[Any], handles: Sequence[Any]) -> list[tf.Tensor]:
    """Return the handles with which a function is called outside of replicas.

    Args:
      library, name: the function; its last arguments are its captures.
      owners: what it captures.
      handles: their handles, None for a variable that has none outside of replicas.

    Raises:
      UnsupportedModelError: the function runs now and needs a variable of every replica.
    """
    found = first_replicas(owners, handles)
    start = len(library.get(name).signature.input_arg) - len(owners)
    written = used_arguments(library, name, _does_more_than_read)
    unusable: dict[int, tf.Tensor] = {}
    for index, owner in enumerate(owners):
        local = handles[index] is None and owner.synchronization == tf.VariableSynchronization.ON_READ
        if handles[index] is not None or not (local or start + index in written):
            continue
        reason = f"uses {owner.name!r} in a way that needs every replica, and is called outside of replicas; {_FIX}"
        if tf.executing_eagerly():
            raise UnsupportedModelError(reason, node=name, clause="DIST-01")
        if id(owner) not in unusable:
            unusable[id(owner)] = api.unusable_handle(found[index], f"{name} {reason}")
        found[index] = unusable[id(owner)]
    return found


def _does_more_than_read(node: Any, position: int) -> bool:
    return node.op not in READS
