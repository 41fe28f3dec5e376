"""Every limit of `reference_impl` is a member of `reference_impl.format.limits`, and every
LimitError names one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import reference_impl
from reference_impl.format import limits
from savedmodel_common.packages import OURS

PACKAGE = Path(reference_impl.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
ROOT = PACKAGE.parent
# The evaluator has limits of its own.
EVERYWHERE = sorted(
    path for name in OURS if name != "reference_eval" for path in (ROOT / name).rglob("*.py")
)
MEMBERS = {name for name, value in vars(limits).items() if isinstance(value, int)}
# A constant with one of these words in its name is a limit.
WORDS = re.compile(
    r"MAX|MOST|LIMIT|STEPS|DEPTH|BUDGET|WAYS|ROUNDS|NESTING|NUMBERS|TEXTS|LARGEST|LONGEST"
)
NAME_OF_LIMIT = re.compile(r"(?!O_)[A-Z][A-Z_]{4,}\Z")  # O_NONBLOCK is of the module os
# Facts of the format, and lengths of what people read.
NO_LIMITS = {
    "graph/node_forms.py: _MOST_BYTES",
    "format/bundle/entry.py: _MAX_BYTES",  # what TensorFlow can count
    "format/bundle/table.py: _SNAPPY_MAX_RATIO",  # of Snappy itself
    "format/values/structure.py: _MAX_INT64",
    "format/wire.py: _MAX_BYTES",  # of a varint
    "format/wire.py: _MAX_FIELD_NUMBER",
    "graph/object_graph.py: _SHOWN_DEPTH",
    "views/functions.py: _LARGEST",
    "views/html.py: MOST_ROWS",
}


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def limit_errors(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls that make a LimitError."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("LimitError"):
            yield node


def numbers(tree: ast.Module) -> Iterator[str]:
    """Yield the names of module constants whose values are numbers: ``_STEPS = 10**6``."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            parts = list(ast.walk(node.value))
            if all(isinstance(part, (ast.Constant, ast.BinOp, ast.operator)) for part in parts):
                constants = [part.value for part in parts if isinstance(part, ast.Constant)]
                if all(isinstance(value, int) for value in constants):
                    yield node.targets[0].id


def wrong_names(tree: ast.Module) -> list[str]:
    """Return what is wrong with the limits that the errors of a module name.

    An error names its limit by a string. Where it is a variable, every string of the module that
    looks like a name of a limit must be one.
    """
    found = []
    for call in limit_errors(tree):
        given = [keyword.value for keyword in call.keywords if keyword.arg == "limit"]
        if not given:
            found.append(f"line {call.lineno}: no limit")
        elif isinstance(given[0], ast.Constant):
            if given[0].value not in MEMBERS:
                found.append(f"line {call.lineno}: {given[0].value}")
        else:
            found += [f"line {text.lineno}: {text.value}" for text in strange_strings(tree)]
    return found


def strange_strings(tree: ast.Module) -> list[ast.Constant]:
    """Return the strings that look like the name of a limit and are not one."""
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return [
        text
        for text in texts
        if isinstance(text.value, str)
        and NAME_OF_LIMIT.match(text.value)
        and text.value not in MEMBERS
    ]


def test_every_limit_error_names_a_member():
    found = {}
    for path in EVERYWHERE:
        wrong = wrong_names(parsed(path))
        if wrong:
            found[path.relative_to(ROOT).as_posix()] = wrong
    assert found == {}


def test_every_limit_is_a_member():
    found = set()
    for path in MODULES:
        if path.name != "limits.py":
            place = path.relative_to(PACKAGE).as_posix()
            found |= {f"{place}: {name}" for name in numbers(parsed(path)) if WORDS.search(name)}
    assert found == NO_LIMITS


def test_every_limit_has_a_reason():
    lines = (PACKAGE / "format" / "limits.py").read_text(encoding="utf-8").splitlines()
    assigned = [number for number, line in enumerate(lines) if re.match(r"[A-Z_]+ = ", line)]
    unexplained = [
        lines[number]
        for number in assigned
        if not lines[number - 1].startswith("#") and number - 1 not in assigned
    ]
    assert unexplained == [] and len(assigned) == len(MEMBERS)


def test_every_limit_is_used():
    sources = "\n".join(path.read_text(encoding="utf-8") for path in EVERYWHERE)
    unused = {name for name in MEMBERS if f"limits.{name}" not in sources}
    assert {name for name in unused if f'"{name}"' not in sources} == set()


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("raise LimitError('r')", ["line 1: no limit"]),
        ("raise errors.LimitError('r', limit='_STEPS')", ["line 1: _STEPS"]),
        ("read('TEXT_BITES')\nLimitError('r', limit=name)", ["line 1: TEXT_BITES"]),
        ("read('TEXT_BYTES')\nLimitError('r', limit=name)", []),
    ],
)
def test_a_wrong_name_is_found(source, wrong):
    assert wrong_names(ast.parse(source)) == wrong


def test_constants_of_numbers_are_found():
    source = "_STEPS = 1_000_000\nA = 1 << 20\nB = 'x'\nC = (1, 2)\nD = f()\nE = 2 * 10**7"
    assert list(numbers(ast.parse(source))) == ["_STEPS", "A", "E"]
