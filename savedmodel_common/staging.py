"""Models side by side below one folder, as a server reads them: ``NAME/1/`` each.

A server in a container cannot follow links, so `placing` puts the files themselves there.
"""

from __future__ import annotations

import itertools
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from savedmodel_common.placing import Unstageable, place

__all__ = ["Staged", "Staging", "Unstageable", "place", "size"]

VERSION = 1
NAME_LENGTH = 60


@dataclass(frozen=True)
class Staged:
    """A model as a server knows it.

    Its name is never used twice, because a server remembers the state of earlier models.
    """

    name: str
    model: Path


class Staging:
    """A folder of staged models."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._numbers = itertools.count(1)

    def add(self, model: Path) -> Staged:
        """Stage a model. Raises Unstageable, OSError."""
        staged = Staged(f"{_safe_name(model)}_{next(self._numbers)}", model)
        target = self.folder / staged.name / str(VERSION)
        # Renamed when complete: a server that looks for versions must not find half of one.
        part = self.folder / staged.name / "part"
        try:
            place(model, part)
            part.rename(target)
        except BaseException:
            self.remove(staged)
            raise
        return staged

    def remove(self, staged: Staged) -> None:
        shutil.rmtree(self.folder / staged.name, ignore_errors=True)


def size(model: Path) -> int:
    """Bytes of the files of a model; 0 where it cannot be read."""
    try:
        return sum(found.stat().st_size for found in model.rglob("*") if found.is_file())
    except OSError:
        return 0


def _safe_name(model: Path) -> str:
    """Return a name from the path of a model; for the folder ``model`` of an artifact that of the
    artifact.
    """
    words = model.parent.name if model.name == "model" else model.name
    return re.sub(r"[^A-Za-z0-9_-]+", "_", words).strip("_")[:NAME_LENGTH] or "model"
