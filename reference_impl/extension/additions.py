"""What the extension of a file adds to loaded objects: initial values of variables, update rules of optimizers."""

from __future__ import annotations

from typing import Any

from reference_impl.extension import initial_values
from reference_impl.extension.optimizer import LoadedOptimizer, UpdateRules


def attach(loader: Any) -> None:
    """Hang it on the objects of a load; on those that were made, when only a part was."""
    initial_values.attach(loader.origin.initial_values, loader.objects, loader.functions, loader.library)
    for number, state in loader.origin.optimizers.items():
        optimizer = loader.objects[number]
        if isinstance(optimizer, LoadedOptimizer) and state.updates:
            optimizer.__dict__["_optimizer"] = UpdateRules(loader.library, state, loader.objects)
