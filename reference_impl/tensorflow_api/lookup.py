"""How a private symbol of TensorFlow is looked up: by its homes in the versions there are."""

from __future__ import annotations

import importlib
from typing import Any

import tensorflow as tf


def private(*candidates: str) -> Any:
    """The first of several homes `module:symbol` that exists in the running TensorFlow."""
    for candidate in candidates:
        module, _, symbol = candidate.partition(":")
        try:
            return getattr(importlib.import_module(module), symbol)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"TensorFlow {tf.__version__} has none of {', '.join(candidates)}; 2.12 to 2.21 do")


def text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)
