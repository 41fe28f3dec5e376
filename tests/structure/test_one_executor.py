"""One executor: nobody beside it and its two front ends has a cell executed, or says what became of
one.
"""

import ast
from pathlib import Path

import compat_matrix

PACKAGE = Path(compat_matrix.__file__).parent
# Who may use a name: the front ends hand `run_cell` to the executor; the collector reports a
# process that died.
ALLOWED = {
    "run_cell": {"checks/__init__.py", "checks/run.py", "engine/loop.py", "pytest_plugin.py"},
    "Context": {"checks/run.py"},
    "Executor": {"engine/executor.py", "engine/loop.py", "pytest_plugin.py"},
    "Result.observed": {"engine/executor.py", "pytest_plugin.py"},
    "Result.not_executed": {"engine/executor.py", "engine/result_log.py"},
}


def called(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func).removeprefix("cls.")


def test_only_the_executor_and_its_front_ends_execute_cells():
    found = {name: set() for name in ALLOWED}
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE).as_posix()
        if place.startswith(("cases/", "third_party/")):
            continue
        for name in set(called(path)) & ALLOWED.keys():
            found[name].add(place)
    for name, places in found.items():
        assert places and places <= ALLOWED[name], (
            f"{name} is called in {sorted(places - ALLOWED[name])}"
        )
