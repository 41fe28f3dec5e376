"""Defects of models at rest, one for each rule of `verify`: its rule finds it and no other."""

from __future__ import annotations

import sys
from pathlib import Path

from property_tests.faults.declaring import Fault, Plant
from property_tests.faults.found_by.rule import RuleOfVerify
from savedmodel_tools.verify.rules import all_rules

sys.path.append(str(Path(__file__).parents[2] / "tests" / "support"))
import verify_planted


def defect_of(rule: str) -> Plant:
    """The folder ``model`` has the defect of a rule."""

    def plant(folder: Path) -> None:
        verify_planted.PLANTED[rule](folder / "model")

    return plant


ROWS = tuple(
    Fault(f"rule-{rule.id}", rule.summary, defect_of(rule.id), RuleOfVerify(rule.id))
    for rule in all_rules()
)
