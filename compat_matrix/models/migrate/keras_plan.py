"""The plan of ``migrate --to keras`` for a model: read from its files, without Keras."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from compat_matrix.keras_migration.reading.saved import NotKeras, SavedKeras
from compat_matrix.models.migrate.migrator import Settings
from reference_impl.errors import SavedModelError

LAMBDA = "Lambda"


def keras_plan(path: Path, settings: Settings) -> tuple[str, str]:
    """Return what will be tried, and why or with which layers. Never raises for what is wrong with the model.

    Whether Keras 3 has every layer is known when it is tried: a model that cannot be rebuilt is wrapped.
    """
    instead = "wrap" if settings.wrap else "refuse"
    try:
        with SavedKeras(path) as saved:
            root, version = saved.root, saved.version
    except NotKeras as error:
        return instead, str(error)
    except SavedModelError as error:
        return "refuse", str(error)
    named = {text.rpartition(":")[2].rpartition(".")[2] for text in settings.custom_objects}
    if root.config is None:
        return instead, "the file holds no configuration of its layers"
    if not root.is_network and root.class_name not in named:
        return instead, f"{root.class_name}: a model with Python code of its own"
    classes = Counter(_classes(root.config))
    if classes[LAMBDA] and not settings.trust_lambda:
        return instead, "Lambda layers hold Python code (--trust-lambda)"
    listed = ", ".join(f"{count} {name}" for name, count in classes.most_common())
    return "rebuild", f"{root.class_name} of Keras {version or '?'}: {listed or 'no layers'}"


def _classes(config: Any) -> Iterator[str]:
    """Yield the class of each layer in a configuration, of nested models too."""
    waiting = [config]
    while waiting:
        found = waiting.pop()
        layers = found.get("layers") if isinstance(found, Mapping) else None
        for layer in layers if isinstance(layers, list) else ():
            if isinstance(layer, Mapping):
                yield str(layer.get("class_name"))
                waiting.append(layer.get("config"))
