"""Rules from Keras 2 to Keras 3, a file for each kind of layer.

A new file is found by where it lies.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil

from savedmodel_migration.keras_2_to_3.rules.rule import Layer, Options, Rule


@functools.cache
def all_rules() -> tuple[Rule, ...]:
    """Return every rule, those of one class of layers before those of all."""
    found: list[Rule] = []
    for module in sorted(item.name for item in pkgutil.iter_modules(__path__)):
        found += getattr(importlib.import_module(f"{__name__}.{module}"), "RULES", ())
    return tuple(sorted(found, key=lambda rule: not rule.classes))


def translate(layer: Layer) -> list[str]:
    """Translate the configuration of a layer in place, and return what the rules that changed it
    are about.

    Raises Refused.
    """
    applied = []
    for rule in all_rules():
        if rule.classes and layer.class_name not in rule.classes:
            continue
        before = layer.class_name, repr(layer.config), len(layer.notes)
        rule.translate(layer)
        if before != (layer.class_name, repr(layer.config), len(layer.notes)) and rule.told:
            applied.append(rule.summary)
    return applied


__all__ = ["Layer", "Options", "Rule", "all_rules", "translate"]
