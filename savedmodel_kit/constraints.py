"""The constraints of the specification with their roles, levels and artifacts.

They are data, ``constraints.json``, which ``python -m docs.generate`` makes from docs/format/spec.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple, Optional

FILE = Path(__file__).with_name("constraints.json")
# What a program of each level handles (docs/format/spec/00_conformance.md), and the member of a
# meaning that tells it.
LEVELS = {
    "L0": "container",
    "L1": "checkpoint",
    "L2": "objects",
    "L3": "answers",
}


class Constraint(NamedTuple):
    """One rule of the specification.

    Attributes:
      id: such as ``SM-BUNDLE-7``.
      role: ``reader``, ``writer``, ``verifier`` or ``evaluator``.
      level: the level that has to keep it, such as ``L1``; None for a rule of all levels.
      text: the rule.
      page: the page that states it, below docs/format/spec.
      fixtures: the fixtures that show it.
    """

    id: str
    role: str
    level: Optional[str]
    text: str
    page: str
    fixtures: tuple[str, ...]


def read() -> dict[str, Constraint]:
    """Return the constraints by id, in the order of the pages."""
    listed = json.loads(FILE.read_text("utf-8"))
    made = [Constraint(**{**one, "fixtures": tuple(one["fixtures"])}) for one in listed]
    return {one.id: one for one in made}
