"""Operations of TensorFlow between layers, and what they are among ``keras.ops``; a new file is
found by where it lies.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from savedmodel_migration.keras_2_to_3.refused import Refused
from savedmodel_migration.keras_2_to_3.rules.operations.expression import Function

CLASSES = ("TFOpLambda", "SlicingOpLambda", "ClassMethod", "InstanceMethod", "InstanceProperty")
# Ops of `graph_ops` with several output arguments, a tensor each: their names in the order of the
# outputs.
OUTPUTS: Mapping[str, Sequence[str]] = {"TopKV2": ("values", "indices")}
GRAPH_CLASSES = ("TensorFlowOpLayer", "AddLoss", "AddMetric")


@functools.cache
def functions() -> Mapping[str, Function]:
    """Return the public functions of TensorFlow that are known: name without ``tf.`` -> translation
    of a call.
    """
    return _collected("FUNCTIONS")


def known_name(name: str) -> str:
    """Return the name under which `functions` has a function: one of ``tf.compat.v1`` has that of
    today. Raises Refused.
    """
    for one in (name, name.removeprefix("compat.v1.")):
        if one in functions():
            return one
    raise Refused(f"the function tf.{name} has no counterpart in keras.ops that is known")


@functools.cache
def graph_ops() -> Mapping[str, Callable[[Sequence[Any], Mapping[str, Any]], Any]]:
    """Return the ops of graphs that are known: type -> translation of a node."""
    return _collected("GRAPH_OPS")


def _collected(name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for module in sorted(item.name for item in pkgutil.iter_modules(__path__)):
        found.update(getattr(importlib.import_module(f"{__name__}.{module}"), name, {}))
    return found
