"""The clause table: `clauses.toml` joined with the tests that prove a clause and the matrix cases
that cite it.

A test proves a clause by its name (`test_FN_07_...`, more of them as `test_FN_05_and_PY_09_...`) or
by `@pytest.mark.clause("FN-07", "FN-08")`. Tests are found by reading their sources: nothing is
imported.
"""

from __future__ import annotations

import ast
import functools
import itertools
import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from savedmodel_common import toml

ROOT = Path(__file__).parent.parent
TABLE = Path(__file__).parent / "clauses.toml"
ID = re.compile(r"[A-Z][A-Z0-9]*-\d\d\Z")
NAMED = re.compile(r"test_([A-Z][A-Z0-9]*)_(\d\d)(?=_|\Z)")
ALSO = re.compile(r"_and_(?:([A-Z][A-Z0-9]*)_)?(\d\d)(?=_|\Z)")
WORDS = {
    "tensorflow": ("same", "differs", "not implemented", "not run"),
    "follow": ("RFC", "TF", "both"),
    "status": ("done", "explained"),
}
# How many clauses each family of the RFC has: an entry that gets lost is noticed.
FAMILIES = {
    "GOAL": 14, "NG": 4, "API": 5, "PRIM": 10, "FN": 17, "METH": 4, "PY": 10, "SIG": 17, "REX": 4,
    "IMP": 6, "ATTR": 10, "COMPAT": 6, "V1": 18, "RES": 15, "DEV": 5, "DIST": 4, "REV": 6, "OPT": 7,
    "INIT": 10, "RP": 10, "FMT": 14, "DR": 9,
}  # fmt: skip


class Clause(NamedTuple):
    """One statement of the RFC: what shipped TensorFlow does about it, whom we follow, and how far
    we are.
    """

    id: str
    section: str
    rfc: str
    says: str
    tensorflow: str
    observed: str
    follow: str
    why: str
    status: str
    note: str


class Test(NamedTuple):
    """A test function and the clauses that it proves."""

    file: Path
    name: str
    clauses: tuple[str, ...]


def read_table(path: Path = TABLE) -> list[Clause]:
    """The entries of the table, in its order.

    Raises ValueError for an entry without a field or with an unknown one.
    """
    out = []
    for entry in toml.read(path).get("clause", []):
        fields = {"why": "", "note": "", **entry}
        if set(fields) != set(Clause._fields) or not all(
            isinstance(value, str) for value in fields.values()
        ):
            raise ValueError(
                f"{path.name}: {entry.get('id')!r} must have the texts {', '.join(Clause._fields)};"
                f" it has {', '.join(entry)}"
            )
        out.append(Clause(**fields))
    return out


def clauses_of_name(name: str) -> tuple[str, ...]:
    """`test_FN_05_and_06_and_PY_09_words` -> FN-05, FN-06, PY-09."""
    match, family = NAMED.match(name), ""
    out = []
    while match:
        family = match[1] or family
        out.append(f"{family}-{match[2]}")
        match = ALSO.match(name, match.end())
    return tuple(out)


