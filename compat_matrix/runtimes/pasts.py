"""Another past of worker processes: where they started and what they did before the first question
of a run.

A result must not depend on the past of the process that gave it. A past varies the environment, the
counters of TensorFlow, the garbage collector and the models of earlier requests; the plan is
shuffled by the same seed (`compat_matrix.plan.shuffled`). Past 0 is the plain one: a new process
for each cell, and nothing else.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CELL, ARTIFACT, RUN = "cell", "artifact", "run"  # how long a process lives
USUAL, OFTEN, NEVER = "usual", "often", "never"  # when garbage is collected
PLAIN = 0  # the seed of the past in which nothing is varied
FRESH = (CELL, RUN, ARTIFACT)  # of the pasts 1, 2, 3, and so on in turn
TIME_ZONES = ("UTC0", "NPT-05:45", "PST8PDT,M3.2.0,M11.1.0")  # no machine needs a database for them
LOCALES = ("C", "POSIX", "C.UTF-8")
MASKS = (0o022, 0o002, 0o077)
FOLDERS = ("tmp", "another tmp", "tmp.1")
# Committed artifacts that any consumer loads within a second.
MODELS = ("half_plus_two", "simple_save", "control_flow_v2", "default_attrs_kept", "hash_table_v2")
MOST_MODELS = {CELL: 1, ARTIFACT: 2, RUN: 5}  # of one process: the shorter it lives, the fewer
FARTHEST_BELOW = 8  # steps between a counter and the number in a file
MOST = 1_000_000  # of a counter: TensorFlow counts a million steps in a tenth of a second
_GRADIENTS, _FUNCTIONS, _LOADS = "gradients", "functions", "loads"
_NUMBERS = {
    _GRADIENTS: re.compile(rb"CustomGradient-(\d{1,7})(?!\d)"),
    _FUNCTIONS: re.compile(rb"__(?:inference|forward|backward)_[\w<>.-]*?_(\d{1,7})(?![\w])"),
    _LOADS: re.compile(rb"_load_?(\d{1,7})(?!\d)"),
}


@dataclass(frozen=True)
class Past:
    """The past of worker processes.

    Attributes:
      seed: the number from which all else was drawn.
      hash_seed: PYTHONHASHSEED, also of the process that imports TensorFlow and forks.
      time_zone, locale: TZ and LC_ALL; empty for those of the user.
      umask: of files that a worker makes; None for that of the user.
      temporary: the folder below the worker's own that is its TMPDIR; empty for the worker's own.
      garbage: when Python looks for cycles.
      fresh: how long a process lives. A counter only grows, so only a new process can stand below a
        number in a file.
      models: committed artifacts that each process loads, and saves if it can, before the first
        question.
      counters: whether counters are advanced to a few below the numbers in a file.
      plain_productions: exports whose bytes depend on the process are made in the plain past, so
        that the re-exports of two pasts start from the same bytes.
    """

    seed: int
    hash_seed: int = 0
    time_zone: str = ""
    locale: str = ""
    umask: int | None = None
    temporary: str = ""
    garbage: str = USUAL
    fresh: str = CELL
    models: tuple[str, ...] = ()
    counters: bool = False
    plain_productions: bool = True

    @classmethod
    def of_seed(cls, seed: int) -> Past:
        """Return the past of a seed, the same on every machine."""
        if seed == PLAIN:
            return cls(PLAIN)
        draw = random.Random(seed)
        fresh = FRESH[(seed - 1) % len(FRESH)]
        return cls(
            seed,
            hash_seed=draw.randrange(1, 1 << 16),
            time_zone=draw.choice(TIME_ZONES),
            locale=draw.choice(LOCALES),
            umask=draw.choice(MASKS),
            temporary=draw.choice(FOLDERS),
            garbage=draw.choice((USUAL, OFTEN, NEVER)),
            fresh=fresh,
            models=tuple(draw.choices(MODELS, k=draw.randint(1, MOST_MODELS[fresh]))),
            counters=True,
            plain_productions=seed % 2 == 1,
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Past:
        """Return the past that :meth:`to_json` wrote. Raises TypeError for other members."""
        given = {name: value for name, value in data.items() if name != "text"}
        return cls(**{**given, "models": tuple(data["models"])})

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "models": list(self.models), "text": str(self)}

    def environment(self) -> dict[str, str]:
        """Return the variables of a worker's environment that this past sets."""
        given = {"TZ": self.time_zone, "LC_ALL": self.locale, "LANG": self.locale}
        return {
            "PYTHONHASHSEED": str(self.hash_seed),
            **{name: value for name, value in given.items() if value},
        }

    def start(self) -> dict[str, Any]:
        """Return the members of the request ``past`` to a process that has just started."""
        return {"umask": self.umask, "garbage": self.garbage, "counter": None}

    def counter_before(self, model: Path) -> int | None:
        """Return where the counter of unique numbers is to stand before a model is loaded; None to
        leave it.
        """
        numbers = numbers_in(model) if self.counters else {}
        if not numbers:
            return None
        draw = random.Random(f"{self.seed} {sorted(numbers.items())}")
        kind = draw.choice(sorted(numbers))
        return max(0, draw.choice(numbers[kind]) - draw.randrange(FARTHEST_BELOW + 1))

    def counter_of(self, case: str) -> int | None:
        """Return where the counter is to stand before a case is built; None to leave it."""
        return random.Random(f"{self.seed} {case}").randrange(10_000) if self.counters else None

    def __str__(self) -> str:
        """Return the name and the parts of the past, for a report."""
        lives = {
            CELL: "a new process for each cell",
            ARTIFACT: "a new process for each artifact",
        }.get(self.fresh, "")
        parts = [f"PYTHONHASHSEED={self.hash_seed}"]
        parts += [f"TZ={self.time_zone}"] if self.time_zone else []
        parts += [f"LC_ALL={self.locale}"] if self.locale else []
        parts += [] if self.umask is None else [f"umask {self.umask:03o}"]
        parts += [f"TMPDIR '{self.temporary}'"] if self.temporary else []
        parts += [f"garbage collected {self.garbage}"] if self.garbage != USUAL else []
        parts += [f"loaded before: {', '.join(self.models)}"] if self.models else []
        parts += ["counters just below the numbers in a file"] if self.counters else []
        parts += [lives] if lives else ["cells share processes"]
        return f"past {self.seed} ({'; '.join(parts)})"


def numbers_in(model: Path) -> dict[str, list[int]]:
    """Return the numbers in the names of a SavedModel, by kind of name.

    They are read from its bytes, whatever its form.
    """
    data = b"\n".join(
        file.read_bytes() for file in sorted(model.glob("saved_model*")) if file.is_file()
    )
    found = {}
    for kind, pattern in _NUMBERS.items():
        numbers = set(map(int, pattern.findall(data)))
        if numbers:
            found[kind] = sorted(number for number in numbers if number <= MOST)
    return found
