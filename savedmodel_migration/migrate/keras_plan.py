"""The plan of ``migrate --to keras`` for a model: read from its files, without Keras."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any

from reference_impl.errors import SavedModelError
from reference_impl.remembering import found_once
from savedmodel_migration.keras_2_to_3.reading.layer_graph import layer_graph
from savedmodel_migration.keras_2_to_3.reading.saved import NotKeras, SavedKeras
from savedmodel_migration.keras_2_to_3.refused import OWN_CODE, Refused
from savedmodel_migration.keras_2_to_3.rules import all_rules
from savedmodel_migration.keras_2_to_3.rules.keras_2 import LAYERS
from savedmodel_migration.keras_2_to_3.rules.operations import CLASSES, GRAPH_CLASSES, graph_ops
from savedmodel_migration.migrate.migrator import Settings

LAMBDA = "Lambda"


def keras_plan(path: Path, settings: Settings) -> tuple[str, str]:
    """Return what will be tried, and why or with which layers.

    Never raises for what is wrong with the model.

    A layer may still turn out to be one that Keras 3 cannot rebuild, for its arguments: then the
    model is wrapped.
    """
    instead = "wrap" if settings.wrap else "refuse"
    try:
        with SavedKeras(path) as saved:
            return _plan(saved, settings, instead)
    except NotKeras as error:
        return instead, str(error)
    except SavedModelError as error:
        return "refuse", str(error)


def _plan(saved: SavedKeras, settings: Settings, instead: str) -> tuple[str, str]:
    root = saved.root
    named = {text.rpartition(":")[2].rpartition(".")[2] for text in settings.custom_objects}
    if root.config is None:
        return instead, str(saved.unconfigured())
    if not root.is_network and root.class_name not in named:
        return instead, f"{root.class_name}: {OWN_CODE}"
    classes = Counter(_classes(root.config))
    coded = [
        name
        for name in classes
        if name == LAMBDA and not settings.trust_lambda and not _has_graphs(saved, name)
    ]
    lacking = [name for name in classes if _lacks(name, named) and not _has_graphs(saved, name)]
    if coded or lacking:
        reasons = ["Lambda layers hold Python code (--trust-lambda)"] if coded else []
        reasons += (
            [f"Keras 3 has no layer {', '.join(lacking)} (--custom-objects)"] if lacking else []
        )
        others = set(classes) - {*coded, *lacking, "InputLayer"}
        return "rebuild in part" if settings.wrap and others else instead, "; ".join(reasons)
    listed = ", ".join(f"{count} {name}" for name, count in classes.most_common())
    return "rebuild", f"{root.class_name} of Keras {saved.version or '?'}: {listed or 'no layers'}"


def _has_graphs(saved: SavedKeras, name: str) -> bool:
    """Return whether the graph of each layer of a class can be rebuilt."""
    found = [item for item in saved.objects.values() if item.class_name == name]
    try:
        graphs = [layer_graph(saved, item.node) for item in found]
    except Refused:
        return False
    return bool(graphs) and all(graph.ops() <= graph_ops().keys() for graph in graphs)


def _lacks(name: str, custom: Container[str]) -> bool:
    """Return whether no layer of the installed Keras, no rule and no class of the user has a
    name.
    """
    public = _public_layers()
    if public is None or name.rpartition(">")[2] in custom:
        return False
    unversioned = re.sub(r"V\d$", "", name)  # Keras 2 gave two versions of a layer such names
    return not any(one in public or one in _translated() for one in (name, unversioned))


@functools.cache
def _translated() -> frozenset[str]:
    """Return the classes that rules and operations translate."""
    return frozenset(CLASSES).union(GRAPH_CLASSES, *(rule.classes for rule in all_rules()))


@found_once
def _public_layers() -> frozenset[str] | None:
    """Return the names in `keras.layers` that Keras 2 had too, None if Keras is not there.

    Read from the file: to import Keras takes seconds.
    """
    spec = importlib.util.find_spec("keras")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for place in ("layers", "api/layers"):  # by release
            file = Path(folder, place, "__init__.py")
            if file.is_file():
                return frozenset(_imported_names(file)) & LAYERS or None
    return None


def _imported_names(file: Path) -> Iterator[str]:
    """Yield the names that the ``from`` imports of a module bind."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name


def _classes(config: Any) -> Iterator[str]:
    """Yield the class of each layer in a configuration, of those in nested models too."""
    waiting = [config]
    while waiting:
        found = waiting.pop()
        layers = found.get("layers") if isinstance(found, Mapping) else None
        for layer in layers if isinstance(layers, list) else ():
            if isinstance(layer, Mapping):
                inner = layer.get("config")
                waiting.append(inner)
                if not (isinstance(inner, Mapping) and isinstance(inner.get("layers"), list)):
                    yield str(layer.get("class_name"))
