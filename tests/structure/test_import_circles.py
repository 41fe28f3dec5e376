"""No module imports another that imports it: at the top, in a function or for a type only."""

from __future__ import annotations

import ast
from pathlib import Path

from reference_impl.graph.order import circles
from savedmodel_common.packages import FIXTURES, OURS

REPO = Path(__file__).parents[2]
PACKAGES = (*OURS, *FIXTURES, "benchmarks", "property_tests")


def modules():
    """Name of a module -> its file."""
    files = [path for package in PACKAGES for path in (REPO / package).rglob("*.py")]
    return {
        ".".join(path.relative_to(REPO).with_suffix("").parts).removesuffix(".__init__"): path
        for path in files
    }


def imported(name, path, known):
    """The modules that a source imports anywhere, in functions and for types too."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            names = [f"{base}.{alias.name}" for alias in node.names]
            found.update(inner if inner in known else base for inner in names)
    return found & known - {name}


def test_modules_do_not_import_each_other_in_a_circle():
    files = modules()
    edges = {name: imported(name, path, files.keys()) for name, path in files.items()}
    assert all(
        any(name.startswith(package) and edges[name] for name in edges) for package in PACKAGES
    )
    assert circles(edges) == []


def test_a_planted_circle_is_found(tmp_path):
    (tmp_path / "a.py").write_text("def late():\n    from . import b\n")
    (tmp_path / "b.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import p.a\n"
    )
    known = {"p.a", "p.b"}
    assert circles(
        {name: imported(name, tmp_path / f"{name[2:]}.py", known) for name in known}
    ) == [["p.a", "p.b"]]
