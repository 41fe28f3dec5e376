"""The tables of the evidence: pages of the documentation site that are built from data and are not
in git.

A table is built from its record: a file or folder of the project with the data. In the repository a
page links the record. On the site such a link leads to the table (`docs.site`). The page
`docs/evidence/index.md` says for each table what is claimed, when it was measured, and how to
repeat the measurement.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks import record as benchmarks_record
from benchmarks import tables as benchmarks_tables
from compat_matrix.cases import all_cases
from compat_matrix.runtimes import registry
from docs import (
    attacks,
    case_pages,
    claims,
    clauses,
    commands,
    evaluator,
    faults,
    grid_page,
    keras_table,
    migrated,
    promises,
    readers,
    rules,
    runtimes,
    third_party,
)
from docs.markdown import table
from savedmodel_common import toml
from savedmodel_common.printable import counted

ROOT = Path(__file__).parents[1]
FOLDER = "docs/evidence"
MAX_NAMES = 6  # of the cases of an expectation


class Table(NamedTuple):
    """A page of the site that is built from a record.

    Attributes:
      record: the file or folder of the data, relative to the root of the project.
      make: returns the page.
    """

    record: str
    make: Callable[[], str]


def fixtures_page() -> str:
    """One row per committed TF 1.x artifact, from its provenance."""
    rows = []
    for path in sorted((ROOT / "fixtures_v1").glob("*/provenance.json")):
        provenance = json.loads(path.read_text(encoding="utf-8"))
        case = provenance["case"]
        rows.append(
            (
                f"[`{case}`](../../fixtures_v1/{case}/generate.py)",
                provenance["title"],
                provenance["producer"]["versions"]["tensorflow"],
                ", ".join(provenance["clauses"]),
                ", ".join(provenance["features"]),
            )
        )
    return f"# The {len(rows)} TF 1.x fixtures\n\n" + table(
        ("fixture", "what it holds", "TensorFlow", "clauses", "features"), rows
    )


def known_failures_page() -> str:
    """The expectations, grouped by kind, with the reason of each."""
    entries = toml.read(ROOT / "compat_matrix/verdict/expectations.toml").get("expect", [])
    out = [
        "# Known failures\n\nEach is run every time; the run fails when one passes or fails"
        " otherwise.\n"
    ]
    for kind in sorted({entry["kind"] for entry in entries}):
        members = [entry for entry in entries if entry["kind"] == kind]
        rows = []
        for entry in members:
            axes = ("case", "producer", "consumer", "check")
            cells = " / ".join(_some(entry.get(axis, "*")) for axis in axes)
            reason = " ".join(entry["reason"].split())
            rows.append((cells, _versions(entry), _words(entry["outcome"]), reason))
        header = ("cells", "versions", "outcome", "why")
        if not any(row[1] for row in rows):
            header, rows = (header[0], *header[2:]), [(row[0], *row[2:]) for row in rows]
        out.append(f"\n## {kind} ({len(members)})\n\n" + table(header, rows))
    return "".join(out)


def _some(value: object) -> str:
    """A name or names; of many the first ones, and how many there are."""
    if not isinstance(value, list) or len(value) <= MAX_NAMES:
        return _words(value)
    return f"{_words(value[: MAX_NAMES - 1])} and {len(value) - MAX_NAMES + 1} more"


def _versions(entry: dict[str, object]) -> str:
    sides = (("written by", "producer_version"), ("read by", "consumer_version"))
    return ", ".join(f"{words} `{entry[name]}`" for words, name in sides if name in entry)


def clauses_page() -> str:
    """The clause table: per section what the RFC says, whom we follow, and the tests and cases that
    prove it.
    """
    listed, tests = clauses.read_table(), list(clauses.all_tests())
    cases = clauses.cited((case.name, case.clauses) for case in all_cases())
    out = [
        (
            f"# The {len(listed)} clauses of the RFC\n\nEach clause of the RFC *SavedModel"
            " Save/Load in 2.x*, in our words, with the behaviour of TensorFlow 2.21 and of this"
            " project.\nIf the RFC and TensorFlow differ, bytes on disk follow TensorFlow, since"
            " many readers exist. Where a user would lose\nsomething without an error, we follow"
            " the RFC. *done*: kept, and the tests prove it. *explained*: kept as far as the\nnote"
            " says.\n\nMade from"
            " [`clauses.toml`](../clauses.toml) and the names and marks of the tests. `python -m"
            " docs.generate --check` fails\nwhen a clause that follows the RFC is done and no test"
            " proves it.\n\n"
        ),
        table(("follow", *clauses.WORDS["status"], "clauses"), clauses.totals(listed)),
    ]
    for title, rows in clauses.sections(listed, tests, cases):
        out += [f"\n## {title}\n", *map(_clause, rows)]
    return "".join(out)


def _clause(row: tuple[str, ...]) -> str:
    """The part of the page about one clause; a table of these would be wider than any screen."""
    name, says, tensorflow, follow, status = (" ".join(text.split()) for text in row[:5])
    tests, cases = row[5:]
    lines = [
        f"\n### {name}\n",
        f"{says}\n",
        f"- TensorFlow 2.21: {tensorflow}",
        f"- We follow: {follow}",
        f"- Status: {status}",
    ]
    found = {title: links for title, links in (("tests", tests), ("cases", cases)) if links}
    if found:  # folded: a clause may have thirty tests
        numbers = {title: links.count("](") for title, links in found.items()}
        counts = " and ".join(counted(number, title[:-1]) for title, number in numbers.items())
        items = [f"- {title.capitalize()}:\n{links}" for title, links in found.items()]
        lines += [f'\n<details markdown="1"><summary>{counts}</summary>\n', *items, "\n</details>"]
    return "\n".join(lines) + "\n"


def attacks_page() -> str:
    """One row per attack: what it is, what each command answers."""
    first = ("inspect", "needs", "verify", "load")
    second = [name for name in attacks.commands() if name not in first]
    one = table(
        ("attack", "what it is", "inspect", "ops needs", "verify", "load"), attacks.rows(*first)
    )
    two = table(("attack", *second), [(row[0], *row[2:]) for row in attacks.rows(*second)])
    three = table(("attack", "what it is", "refused with"), attacks.keras_rows())
    four = table(("id", "what it is about", "cases"), attacks.published_rows())
    return (
        attacks.head() + one + attacks.MORE + two + attacks.PUBLISHED + four + attacks.KERAS + three
    )


def _words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def rules_page() -> str:
    """The rules of `verify`: a table of all, and what their findings stop."""
    return (
        rules.HEAD
        + table(("rule", "name", "severity", "what it finds"), rules.rows())
        + rules.stops_table()
    )


def runtime_costs_page() -> str:
    """Return the versions and costs of each runtime, and the programs that do not work in it."""
    known, measured = registry.read(), runtimes.read_measured()
    return (
        runtimes.COSTS_HEAD
        + table(runtimes.COSTS, runtimes.cost_rows(known, measured))
        + runtimes.LACKS_HEAD
        + table(("programs", "TensorFlow", "runtimes", "why"), runtimes.lack_rows(known))
    )


def _benchmarks_page() -> str:
    return benchmarks_tables.site_page(benchmarks_record.read())


def _keras_page() -> str:
    return keras_table.page(table)


# Page, relative to the root -> what it is built from.
TABLES: dict[str, Table] = {
    f"{FOLDER}/attack_verdicts.md": Table("property_tests/attacks/verdicts.toml", attacks_page),
    f"{FOLDER}/benchmark_tables.md": Table("docs/data/benchmarks.json", _benchmarks_page),
    f"{FOLDER}/cases.md": Table("compat_matrix/cases", case_pages.index),
    f"{FOLDER}/clauses.md": Table("docs/clauses.toml", clauses_page),
    f"{FOLDER}/evaluator.md": Table("docs/data/evaluator.json", evaluator.page),
    f"{FOLDER}/planted_faults.md": Table("docs/data/faults.json", faults.page),
    f"{FOLDER}/tf1_fixtures.md": Table("fixtures_v1", fixtures_page),
    f"{FOLDER}/version_grid.md": Table("docs/data/grid.json", grid_page.page),
    f"{FOLDER}/keras_by_release.md": Table("docs/data/keras.json", _keras_page),
    f"{FOLDER}/known_failures.md": Table(
        "compat_matrix/verdict/expectations.toml", known_failures_page
    ),
    f"{FOLDER}/public_zoo.md": Table("docs/data/migrated.json", migrated.page),
    f"{FOLDER}/op_promises.md": Table("docs/data/promises.json", promises.page),
    f"{FOLDER}/readers.md": Table("docs/data/readers.json", readers.page),
    f"{FOLDER}/third_party.md": Table("docs/data/third_party.json", third_party.page),
    f"{FOLDER}/runtime_costs.md": Table("docs/data/runtimes.json", runtime_costs_page),
    "docs/claims.md": Table("savedmodel_common/command_line/claims.py", claims.page),
    "docs/zoo/rules.md": Table("savedmodel_tools/verify/rules", rules_page),
    "docs/zoo/rules_explained.md": Table(
        "savedmodel_tools/verify/rules/__init__.py", rules.explained_page
    ),
}


def pages() -> dict[str, str]:
    """Return every page of the site that is not in git: its path and its text."""
    return {
        **{path: one.make() for path, one in TABLES.items()},
        **case_pages.pages(),
        **commands.pages(),
        **third_party.pages_of_consumers(),
    }


def page_of_record(path: str) -> str:
    """Return the table that is built from a record, e.g. `docs/evidence/clauses.md` for
    `docs/clauses.toml`; another path as it is.
    """
    return _BY_RECORD.get(path, path)


_BY_RECORD = {**{one.record: path for path, one in TABLES.items()}, **commands.records()}