def find_tests(files: Iterable[Path]) -> list[Test]:
    """The tests of the files that carry clauses."""
    out = []
    for file in files:
        for node in _statements(ast.parse(file.read_text(encoding="utf-8"), str(file))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith(
                "test_"
            ):
                clauses = dict.fromkeys([*clauses_of_name(node.name), *_marked(node)])
                if clauses:
                    out.append(Test(file, node.name, tuple(clauses)))
    return out


@functools.cache
def all_tests() -> tuple[Test, ...]:
    """The tests of the project that carry clauses."""
    return tuple(find_tests(test_files()))


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """All statements, outer ones first; expressions, which are most of a file, hold no test."""
    pending: deque[ast.AST] = deque([tree])
    while pending:
        node = pending.popleft()
        yield node
        for name in ("body", "handlers", "orelse", "finalbody"):
            pending.extend(getattr(node, name, ()))


def _marked(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.clause":
            for argument in decorator.args:
                yield (
                    argument.value
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
                    else ast.unparse(argument)
                )


def test_files(root: Path = ROOT) -> list[Path]:
    return sorted([*root.glob("tests/**/test_*.py"), *root.glob("property_tests/**/*.py")])


def faults(table: list[Clause], tests: list[Test]) -> list[str]:
    """What is wrong with the table, one line each; empty when it may be believed."""
    counts = Counter(clause.id for clause in table)
    out = [f"{name} is listed {count} times" for name, count in counts.items() if count > 1]
    known = {clause.id for clause in table}
    wanted: set[str] = set()
    for family, count in FAMILIES.items():
        wanted.update(f"{family}-{number:02}" for number in range(1, count + 1))
    out += [f"{name} is not listed" for name in sorted(wanted - known)]
    out += [f"{name} is not a clause of the RFC" for name in sorted(known - wanted)]
    for clause in table:
        out += _faults_of_clause(clause)
    return out + _faults_of_tests(table, tests)


def _faults_of_clause(clause: Clause) -> list[str]:
    out = [
        f"{clause.id}: {field} is {getattr(clause, field)!r}, not one of {', '.join(words)}"
        for field, words in WORDS.items()
        if getattr(clause, field) not in words
    ]
    out += [
        f"{clause.id}: {field} is empty"
        for field in ("section", "rfc", "says", "observed")
        if not getattr(clause, field)
    ]
    if clause.status == "explained" and not clause.note:
        out.append(f"{clause.id} is explained without a note")
    return out


def _faults_of_tests(table: list[Clause], tests: list[Test]) -> list[str]:
    """Return the clauses that no test proves, and the unknown clauses that tests name."""
    known = {clause.id for clause in table}
    proved = set(itertools.chain.from_iterable(test.clauses for test in tests))
    out = [
        f"{clause.id} is done and no test proves it: name one"
        f" test_{clause.id.replace('-', '_')}_..."
        for clause in table
        if clause.status == "done" and clause.follow != "TF" and clause.id not in proved
    ]
    out += [
        f"{clause.id} is explained and no test shows what is kept"
        for clause in table
        if clause.status == "explained" and clause.id not in proved
    ]
    for test in tests:
        place = f"{test.file.name}::{test.name}"
        unknown = [name for name in test.clauses if name not in known]
        out += [f"{place} names the unknown clause {name}" for name in unknown]
    return out


def cited(cases: Iterable[tuple[str, tuple[str, ...]]], root: Path = ROOT) -> dict[str, list[str]]:
    """Clause -> links to the cases and the TF 1.x fixtures that cite it."""
    out: dict[str, list[str]] = {}
    for name, clauses in cases:
        for clause in clauses:
            out.setdefault(clause, []).append(f"[`{name}`](../../compat_matrix/cases/{name}.py)")
    for path in sorted((root / "fixtures_v1").glob("*/provenance.json")):
        provenance = json.loads(path.read_text(encoding="utf-8"))
        name = provenance["case"]
        for clause in provenance["clauses"]:
            out.setdefault(clause, []).append(f"[`{name}`](../../fixtures_v1/{name}/generate.py)")
    return out


def sections(
    table: list[Clause], tests: list[Test], cases: dict[str, list[str]]
) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """Each section's title with the rows of its table: clause, RFC, TensorFlow, whom we follow,
    status, tests, cases.
    """
    proofs: dict[str, list[str]] = {}
    for test in tests:
        link = f"[`{test.file.name}::{test.name}`](../../{test.file.relative_to(ROOT).as_posix()})"
        for name in test.clauses:
            proofs.setdefault(name, []).append(link)
    for section in dict.fromkeys(clause.section for clause in table):
        rows = [
            _row(clause, proofs.get(clause.id, []), cases.get(clause.id, []))
            for clause in table
            if clause.section == section
        ]
        yield section, rows


def _row(clause: Clause, proofs: list[str], cases: list[str]) -> tuple[str, ...]:
    return (
        clause.id,
        f"{clause.says} ({clause.rfc})",
        f"{clause.tensorflow}: {clause.observed}",
        f"{clause.follow}: {clause.why}" if clause.why else clause.follow,
        f"{clause.status}: {clause.note}" if clause.note else clause.status,
        "\n".join(f"    - {link}" for link in proofs),
        "\n".join(f"    - {link}" for link in cases),
    )


def totals(table: list[Clause]) -> list[tuple[str, ...]]:
    """Rows of status by whom we follow, with a row of sums."""
    out = []
    for follow in (*WORDS["follow"], "total"):
        members = [clause.status for clause in table if follow in (clause.follow, "total")]
        out.append(
            (follow, *(str(members.count(status)) for status in WORDS["status"]), str(len(members)))
        )
    return out
