"""Objects of a loaded model by their place in the object graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional


def at(root: Any, names: Sequence[str]) -> Optional[Any]:
    """Return the object at a path of the object graph, None if the loaded model has nothing there."""
    for name in names:
        found = getattr(root, name, None)
        if found is None and isinstance(root, Mapping):
            found = root.get(name)
        if found is None and name.isdigit() and isinstance(root, (list, tuple)) and int(name) < len(root):
            found = root[int(name)]
        if found is None:
            return None
        root = found
    return root
