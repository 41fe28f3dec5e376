"""The sound models of the kit: the artifacts that genuine releases of TensorFlow wrote.

An artifact is a folder with ``model/``, ``io/`` (requests and recorded answers) and
``provenance.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import fixtures_v1

_ROOT = Path(fixtures_v1.__file__).parents[1]
# fixtures_v1/CASE, by TensorFlow 1.x, and fixtures_v2/CASE/RELEASE.
_COMMITTED = {"fixtures_v1": "*/model", "fixtures_v2": "*/*/model"}
PARTS = ("model", "io", "provenance.json")


class Artifact(NamedTuple):
    """A sound model.

    Attributes:
      name: its place in the kit: ``fixtures_v1/half_plus_two``.
      folder: where it is.
    """

    name: str
    folder: Path

    def provenance(self) -> dict[str, Any]:
        """Return what ``provenance.json`` says, or nothing if the artifact has no such file."""
        file = self.folder / "provenance.json"
        found: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.exists() else {}
        return found


def committed() -> list[Artifact]:
    """Return the committed artifacts, by name."""
    found: list[Artifact] = []
    for folder, pattern in _COMMITTED.items():
        found += _in(folder, pattern)
    return found


def _in(folder: str, pattern: str) -> Iterator[Artifact]:
    for model in sorted((_ROOT / folder).glob(pattern)):
        yield Artifact(model.parent.relative_to(_ROOT).as_posix(), model.parent)


def below(folder: Path) -> list[Artifact]:
    """Return the artifacts below another folder, such as the output of a run of the matrix."""
    models = sorted(path for path in folder.rglob("model") if path.is_dir())
    return [
        Artifact(f"{folder.name}/{model.parent.relative_to(folder).as_posix()}", model.parent)
        for model in models
    ]
