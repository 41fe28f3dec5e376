"""All hostile files, by name."""

from __future__ import annotations

from types import ModuleType

from savedmodel_kit.hostile import bundle, container, objects, split, table
from savedmodel_kit.hostile.kind import Hostile

_MODULES = (container, split, table, bundle, objects)


def hostile_files() -> dict[str, Hostile]:
    """Return every hostile file by its name, in the order of the pages of the specification."""
    return {made.name: made for module in _MODULES for made in _of_module(module)}


def _of_module(module: ModuleType) -> list[Hostile]:
    return [value for value in vars(module).values() if isinstance(value, Hostile)]
