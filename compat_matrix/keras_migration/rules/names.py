"""Names of layers: Keras 3 takes no slash in one."""

from __future__ import annotations

from compat_matrix.keras_migration.rules.rule import Layer, Rule


def _translate(layer: Layer) -> None:
    name = layer.config.get("name")
    if isinstance(name, str) and "/" in name:
        layer.config["name"] = name.replace("/", "_")
        layer.notes.append(f"the layer {name!r} is called {layer.config['name']!r} now: Keras 3 allows no slash")


RULES = (Rule("slashes in names", "2.0-2.15", _translate),)
