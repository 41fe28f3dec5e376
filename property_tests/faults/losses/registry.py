"""The registry of faults, and how one is applied to a model in a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from reference_impl.format import schema
from reference_impl.format.container import layout

Loss = Callable[[Any, Path], bool]
LOSSES: dict[str, Loss] = {}


def apply(name: str, model: Path) -> bool:
    """Lose something from the model in a folder; whether there was anything."""
    message = layout.read(model).saved_model
    done = [LOSSES[name](graph, model) for graph in message.meta_graphs]
    (model / "saved_model.pb").write_bytes(schema.serialize(message))
    return any(done)


def loss(function: Loss) -> Loss:
    LOSSES[function.__name__] = function
    return function


def each(items: Any, change: Callable[[Any], bool]) -> bool:
    changed = [change(item) for item in items]
    return any(changed)


def set_field(message: Any, field: str, value: Any) -> bool:
    changed = bool(getattr(message, field) != value)
    setattr(message, field, value)
    return changed
