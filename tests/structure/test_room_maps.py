"""The docstring of every room of `reference_impl` and of the kit names all that is in the room."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "reference_impl"
KIT = Path(__file__).parents[2] / "savedmodel_kit"
ROOMS = [
    *sorted(path.parent for path in ROOT.rglob("__init__.py") if path.parent != ROOT),
    *sorted(path.parent for path in KIT.rglob("__init__.py")),
]


def contents(room: Path) -> set[str]:
    modules = {path.stem for path in room.glob("*.py") if not path.stem.startswith("_")}
    folders = {path.parent.name for path in room.glob("*/__init__.py")}
    return modules | folders


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: str(room.relative_to(ROOT.parent)))
def test_a_room_names_what_it_holds(room):
    map_ = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
    words = set(re.findall(r"\w+", map_))
    assert sorted(contents(room) - words) == []


def test_the_guide_names_every_room():
    guide = (ROOT / "README.md").read_text(encoding="utf-8")
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert sorted(room for room in rooms if f"{room}/`" not in guide) == []
