"""Mutation testing on a sample: ``python -m property_tests.mutants --sample 60 --seed 1``.

Changes one thing at a time in a copy of the project and runs the tests of that module. What survives is equivalent or not tested.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FORMAT = "reference_impl/format"
# Module -> the tests that are there for it.
TESTS: dict[str, tuple[str, ...]] = {
    f"{FORMAT}/sstable.py": ("tests/test_format_sstable.py", "tests/test_format_bundle_damage.py"),
    f"{FORMAT}/bundle_entry.py": ("tests/test_format_bundle_damage.py", "tests/test_format_bundle.py"),
    f"{FORMAT}/slices.py": ("tests/test_format_bundle_damage.py", "tests/test_format_bundle.py"),
    f"{FORMAT}/tensor_data.py": ("tests/test_format_bundle.py", "tests/test_format_bundle_damage.py"),
    f"{FORMAT}/structure.py": ("tests/test_format_structure.py",),
    f"{FORMAT}/split.py": ("tests/test_format_split.py",),
    f"{FORMAT}/riegeli.py": ("tests/test_format_split.py",),
    f"{FORMAT}/files.py": ("tests/test_format_layout.py",),
    f"{FORMAT}/layout.py": ("tests/test_format_layout.py",),
    f"{FORMAT}/graphs.py": ("tests/test_graphs.py", "tests/test_canonical.py"),
    f"{FORMAT}/canonical_graph.py": ("tests/test_canonical.py", "tests/test_canonical_changes.py"),
    f"{FORMAT}/canonical_body.py": ("tests/test_canonical.py", "tests/test_canonical_changes.py"),
    f"{FORMAT}/canonical_values.py": ("tests/test_canonical.py", "tests/test_canonical_changes.py"),
    f"{FORMAT}/canonical_objects.py": ("tests/test_canonical.py", "tests/test_canonical_structure.py"),
    "compat_matrix/expectations/ledger.py": ("tests/test_matrix_ledger.py",),
    "compat_matrix/expectations/entries.py": ("tests/test_matrix_ledger.py",),
    "compat_matrix/expectations/ranges.py": ("tests/test_matrix_ledger.py",),
}
_COMPARES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Every node that can be changed, and how. Annotations and docstrings are none of the program's doing."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        for name in ("annotation", "returns", "decorator_list"):
            held = getattr(node, name, None)
            for part in held if isinstance(held, list) else [held] if held else []:
                skipped.update(ast.walk(part))
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARES:
            yield node, "compare"
        elif isinstance(node, ast.BoolOp):
            yield node, "and/or"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, "not"
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield node, "number"
        elif isinstance(node, ast.Raise):
            yield node, "raise"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            yield node, "plus"


def change(node: ast.AST, rng: random.Random) -> ast.AST:
    """Another node in its place."""
    made = copy.deepcopy(node)
    if isinstance(made, ast.Compare):
        made.ops[0] = _COMPARES[type(made.ops[0])]()
    elif isinstance(made, ast.BoolOp):
        made.op = ast.Or() if isinstance(made.op, ast.And) else ast.And()
    elif isinstance(made, ast.UnaryOp):
        return made.operand
    elif isinstance(made, ast.Constant):
        made.value += rng.choice((1, -1))
    elif isinstance(made, ast.BinOp):
        made.op = ast.Sub() if isinstance(made.op, ast.Add) else ast.Add()
    else:
        return ast.copy_location(ast.Pass(), node)
    return made


def mutant(source: str, number: int, rng: random.Random) -> tuple[str, str]:
    """The source with its change of that number, and what it is."""
    tree = ast.parse(source)
    node, kind = list(places(tree))[number]
    made = change(node, rng)

    class Swap(ast.NodeTransformer):
        def visit(self, visited: ast.AST) -> ast.AST:
            return made if visited is node else self.generic_visit(visited)

    before = ast.unparse(node)
    text = ast.unparse(ast.fix_missing_locations(Swap().visit(tree)))
    return text, f"line {getattr(node, 'lineno', 0)}: {kind}: {before[:60]!r} -> {ast.unparse(made)[:60]!r}"


def survives(copied: Path, tests: tuple[str, ...]) -> bool:
    """Whether these tests pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-k", "not zoo and not tf", *tests]
    environment = {**os.environ, "PYTHONPATH": str(copied), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=copied, env=environment, capture_output=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main() -> int:
    """Print what survives, and figures."""
    parser = argparse.ArgumentParser(prog="python -m property_tests.mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="a part of the modules' names")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    modules = [module for module in TESTS if not options.only or options.only in module]
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "project"
        shutil.copytree(ROOT, copied, ignore=shutil.ignore_patterns(".*", "__pycache__"))
        for tests in sorted({TESTS[module] for module in modules}):
            if not survives(copied, tests):
                parser.error(f"these fail without a change: {', '.join(tests)}")
        every = [(m, n) for m in modules for n in range(len(list(places(ast.parse((ROOT / m).read_text(encoding="utf-8"))))))]
        chosen = rng.sample(every, min(options.sample, len(every)))
        alive = 0
        for done, (module, number) in enumerate(chosen, 1):
            source = (ROOT / module).read_text(encoding="utf-8")
            text, what = mutant(source, number, rng)
            (copied / module).write_text(text, encoding="utf-8")
            if survives(copied, TESTS[module]):
                alive += 1
                print(f"survives: {module}: {what}", flush=True)
            (copied / module).write_text(source, encoding="utf-8")
            print(f"{done} of {len(chosen)} ({len(every)} in all), {alive} survive", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
