"""How the packages read: one loop in a comprehension, and typed parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The packages without a nested comprehension. A new package belongs here.
ONE_LOOP = (
    "benchmarks",
    "compat_matrix",
    "docs",
    "examples",
    "reference_eval",
    "reference_impl",
    "savedmodel_common",
    "savedmodel_compat",
    "savedmodel_kit",
    "savedmodel_migration",
    "savedmodel_plugin_kit",
    "savedmodel_prove",
    "savedmodel_servers",
    "savedmodel_standin",
    "savedmodel_tools",
    "third_party",
)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
MOST_UNTYPED = 149


def trees(package: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield the path and the syntax tree of each module of a package."""
    for path in sorted((ROOT / package).rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def nested_comprehensions(tree: ast.Module) -> list[int]:
    """Return the lines of comprehensions that have two loops or another comprehension inside."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, COMPREHENSIONS):
            inside = [inner for inner in ast.walk(node) if isinstance(inner, COMPREHENSIONS)]
            if len(node.generators) > 1 or len(inside) > 1:
                found.append(node.lineno)
    return found


def untyped_parameters(tree: ast.Module) -> list[tuple[int, str]]:
    """Return line and name of each parameter that is annotated with exactly ``Any``."""
    found = []
    for function in ast.walk(tree):
        if isinstance(function, FUNCTIONS):
            for argument in ast.walk(function.args):
                annotation = getattr(argument, "annotation", None)
                if annotation is not None and ast.unparse(annotation) in ("Any", "typing.Any"):
                    found.append((argument.lineno, argument.arg))
    return found


@pytest.mark.parametrize("package", ONE_LOOP)
def test_no_comprehension_has_two_loops_or_another_inside(package):
    modules = list(trees(package))
    assert modules, f"{package} has no modules"
    found = []
    for path, tree in modules:
        found += [f"{path}:{line}" for line in nested_comprehensions(tree)]
    assert not found, "\n".join(
        [f"{len(found)} nested comprehensions; write a loop or name the inner one:", *found]
    )


def test_messages_and_tensors_are_typed():
    found = []
    for path, tree in trees("reference_impl"):
        found += [f"{path}:{line} {name}" for line, name in untyped_parameters(tree)]
    assert len(found) <= MOST_UNTYPED, "\n".join(
        [f"{len(found)} parameters are Any; name their type, such as schema.NodeDef:", *found]
    )


@pytest.mark.parametrize(
    "source",
    [
        "[b for a in c for b in a]",
        "{a: [b for b in a] for a in c}",
        "[a for a in (b for b in c)]",
        "{a for a in c if any(b for b in a)}",
    ],
)
def test_each_form_of_nesting_is_found(source):
    assert nested_comprehensions(ast.parse(source)) == [1]


def test_comprehensions_beside_each_other_are_not_nested():
    assert nested_comprehensions(ast.parse("[a for a in b] + [a for a in c if a]")) == []


def test_only_parameters_that_are_exactly_any_are_found():
    source = "def f(a: Any, b: list[Any], *c: Any, d: int, **e: Any) -> Any: ..."
    assert untyped_parameters(ast.parse(source)) == [(1, "a"), (1, "c"), (1, "e")]
