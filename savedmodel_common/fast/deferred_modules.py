"""Import a module of another package at its first use, though that package imports it at once.

protobuf imports its messages in pure Python, with text formats and pickle behind them, also where
it uses compiled ones. They are half of its import, and no model is read with them.
"""

from __future__ import annotations

import importlib.util
import os
import sys

from savedmodel_common.fast import is_on

_CHOICE = "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"  # of a user: which messages protobuf uses
PURE_MESSAGES = "google.protobuf.internal.python_message"


def defer_pure_messages() -> None:
    """Defer the import of protobuf's messages in pure Python, unless a user has chosen them.

    A program calls this before its first import of protobuf.
    """
    if is_on() and _CHOICE not in os.environ and PURE_MESSAGES not in sys.modules:
        defer(PURE_MESSAGES)


def defer(name: str) -> None:
    """Put a module into its package that is executed when one of its attributes is asked for."""
    package, _, last = name.rpartition(".")
    try:
        spec = importlib.util.find_spec(name)
    except ImportError:  # there is no such package
        return
    if spec is None or spec.loader is None:
        return
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    # ``from package import module`` finds it here and asks it for nothing.
    setattr(sys.modules[package], last, module)
