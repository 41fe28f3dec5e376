"""The packages: one list of them, a picture that names every folder, a README of one screen each."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from import_walk import imported, modules

from reference_impl.graph.order import circles
from savedmodel_common import toml
from savedmodel_common.packages import FIXTURES, OURS

ROOT = Path(__file__).parents[2]
PROJECT = toml.read(ROOT / "pyproject.toml")
KERAS = "savedmodel_compat.keras"  # a floor of its own
SCREEN = 45  # lines


def package_of(module: str) -> str:
    """Return the package that a module belongs to, as the picture draws them."""
    return KERAS if f"{module}.".startswith(f"{KERAS}.") else module.partition(".")[0]


def imports() -> set[tuple[str, str]]:
    """Return the pairs of packages of which the first imports the second."""
    files = modules()
    pairs = set()
    for name, path in files.items():
        for other in imported(name, path, files.keys()):
            pairs.add((package_of(name), package_of(other)))
    known = {*OURS, KERAS}
    return {(one, other) for one, other in pairs if one != other and {one, other} <= known}


def floors(edges: dict[str, set[str]]) -> dict[str, int]:
    """Return the floor of each package: one above the highest that it imports."""
    known: dict[str, int] = {}

    def floor(name: str) -> int:
        if name not in known:
            known[name] = 1 + max((floor(other) for other in edges[name]), default=0)
        return known[name]

    return {name: floor(name) for name in edges}


def test_one_list_of_packages():
    hatch = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert sorted(hatch) == sorted([*OURS, *FIXTURES])
    assert set(PROJECT["tool"]["mypy"]["packages"]) - set(FIXTURES) == set(OURS)
    assert sorted(PROJECT["tool"]["importlinter"]["root_packages"]) == sorted(OURS)


def test_the_picture_has_at_most_ten_floors_and_no_circle():
    edges: dict[str, set[str]] = {name: set() for name in (*OURS, KERAS)}
    for one, other in imports():
        edges[one].add(other)
    assert circles({name: frozenset(others) for name, others in edges.items()}) == []
    assert max(floors(edges).values()) <= 10
    assert all(edges[name] for name in edges if name != "reference_impl")  # something was compared


def test_every_folder_at_the_top_is_named():
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split("\0")
    folders = {name.partition("/")[0] for name in tracked if "/" in name}
    if not folders:
        pytest.skip("this is no git checkout: nobody knows which folders belong to the project")
    named = set(re.findall(r"[\w-]+", page))
    assert {name for name in folders if not name.startswith(".")} - named == set()


@pytest.mark.parametrize("name", sorted({*OURS, "third_party", *FIXTURES}))
def test_each_package_has_a_readme_of_one_screen(name):
    lines = (ROOT / name / "README.md").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    if name not in ("reference_impl", *FIXTURES):  # a reading guide, and a table of models
        assert len(lines) <= SCREEN


# The README of savedmodel_kit travels in each kit, and names the files there.
OF_FILES = [name for name in OURS if name.startswith(("savedmodel", "compat"))]
OF_FILES.remove("savedmodel_kit")


@pytest.mark.parametrize("name", OF_FILES)
def test_the_files_that_a_readme_names_exist(name):
    text = (ROOT / name / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+(?:\.py|/))`", text)
    assert named
    for path in named:
        assert (ROOT / name / path).exists() or (ROOT / path).exists(), path
