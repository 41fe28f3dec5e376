"""No text is evaluated as Python, and no object is unpickled.

In CVE-2021-41228 it was an input expression that TensorFlow's command line evaluated.
"""

import ast
from pathlib import Path

from savedmodel_common.packages import OURS

ROOT = Path(__file__).parents[2]
# It compiles source files of the user's own program, to look at the names in the byte code, and
# runs nothing.
READS_SOURCE = "reference_impl/saving/checks/trace_frames.py: compile() in line "
REFUSED = {"eval", "exec", "compile", "__import__"}
# Programs of measurement, which run expressions of their own table; they are not in the wheel.
MEASURED = ROOT / "savedmodel_migration" / "keras_models"
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve"}


def violations(tree):
    for node in ast.walk(tree):
        called = (
            node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        )
        if called in REFUSED and not all(
            isinstance(argument, ast.Constant) for argument in node.args
        ):
            yield f"{called}() in line {node.lineno}"
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
            )
            yield from (
                f"{name} in line {node.lineno}"
                for name in names
                if name.partition(".")[0] in MODULES
            )
        if (
            isinstance(node, ast.keyword)
            and node.arg == "allow_pickle"
            and ast.unparse(node.value) != "False"
        ):
            yield f"allow_pickle in line {node.value.lineno}"


def test_nothing_evaluates_text():
    found = []
    for part in OURS:
        for path in (ROOT / part).rglob("*.py"):
            if MEASURED in path.parents:
                continue
            found += [
                f"{path.relative_to(ROOT)}: {what}"
                for what in violations(ast.parse(path.read_text(encoding="utf-8")))
            ]
    assert [one.startswith(READS_SOURCE) for one in found] == [True]


def test_violations_are_seen():
    text = (
        "eval(x)\nimport pickle\nfrom dill import loads\nnp.load(f, allow_pickle=True)\nexec('')\n"
    )
    assert len(list(violations(ast.parse(text)))) == 4
