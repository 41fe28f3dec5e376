"""Which tests execute which line: the suite without TensorFlow once, under `coverage` with the
test's name as context.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Optional

import pytest

from property_tests.mutants import running
from property_tests.mutants.places import Place

# before the id of a fixture that several tests share: what it executes is executed for all of them
FIXTURE = "fixture "


class Contexts:
    """A pytest plugin: tells coverage whose lines they are, and notes what each test took."""

    def __init__(self, measured: Any) -> None:
        self.measured, self.seconds, self.bad = measured, defaultdict(float), set[str]()
        self.fixtures: dict[str, list[str]] = defaultdict(list)
        self.held, self.remembering = "", set[str]()

    def _switch(self, name: str) -> str:
        self.measured.switch_context(name)
        before, self.held = self.held, name
        return before

    def pytest_collection_finish(self, session: Any) -> None:
        for item in session.items:
            for name, found in item._fixtureinfo.name2fixturedefs.items():
                if found[-1].scope != "function":
                    self.fixtures[f"{FIXTURE}{found[-1].baseid}::{name}"].append(item.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        before, start = self._switch(item.nodeid), time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.process_time() - start
            self._switch(before)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        if fixturedef.scope == "function":
            return (yield)
        before = self._switch(f"{FIXTURE}{fixturedef.baseid}::{fixturedef.argname}")
        try:
            value = yield
            if callable(value):
                self.remembering.add(self.held)
            return value
        finally:
            self._switch(before)

    def shared(self) -> dict[str, set[str]]:
        """Test -> those that share a fixture with it which is a function, and may remember what it
        did for another.
        """
        found: dict[str, set[str]] = defaultdict(set)
        for fixture in self.remembering:
            for test in self.fixtures[fixture]:
                found[test].update(self.fixtures[fixture])
        return found

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.skipped or report.failed:
            self.bad.add(report.nodeid)


def _measure(root: Path, tests: Sequence[str], modules: Sequence[str], out: Path) -> list[str]:
    import coverage

    data = out / "coverage.db"
    measured = coverage.Coverage(
        data_file=str(data), config_file=False, include=[str(root / module) for module in modules]
    )
    plugin = Contexts(measured)
    measured.erase()
    measured.start()
    marks = "not docker" if sys.modules.get("tensorflow") else "not docker and not tensorflow"
    code = pytest.main([*running.settings(root), "-m", marks, *tests], plugins=[plugin])
    measured.stop()
    measured.save()
    if code not in (0, 1):
        return [f"pytest ends with {int(code)}"]
    lines: dict[str, dict[str, list[str]]] = {}
    shared = plugin.shared()
    for module in modules:
        found = measured.get_data().contexts_by_lineno(str(root / module))
        lines[module] = {}
        for line, contexts in found.items():
            names = {
                name for context in contexts for name in plugin.fixtures.get(context, [context])
            }
            names |= {other for name in names for other in shared.get(name, ())}
            lines[module][str(line)] = sorted(
                name for name in names if not name.startswith(FIXTURE) and name not in plugin.bad
            )
    seconds = {name: taken for name, taken in plugin.seconds.items() if name not in plugin.bad}
    (out / "reach.json").write_text(
        json.dumps({"seconds": seconds, "lines": lines, "of": digest(root, tests)})
    )
    return []


def digest(root: Path, tests: Sequence[str]) -> str:
    """Of every program of the project, and of what is asked."""
    made = hashlib.sha256(repr(tests).encode())
    for path in sorted(root.rglob("*.py")):
        made.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return made.hexdigest()


@dataclasses.dataclass
class Reach:
    """What the tests execute.

    ``seconds`` by test; ``lines`` by module: line -> tests, "" for an import.
    """

    seconds: dict[str, float]
    lines: dict[str, dict[int, set[str]]]
    words: dict[str, set[tuple[str, int]]]  # identifier -> (module, line) of those that name it

    def _at(self, module: str, first: int, last: int) -> set[str]:
        return set().union(*(self.lines[module].get(line, ()) for line in range(first, last + 1)))

    def tests(self, place: Place) -> set[str]:
        """Those that may see this change: they execute its lines, or, for what an import computes,
        use it.
        """
        found = self._at(place.module, *place.lines)
        if not place.at_import and found != {""}:
            return found - {""}
        for module, line in {at for name in place.names for at in self.words.get(name, ())}:
            found |= self._at(module, line, line)
        if found == {""}:
            found = set().union(*self.lines[place.module].values())
        return found - {""}


def reach(root: Path, tests: Sequence[str], modules: Sequence[str], out: Path) -> Reach:
    """Runs the tests, unless ``out`` holds what they executed.

    Tests that fail or skip judge nothing.

    Raises:
      SystemExit: pytest does not get to run them, or coverage is not installed.
    """
    try:
        import coverage  # noqa: F401
    except ImportError:
        raise SystemExit(
            "property_tests.mutants needs the package coverage (extra: dev): pip install coverage"
        ) from None
    path = out / "reach.json"
    held = json.loads(path.read_text()) if path.exists() else {}
    if held.get("of") != digest(root, tests):
        child = running.fork(root, lambda: _measure(root, tests, modules, out), None, 3600.0)
        while not child.finished():
            time.sleep(0.05)
        if child.said != []:
            raise SystemExit(f"the tests do not run without a change: {child.said}")
        held = json.loads(path.read_text())
    lines = {
        module: {int(line): set(names) for line, names in found.items()}
        for module, found in held["lines"].items()
    }
    return Reach(held["seconds"], lines, _words(root, modules))


def _words(root: Path, modules: Sequence[str]) -> dict[str, set[tuple[str, int]]]:
    import ast

    found: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for module in modules:
        for node in ast.walk(ast.parse((root / module).read_text(encoding="utf-8"))):
            name: Optional[str] = (
                node.id
                if isinstance(node, ast.Name)
                else node.attr
                if isinstance(node, ast.Attribute)
                else None
            )
            if name is not None:
                found[name].add((module, node.lineno))
    return found
