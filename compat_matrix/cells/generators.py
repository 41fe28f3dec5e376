"""The generators of the fixtures as cases: ``fixtures_v1/<case>/generate.py``, read without running
them.
"""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from typing import Any, NamedTuple

from compat_matrix.cases import CaseError, title_and_rest

GENERATOR = "generate.py"


class GeneratorInfo(NamedTuple):
    """The facts about a generator that are known before anything runs."""

    name: str
    title: str
    clauses: tuple[str, ...]
    features: tuple[str, ...]
    requires: str | None
    file: Path


def fixtures_root(package: str = "fixtures_v1") -> Path:
    """Return the folder of the committed fixtures: of TF 1.x, or of TF 2 (``"fixtures_v2"``).

    Raises FileNotFoundError if they are not installed.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"the package {package} is not installed")
    return Path(spec.origin).parent


def all_generators(root: Path) -> list[GeneratorInfo]:
    """Return every generator below ``root``, sorted by name.

    Raises CaseError for a file that is not a generator.
    """
    return [read_generator(path) for path in sorted(root.glob(f"*/{GENERATOR}"))]


def read_generator(file: Path) -> GeneratorInfo:
    """Read the facts of one generator, which may be written for another Python.

    Raises CaseError, or OSError without a file.
    """
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        constants = _constants(tree)
    except (SyntaxError, ValueError) as error:
        raise CaseError(f"{file}: {error}") from error
    title, _ = title_and_rest(ast.get_docstring(tree) or "")
    if not title:
        raise CaseError(f"{file}: there is no docstring, so the generator has no title")
    requires = constants.get("REQUIRES")
    if requires is not None and not isinstance(requires, str):
        raise CaseError(f"{file}: REQUIRES is {requires!r}, which is not a string")
    words = {name: constants.get(name, ()) for name in ("CLAUSES", "FEATURES")}
    for name, value in words.items():
        if (
            not isinstance(value, tuple)
            or not value
            or not all(isinstance(word, str) for word in value)
        ):
            raise CaseError(f"{file}: {name} must be a tuple of at least one word")
    return GeneratorInfo(
        file.parent.name, title, words["CLAUSES"], words["FEATURES"], requires, file
    )


def _constants(tree: ast.Module) -> dict[str, Any]:
    out = {}
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if (
            isinstance(node, ast.Assign)
            and isinstance(target, ast.Name)
            and target.id in ("CLAUSES", "FEATURES", "REQUIRES")
        ):
            out[target.id] = ast.literal_eval(node.value)
    return out
