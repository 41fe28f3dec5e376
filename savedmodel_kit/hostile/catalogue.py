"""All hostile files, by name."""

from __future__ import annotations

from types import ModuleType

from savedmodel_kit.hostile import bundle, container, objects, split, table
from savedmodel_kit.hostile.kind import Hostile

_MODULES = (container, split, table, bundle, objects)


def hostile_files() -> dict[str, Hostile]:
    """Return every hostile file by its name, in the order of the pages of the specification."""
    found: dict[str, Hostile] = {}
    for module in _MODULES:
        found.update(_of_module(module))
    return found


def _of_module(module: ModuleType) -> dict[str, Hostile]:
    return {value.name: value for value in vars(module).values() if isinstance(value, Hostile)}
