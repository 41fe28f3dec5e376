"""Look up a private symbol of TensorFlow by the modules in which releases have it."""

from __future__ import annotations

import importlib
from typing import Any

import tensorflow as tf


def private(*candidates: str) -> Any:
    """Return the first of several `module:symbol` that exists in the running TensorFlow.

    Raises ImportError if none exists.
    """
    for candidate in candidates:
        module, _, symbol = candidate.partition(":")
        try:
            return getattr(importlib.import_module(module), symbol)
        except (ImportError, AttributeError):
            continue
    raise ImportError(
        f"TensorFlow {tf.__version__} has none of {', '.join(candidates)}; 2.12 to 2.21 do"
    )


def text(name: object) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)
