"""Captures: the tensors that a function takes for its captured objects.

In a replica of a strategy, a function uses the variable of that replica. In the scope of a strategy
but outside replicas, a function reads values from the first replica. There it cannot update all
replicas, or read a sum over replicas; such a function can be traced (Keras does so to build a
model) but not run.

RFC: DIST-01
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.errors import MalformedError, UnsupportedModelError
from reference_impl.functions.library import FunctionLibrary
from reference_impl.functions.names import FileName
from reference_impl.graph.edges import data_inputs, input_source
from reference_impl.graph.functional_ops import first_argument
from reference_impl.graph.op_table import VARIABLE_READS

DISTRIBUTED = tf.distribute.DistributedValues

_FIX = "call it in a replica (strategy.run), or load the model outside of the scope of the strategy"


def handles(
    library: FunctionLibrary, name: FileName, owners: Sequence[Any], building: bool = False
) -> list[tf.Tensor]:
    """Return the tensors of the objects that a function captures, its last arguments.

    While the function's graph is being built, any handle of the right kind suffices. Raises
    UnsupportedModelError: an object cannot be captured, or the function runs and needs a variable
    of every replica.
    """
    with tf.init_scope():  # the first use creates a resource, which must not happen inside a trace
        found = [
            api.replica_handle(owner) if isinstance(owner, DISTRIBUTED) else handle_of(owner, name)
            for owner in owners
        ]
    if all(handle is not None for handle in found):
        return found
    return (
        _first_replicas(owners, found) if building else _cross_replica(library, name, owners, found)
    )


def handle_of(owner: object, function: FileName) -> tf.Tensor:
    """Return the tensor that a function takes for a captured object.

    Raises MalformedError, UnsupportedModelError, UnknownOpError for a resource that lacks its
    content.
    """
    if isinstance(owner, tf.Tensor):
        return owner
    if isinstance(owner, tf.Variable):
        return owner.handle
    if isinstance(owner, api.CapturableResource):
        unfilled = getattr(owner, "unfilled", None)
        if unfilled is not None:
            raise unfilled
        handle = owner.resource_handle
        if handle.dtype not in (tf.resource, tf.variant):  # a dataset is a variant
            raise MalformedError(
                "captures a resource whose creation does not return a handle",
                node=function,
                clause="RES-03",
            )
        return handle
    if isinstance(owner, api.Asset):
        return owner.asset_path
    reason = f"captures {type(owner).__name__}, which is not a tensor, variable, resource or asset"
    raise UnsupportedModelError(reason, node=function, rule="SM-FN-3")


def placeholder_name(argument: str) -> Optional[str]:
    """Return the name of an argument if it is a valid placeholder name, else None."""
    return argument if re.fullmatch(r"[A-Za-z0-9.][\w.\\/>-]*", argument, re.ASCII) else None


def _first_replicas(
    owners: Sequence[Any], handles: Sequence[Optional[tf.Tensor]]
) -> list[tf.Tensor]:
    """Return the handles of captured objects; for a variable without a handle, the handle of its
    first replica.
    """
    pairs = zip(owners, handles)
    return [
        api.variable_components(owner)[0].handle if handle is None else handle
        for owner, handle in pairs
    ]


def _cross_replica(
    library: FunctionLibrary, name: FileName, owners: Sequence[Any], handles: Sequence[Any]
) -> list[tf.Tensor]:
    """Return the handles with which a function is called outside replicas, where variables may have
    no handle.
    """
    found = _first_replicas(owners, handles)
    start = len(library.get(name).signature.input_arg) - len(owners)
    written = used_arguments(library, name, lambda node, position: node.op not in VARIABLE_READS)
    unusable: dict[int, tf.Tensor] = {}
    for index, owner in enumerate(owners):
        local = (
            handles[index] is None and owner.synchronization == tf.VariableSynchronization.ON_READ
        )
        if handles[index] is not None or not (local or start + index in written):
            continue
        reason = (
            f"uses {owner.name!r} in a way that needs every replica, and is called outside of"
            f" replicas; {_FIX}"
        )
        if tf.executing_eagerly():
            raise UnsupportedModelError(reason, node=name, clause="DIST-01")
        if id(owner) not in unusable:
            unusable[id(owner)] = api.unusable_handle(found[index], f"{name} {reason}")
        found[index] = unusable[id(owner)]
    return found


def used_arguments(
    library: FunctionLibrary, name: FileName, used: Callable[[Any, int], bool]
) -> frozenset[int]:
    """Return the positions of the arguments that a function, or a function that it calls, uses in a
    certain way.

    `used` tells whether a node, which calls no function, uses its input at a position in this way.
    Raises CycleError.
    """
    known: dict[FileName, frozenset[int]] = {}
    for function in reversed(library.closure(name)):  # callees first
        known[function] = _used(library, function, used, known)
    return known[name]


def _used(
    library: FunctionLibrary,
    name: FileName,
    used: Callable[[Any, int], bool],
    known: Mapping[FileName, frozenset[int]],
) -> frozenset[int]:
    definition = library.get(name)
    places = {argument.name: index for index, argument in enumerate(definition.signature.input_arg)}
    found: set[int] = set()
    for node in definition.node_def:
        inputs = [places.get(input_source(text, in_function=True)) for text in data_inputs(node)]
        if all(place is None for place in inputs):
            continue
        called = list(library.functions_of(node))
        shift = first_argument(node.op) or 0
        used_inside = frozenset[int]().union(*(known[function] for function in called))
        inner = {position + shift for position in used_inside}
        for position, place in enumerate(inputs):
            if place is not None and (position in inner if called else used(node, position)):
                found.add(place)
    return frozenset(found)
