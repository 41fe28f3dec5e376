"""The path that a user probably meant with one that names no model."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from reference_impl.format.error_text import nearest
from reference_impl.format.names import FORMATS

_SIBLINGS = 2000  # names of a folder that are compared with a misspelt one
_PARENTS = 3  # folders above a path that are looked at: a shard is two below its model


def near(path: str) -> str:
    """Return ``. Did you mean exports/model?`` for `exports/modle`, which does not exist; "" if
    nothing beside it has a similar name.
    """
    missing = Path(path)
    found = [str(missing.with_name(name)) for name in nearest(missing.name, _names(missing.parent))]
    return f". Did you mean {' or '.join(found)}?" if missing.name and found else ""


def model_around(path: str) -> str:
    """Return ``. The model is exports/model`` for a file or folder of a model, such as
    `exports/model/variables`; "" if no folder above has a saved_model file.
    """
    for parent in itertools.islice(Path(path).parents, _PARENTS):
        if any((parent / name).is_file() for name in FORMATS):
            return f". The model is {'this directory' if parent == Path() else parent}"
    return ""


def _names(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry.name for entry in itertools.islice(entries, _SIBLINGS))
    except OSError:
        return
