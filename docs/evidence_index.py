"""The page of the evidence: what is claimed, when it was measured, how to repeat it, and the data.

The figures are read from the records. A date is that of the last measurement. A change of a
record changes its date here.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from benchmarks import NotMeasured, record
from benchmarks.growth import Point
from compat_matrix.cases import all_cases
from compat_matrix.cells.outcomes import Outcome
from docs import attacks, clauses, evaluator, keras_table, migrated, third_party
from docs.markdown import table
from savedmodel_common import toml

DATA = Path(__file__).parent / "data"
ROOT = Path(__file__).parents[1]

HEAD = """# Evidence

Each row is a claim of this project. The figures come from the data in the last column, which the command measures again. In the
repository a link leads to the data; on the [site](../../CONTRIBUTING.md) that `tox -e docs` builds, to a table with a search
field. Machine: two cores, no accelerator, Linux x86_64, TensorFlow 2.21 unless a row says otherwise. Known limits of this evidence
are in the [assurance case](assurance.md).

"""  # noqa: E501

MORE = """
Explained in prose: [thirteen findings in TensorFlow](findings.md),
[hostile input](hostile_input.md), [interruptions](interruptions.md),
[mutation testing](mutation.md), [predictions](predictions.md),
[real model servers](real_servers.md), [property tests](property_findings.md),
[benchmarks](benchmarks.md).
"""


class Row(NamedTuple):
    """A claim: its text, the date of the measurement, the command that repeats it, the link to its
    data.
    """

    claim: str
    measured: str
    repeat: str
    data: str


def page() -> str:
    """Return the page."""
    header = ("claim", "measured", "repeat", "data")
    cells = [(one.claim, one.measured, f"`{one.repeat}`", one.data) for one in rows()]
    return HEAD + table(header, cells) + MORE


def rows() -> list[Row]:
    """Return the claims, those of migration first."""
    return [
        Row(
            zoo_sentence(),
            "2026-11-28",
            "savedmodel-compat migrate ZOO --out OUT",
            "[migrated models](../data/migrated.json)",
        ),
        Row(
            keras_sentence(),
            "2026-11-23",
            "python -m savedmodel_migration.keras_models.table",
            "[Keras layers by release](../data/keras.json)",
        ),
        Row(grid_sentence(), "2026-11-23", "tox -e grid", "[version grid](../data/grid.json)"),
        Row(_cases(), "every commit", "tox -e compat", "[cases](../../compat_matrix/cases)"),
        Row(
            f"{_fixtures()} models that genuine TensorFlow 1.4 to 1.15 wrote are read by each"
            " consumer.",
            "every commit",
            "tox -e compat",
            "[TF 1.x artifacts](../../fixtures_v1)",
        ),
        Row(
            f"{_failures()} kinds of failure are known. Each is run every time, and must fail as"
            " recorded.",
            "every commit",
            "tox -e compat",
            "[known failures](../../compat_matrix/verdict/expectations.toml)",
        ),
        Row(_clauses(), "every commit", "tox -e tests-tf", "[clauses](../clauses.toml)"),
        Row(
            _promises(),
            "2026-11-23",
            "python -m docs.promises_asked --out FOLDER",
            "[op history](../data/promises.json)",
        ),
        Row(
            _third_party(),
            "2026-11-22",
            "tox -e third-party",
            "[other people's programs](../data/third_party.json)",
        ),
        Row(_readers(), "2026-11-28", "tox -e readers", "[readers](../data/readers.json)"),
        Row(
            _evaluator(),
            "2026-11-28",
            "python -m docs.evaluator_measured RUN_FOLDER",
            "[evaluator](../data/evaluator.json)",
        ),
        Row(
            _benchmarks(),
            max(one.measured for one in record.read()),
            "tox -e bench",
            "[benchmarks](../data/benchmarks.json)",
        ),
        Row(
            f"{_count('faults.json')} planted faults are each found by a command, a check or a run;"
            " each case of the matrix has one that turns it red.",
            "2026-11-28",
            "tox -e faults",
            "[planted faults](../data/faults.json)",
        ),
        Row(
            "Each runtime was installed and started; its time and disk space are known.",
            "2026-11-21",
            "python -m docs.runtimes --measure",
            "[runtimes](../data/runtimes.json)",
        ),
        Row(
            f"{attacks.count()} hostile models are tried with {len(attacks.commands())} commands.",
            "every commit",
            "tox -e property",
            "[attacks](../../property_tests/attacks/verdicts.toml)",
        ),
    ]


def zoo_sentence() -> str:
    """Return what became of the public zoo, in one sentence."""
    run = json.loads(migrated.RECORD.read_text(encoding="utf-8"))["runs"]["zoo"]
    good = 0
    for by_status in run["statuses"].values():
        good += sum(by_status.get(status, 0) for status in migrated.GOOD)
    answers = run["proved"]["answers, tf2"]
    compared = answers.get("equal", 0) + answers.get("close", 0) + answers.get("differs", 0)
    return (
        f"{good} of {run['models']} models from public repositories load in TensorFlow 2.21 after"
        f" `migrate`: {answers.get('equal', 0)} of {compared} compared MetaGraphs answer bit for"
        f" bit, {answers.get('close', 0)} within the tolerance, {answers.get('differs', 0)}"
        " otherwise."
    )


def keras_sentence() -> str:
    """Return how many models of Keras 2 are rebuilt in Keras 3, in one sentence."""
    asked, same = keras_table.counts()
    equal = asked[keras_table.MARKS["equal"]]
    return (
        f"{same:,} of {asked.total():,} small models that Keras 2 saved are rebuilt in Keras 3 and"
        f" predict the same, {equal:,} of them bit for bit."
    )


def grid_sentence() -> str:
    """Return how many cells of the version grid pass, in one sentence."""
    facts = json.loads((DATA / "grid.json").read_text(encoding="utf-8"))
    run = facts["run"]
    passed, observed = run["by_outcome"]["PASS"], run["observed"]
    return (
        f"Releases write and read each other's models: {passed:,} of {observed:,} cells pass, and a"
        " known failure explains each other cell."
    )


def _cases() -> str:
    return f"{len(all_cases())} cases of TF 2 are written and read by each consumer."


def _fixtures() -> int:
    return len(list((ROOT / "fixtures_v1").glob("*/provenance.json")))


def _failures() -> int:
    return len(toml.read(ROOT / "compat_matrix/verdict/expectations.toml").get("expect", []))


def _clauses() -> str:
    status = Counter(clause.status for clause in clauses.read_table())
    return (
        f"{status['done']} of {status.total()} clauses of the RFC are kept, each with tests;"
        f" {status['explained']} are kept in part, as their notes say."
    )


def _promises() -> str:
    return f"{_count('promises.json'):,} changes of ops are true in genuine releases."


def _third_party() -> str:
    facts = json.loads(third_party.RECORD.read_text(encoding="utf-8"))
    seen: Counter[str] = Counter()
    for export in facts["exports"].values():
        for asked in export["cells"].values():
            seen.update({outcome: len(checks.split()) for outcome, checks in asked.items()})
    return (
        f"{len(facts['exports'])} exports of {len(facts['exporters'])} exporters, asked of"
        f" {len(facts['consumers'])} consumers: {seen[str(Outcome.PASS)]:,} of {seen.total():,}"
        " cells pass; a reason explains each other cell."
    )


def _readers() -> str:
    facts = json.loads((DATA / "readers.json").read_text(encoding="utf-8"))
    right = [name for name, one in facts.items() if not one["broken"]]
    return (
        f"{len(right)} of {len(facts)} readers in Python and JavaScript keep every constraint of"
        " the specification that they are asked about."
    )


def _benchmarks() -> str:
    goals = [
        row
        for row in record.rows(record.read())
        if not isinstance(row, (NotMeasured, Point)) and getattr(row, "goal", True)
    ]
    reached = sum(getattr(row, "reached", True) for row in goals)
    return (
        f"{reached} of {len(goals)} goals for speed and memory are reached; each other one has"
        " its reason on the page of the [benchmarks](benchmarks.md)."
    )


def _evaluator() -> str:
    facts = json.loads(evaluator.RECORD.read_text(encoding="utf-8"))
    signatures, evaluated = evaluator.counts(facts["artifacts"])
    return f"The NumPy evaluator answers {evaluated} of {signatures} signatures."


def _count(record: str) -> int:
    return len(json.loads((DATA / record).read_text(encoding="utf-8")))
