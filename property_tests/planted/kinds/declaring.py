"""What the declaration of a planted fault says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from property_tests.planted.kinds.scenes import Scene

Plant = Callable[[Path], None]  # changes a copy of the scene's folder


@dataclass(frozen=True)
class Planted:
    """A fault and the command that finds it.

    Attributes:
      name: a slug.
      what: what is wrong, in words for the page.
      scene: the sound files.
      plant: puts the fault into a copy of them.
      command: what a user runs in that folder, behind ``savedmodel-compat``.
      code: its exit code with the fault. Without the fault it is ``sound``.
      says: a regular expression that its output fits with the fault, and without it does not.
      gate: whether it is planted for every commit, not every night only.
      place: where it is planted: the title of the table it stands in.
    """

    name: str
    what: str
    scene: Scene
    plant: Plant
    command: str
    code: int
    says: str
    gate: bool = False
    sound: int = 0
    place: str = ""
