"""One door of safety: a load asks `reference_impl.safety.may_run` before functions of a model run,
and uses nothing else of that room.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import reference_impl

PACKAGE = Path(reference_impl.__file__).parent
DOOR = {"may_run", "Running"}
# Rooms that run functions of models, or take part in a load.
ROOMS = ("loading", "v1", "kinds", "functions", "extension", "drop_in")
CALLERS = {"loading/loader.py", "v1/load.py"}


def trees():
    for room in ROOMS:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            place = path.relative_to(PACKAGE).as_posix()
            yield place, ast.parse(path.read_text(encoding="utf-8"))


def inner_imports(tree):
    """Return the modules inside of `safety` that a module imports."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    inner = {name for name in found if name.startswith("reference_impl.safety.")}
    return inner - {f"reference_impl.safety.{name}" for name in DOOR}


def used(tree):
    """Return the attributes of `safety` that a module uses."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "safety"
    }


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_of_a_load_looks_behind_the_door(room):
    found = {place: inner_imports(tree) for place, tree in trees() if place.startswith(room + "/")}
    assert found and {place: names for place, names in found.items() if names} == {}


def test_both_loaders_ask_at_the_door():
    found = {place: used(tree) for place, tree in trees() if used(tree)}
    assert found.keys() == CALLERS
    for place, names in found.items():
        assert "may_run" in names and names <= DOOR, place


def test_an_import_behind_the_door_is_found():
    for text in (
        "from reference_impl.safety import machine_ops",
        "from reference_impl.safety.effects import LOAD",
        "import reference_impl.safety.effects",
    ):
        assert inner_imports(ast.parse(text))
    assert not inner_imports(ast.parse("from reference_impl import safety"))
    assert not inner_imports(ast.parse("from reference_impl.safety import may_run"))
