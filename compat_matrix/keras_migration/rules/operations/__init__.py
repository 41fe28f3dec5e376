"""Operations of TensorFlow between layers, and what they are among ``keras.ops``; a new file is found by where it lies."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any

CLASSES = ("TFOpLambda", "SlicingOpLambda", "ClassMethod", "InstanceMethod", "InstanceProperty")
GRAPH_CLASSES = ("TensorFlowOpLayer", "AddLoss", "AddMetric")


@functools.cache
def functions() -> Mapping[str, Callable[[dict[str, Any]], Any]]:
    """Return the public functions of TensorFlow that are known: name without ``tf.`` -> translation of a call."""
    return _collected("FUNCTIONS")


@functools.cache
def first_arguments() -> Mapping[str, str]:
    """Return the name of the first argument of each known function."""
    return {name: function.first for name, function in functions().items()}  # type: ignore[attr-defined]


@functools.cache
def graph_ops() -> Mapping[str, Callable[[Sequence[Any], Mapping[str, Any]], Any]]:
    """Return the ops of graphs that are known: type -> translation of a node."""
    return _collected("GRAPH_OPS")


def _collected(name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for module in sorted(item.name for item in pkgutil.iter_modules(__path__)):
        found.update(getattr(importlib.import_module(f"{__name__}.{module}"), name, {}))
    return found
