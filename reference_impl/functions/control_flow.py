"""Handle data of rebuilt branches and loops.

The handle data of a resource or variant tells the dtypes and shapes of the values behind it, which
gradient code needs. TensorFlow's shape inference does not pass it through If, Case and While.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from reference_impl import tensorflow_api as api
from reference_impl.graph.functional_ops import BRANCHES, LOOPS

# Attribute of an operation -> the concrete functions that it runs.
Functions = Mapping[str, Sequence[Any]]


def describe_handles(operation: tf.Operation, functions: Functions) -> None:
    """Copy handle data to the outputs of a branch or loop: from the results of each branch, or from
    the inputs of the loop.
    """
    ways: list[Sequence[tf.Tensor]]
    if operation.type in LOOPS:
        ways = [list(operation.inputs)]
    elif operation.type in BRANCHES:
        branches = itertools.chain.from_iterable(functions[key] for key in sorted(functions))
        ways = [function.outputs for function in branches]
    else:
        return
    for target, *sources in zip(operation.outputs, *ways):
        same = all(source.dtype == target.dtype for source in sources)
        if same and target.dtype in (tf.resource, tf.variant):
            _describe(target, sources)


def _describe(target: tf.Tensor, sources: Sequence[tf.Tensor]) -> None:
    """Copy the handle data of the first source that has some.

    If a branch returns an optional without a value, its handle data is empty. The output's must
    then be empty too, or the gradient would leave out values that the branch needs.
    """
    known = [api.handle_data(source) for source in sources]
    if target.dtype == tf.resource or all(data == known[0] for data in known):
        first = next((index for index, data in enumerate(known) if data), 0)
        api.copy_handle_data(sources[first], target)
