"""The models of ``gate --quick``: one for each feature of the cases and fixtures, so that an answer
comes in a minute.

Features are the words that cases and fixtures state about themselves. A fault that shows only where
two features meet, or in one dtype of many, needs the whole gate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from compat_matrix.cases import all_cases
from compat_matrix.cells.generators import fixtures_root
from compat_matrix.report.cell_costs import recorded
from compat_matrix.requests.artifact import read_document

# TensorFlow writes; its loader of objects and the C++ loader read, which servers use. Each runs
# what it loads in its own way.
PRODUCERS = ("fixture", "tf2")
CONSUMERS = ("tf2", "c_api")
# `values` loads the models too. `checkpoint` shows what a wrong answer or a wrong description shows
# as well.
CHECKS = ("signatures", "values", "objects")


def models(fixtures: Path | None, cases: Path | None) -> set[str]:
    """Return the names of cases that together have every feature, and of fixtures for the features
    that no case has.

    Cases come first because each side writes them too. The folders replace ours.
    """
    ours = fixtures is None and cases is None
    written = {
        case.name: set(case.features) for case in (all_cases(cases) if ours or cases else ())
    }
    covered = set[str]().union(*written.values())
    committed: dict[str, set[str]] = {}
    if ours or fixtures:
        for file in sorted((fixtures or fixtures_root()).glob("*/provenance.json")):
            committed[file.parent.name] = (
                set(map(str, read_document(file).get("features", ()))) - covered
            )
    costs = recorded().cases
    return chosen(written, costs) | chosen(committed, costs)


def chosen(features: Mapping[str, Iterable[str]], costs: Mapping[str, float]) -> set[str]:
    """Return names that together have all ``features``; at each step the one that adds most for its
    cost (1 if not listed).
    """
    missing = set[str]().union(*features.values())
    picked: set[str] = set()
    while missing:
        best = max(
            sorted(features),
            key=lambda name: len(missing & set(features[name])) / costs.get(name, 1.0),
        )
        picked.add(best)
        missing -= set(features[best])
    return picked
