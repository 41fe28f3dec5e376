"""Read the entry points of an installed distribution from its ``entry_points.txt``.

`importlib.metadata` does the same for every kind of installation. Importing it, with the parsers of
mail and archives that it needs, takes longer than all other imports of a short command together.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

FILE = "entry_points.txt"


def entry_points(distribution: str) -> Optional[list[tuple[str, str, str]]]:
    """Return (group, name, value) for each entry point of a distribution, in the order of its file.

    Return None if the distribution is not the first of its name in a folder of `sys.path` with a
    ``.dist-info`` folder: in an archive, for example. `importlib.metadata` may find it there.

    Example: ``("savedmodel_compat.commands", "run", "savedmodel_tools.commands.run:run")``.
    """
    wanted = distribution.lower().replace("-", "_")
    for folder in sys.path:
        try:
            entries = list(Path(folder).iterdir())  # of "", the working directory
        except NotADirectoryError:
            return None  # an archive, which may have the distribution
        except OSError:
            continue
        for entry in entries:
            stem, _, ending = entry.name.lower().rpartition(".")
            if ending in ("dist-info", "egg-info", "egg") and stem.partition("-")[0] == wanted:
                if ending != "dist-info":
                    return None
                return _read(entry / FILE)
    return None


def _read(path: Path) -> Optional[list[tuple[str, str, str]]]:
    try:
        return list(_parsed(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def _parsed(text: str) -> Iterator[tuple[str, str, str]]:
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line.strip("[]")
        elif line and not line.startswith("#"):
            name, equals, value = line.partition("=")
            if not equals:
                raise ValueError(f"not an entry point: {line}")
            yield group, name.strip(), value.strip()
