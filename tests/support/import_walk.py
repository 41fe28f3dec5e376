"""Which module of the project imports which: at the top, in a function or for a type only."""

from __future__ import annotations

import ast
from pathlib import Path

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
