"""Cells and the plan, which lists every question before anything runs.

``planning`` makes the plan, the run reads it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compat_matrix.cells.outcomes import Outcome
from savedmodel_common import strict_json
from savedmodel_common.sole_writer import PLAN_FILE as PLAN_FILE
from savedmodel_common.writing import write_text

SCHEMA = 1
# The files of an output folder from which a run is continued and judged.
LEDGER_FILE, RESULTS_FILE = "expectations.toml", "results.jsonl"  # beside PLAN_FILE
MAKING, ASKING = (
    "making",
    "asking",
)  # the phases of a run over many runtimes: first all artifacts, then all questions
PRODUCE = "produce"  # the check of the cell that makes an artifact; its consumer is "-"
NO_CONSUMER = "-"
BOTH = "+"  # between two consumers: the cell says whether they agree
PAIRS = (("c_api", "cpp"),)  # consumers that use the same loader from two programs
SERVING, STANDIN = (
    "serving",
    "standin",
)  # consumers that are servers: the real one, and our stand-in for it
ABSENT = "absent"  # the version of a runtime without TensorFlow

_SEGMENT = r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"
_CELL_ID = re.compile(
    rf"(?P<case>{_SEGMENT})/(?P<producer>{_SEGMENT})@(?P<producer_version>{_SEGMENT})"
    rf"/(?:-|(?P<consumer>{_SEGMENT})@(?P<consumer_version>{_SEGMENT}))/(?P<check>{_SEGMENT})"
)


class PlanError(ValueError):
    """A plan file, or an artifact or cell id in it, cannot be used; the message names it and the
    reason.
    """


@dataclass(frozen=True)
class Decision:
    """An outcome fixed by the plan (NOT_APPLICABLE, NOT_RUN) and why."""

    outcome: Outcome
    reason: str

    def __post_init__(self) -> None:
        if self.outcome not in (Outcome.NOT_APPLICABLE, Outcome.NOT_RUN) or not self.reason:
            raise ValueError(
                f"a plan decides NOT_APPLICABLE or NOT_RUN, with a reason; not {self.outcome}"
                f" {self.reason!r}"
            )


@dataclass(frozen=True)
class Cell:
    """One question of the matrix.

    ``consumer`` is ``"-"`` and ``consumer_version`` ``""`` for the production of an artifact.

    ``runtime`` is the runtime that answers, ``producer_runtime`` the one that makes the artifact
    (``""``: it is committed). The producer answers a production. ``artifact`` is a path: absolute
    (a fixture), or relative to the output folder (made by the run). ``timeout`` is the limit of one
    step in seconds, None for the worker host's default. ``source`` is a digest of the file that
    describes the artifact (its case, its exporter, or its provenance): if that changes, another
    question is asked.
    """

    case: str
    producer: str
    producer_version: str
    consumer: str
    consumer_version: str
    check: str
    runtime: str
    artifact: str
    producer_runtime: str = ""
    timeout: float | None = None
    decided: Decision | None = None
    source: str = ""

    @functools.cached_property
    def id(self) -> str:
        consumer = NO_CONSUMER if self.is_production else f"{self.consumer}@{self.consumer_version}"
        return f"{self.case}/{self.producer}@{self.producer_version}/{consumer}/{self.check}"

    @property
    def artifact_id(self) -> str:
        """``case/producer@version``, which all cells of one artifact share."""
        return f"{self.case}/{self.producer}@{self.producer_version}"

    @property
    def is_production(self) -> bool:
        return self.check == PRODUCE

    @property
    def is_served(self) -> bool:
        """Whether a model server is asked."""
        return self.consumer in (SERVING, STANDIN)

    @property
    def sides(self) -> tuple[Cell, ...]:
        """The two cells that this one compares; empty if the cell asks a consumer."""
        names = self.consumer.split(BOTH) if BOTH in self.consumer else ()
        return tuple(replace(self, consumer=name) for name in names)

    def artifact_dir(self, out: Path) -> Path:
        """Return the artifact's directory for a run that writes to ``out``."""
        return out / self.artifact  # an absolute path stands for itself

    def to_json(self) -> dict[str, Any]:
        decided = self.decided and {
            "outcome": str(self.decided.outcome),
            "reason": self.decided.reason,
        }
        return {"id": self.id, **vars(self), "decided": decided}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Cell:
        """Raises PlanError when fields are missing or unknown, or disagree with the id."""
        try:
            fields = dict(data)
            cell_id, decided = fields.pop("id"), fields.pop("decided")
            decision = Decision(Outcome(decided["outcome"]), decided["reason"]) if decided else None
            cell = cls(**fields, decided=decision)
            if any(
                not isinstance(value, str) for name, value in fields.items() if name != "timeout"
            ):
                raise ValueError("a name or a path that is not a string")
            if cell.timeout is not None and not (
                type(cell.timeout) in (int, float) and cell.timeout > 0
            ):
                raise ValueError(f"a timeout of {cell.timeout!r}")
            if cell.id != cell_id:
                raise ValueError(f"the fields belong to {cell.id}")
            parse_cell_id(cell_id)
        except (KeyError, TypeError, ValueError) as error:
            raise PlanError(
                f"cell {data.get('id') if isinstance(data, dict) else data!r}: {error}"
            ) from error
        return cell


def parse_cell_id(text: str) -> dict[str, str]:
    """Split a cell id into case, producer, producer_version, consumer, consumer_version, check.

    Raises PlanError.
    """
    match = _CELL_ID.fullmatch(text)
    if not match or (match["consumer"] is None) != (match["check"] == PRODUCE):
        raise PlanError(f"not a cell id (case/producer@version/consumer@version/check): {text!r}")
    parts: dict[str, Any] = match.groupdict()
    return {
        **parts,
        "consumer": parts["consumer"] or NO_CONSUMER,
        "consumer_version": parts["consumer_version"] or "",
    }


@dataclass(frozen=True)
class Plan:
    """All cells, in the order in which they run. Raises PlanError if an id occurs twice."""

    cells: tuple[Cell, ...]
    # cases or checks were left out on purpose, so a missing cell may stand in another plan
    narrowed: bool = False

    def __post_init__(self) -> None:
        occurrences = Counter(cell.id for cell in self.cells)
        twice = [cell_id for cell_id, count in occurrences.items() if count > 1]
        if twice:
            raise PlanError(f"planned twice: {', '.join(sorted(twice)[:5])}")

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells)

    @functools.cached_property
    def plan_id(self) -> str:
        """Return the sha256 over the cells, without the place of the fixtures on this machine: it
        does not change any question."""
        digest = hashlib.sha256()
        for cell in self.cells:
            facts = cell.to_json()
            del facts["artifact"]
            if not facts["source"]:  # of a plan that was written before there were digests
                del facts["source"]
            digest.update(json.dumps(facts, sort_keys=True).encode() + b"\n")
        return digest.hexdigest()

    @functools.cached_property
    def by_id(self) -> dict[str, Cell]:
        return {cell.id: cell for cell in self.cells}

    @functools.cached_property
    def runtimes(self) -> tuple[str, ...]:
        """Return the names of the runtimes that answer, in the order of the cells."""
        return tuple(dict.fromkeys(cell.runtime for cell in self.cells))

    @property
    def in_phases(self) -> bool:
        """Whether many runtimes answer.

        All artifacts are then made before any question is asked.
        """
        return len(self.runtimes) > 1

    @functools.cached_property
    def is_grid(self) -> bool:
        """Whether versions of one consumer or producer are compared.

        The report is then a version grid.
        """
        for side in ("producer", "consumer"):
            made_here = (cell for cell in self.cells if cell.producer_runtime or side == "consumer")
            pairs = {(getattr(cell, side), getattr(cell, f"{side}_version")) for cell in made_here}
            if len(pairs) > len({name for name, _ in pairs}):
                return True
        return False

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "plan_id": self.plan_id,
            "narrowed": self.narrowed,
            "cells": [cell.to_json() for cell in self.cells],
        }

    def write(self, path: Path) -> None:
        """Write ``plan.json``, one cell per line."""
        cells = ",\n".join(json.dumps(cell.to_json()) for cell in self.cells)
        head = json.dumps({"schema": SCHEMA, "plan_id": self.plan_id, "narrowed": self.narrowed})
        write_text(path, f'{{{head[1:-1]}, "cells": [\n{cells}\n]}}\n')

    @classmethod
    def read(cls, path: Path) -> Plan:
        """Read ``plan.json``.

        Raises PlanError for another schema, an unusable cell, a plan_id that does not fit the
        cells.
        """
        try:
            data = strict_json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise PlanError(f"{path}: {error}") from error
        if (
            not isinstance(data, dict)
            or data.get("schema") != SCHEMA
            or not isinstance(data.get("cells"), list)
        ):
            raise PlanError(f"{path}: not a plan of schema {SCHEMA}")
        plan = cls(
            tuple(Cell.from_json(cell) for cell in data["cells"]), bool(data.get("narrowed"))
        )
        if plan.plan_id != data.get("plan_id"):
            raise PlanError(f"{path}: the cells were changed after planning (plan_id does not fit)")
        return plan


def agreements(cells: Sequence[Cell]) -> list[Cell]:
    """Return a cell for each pair of ``cells`` that must agree: both apply, and they differ only in
    their consumer.
    """
    by_id = {cell.id: cell for cell in cells}
    found = []
    for one in cells:
        for first, second in PAIRS:
            both = (
                (one, by_id.get(replace(one, consumer=second).id))
                if one.consumer == first
                else (one, None)
            )
            decided = [cell.decided for cell in both if cell and cell.decided]
            if both[1] is not None and all(
                decision.outcome is not Outcome.NOT_APPLICABLE for decision in decided
            ):
                found.append(
                    replace(
                        one, consumer=first + BOTH + second, decided=decided[0] if decided else None
                    )
                )
    return found


def models_to_serve(cells: Iterable[Cell], out: Path) -> dict[str, list[Path]]:
    """Return server -> its models, in order, for a run that writes to ``out``; a server loads many
    at a time.
    """
    models: dict[str, dict[Path, None]] = {}
    for cell in cells:
        if cell.is_served:
            models.setdefault(cell.runtime, {})[cell.artifact_dir(out) / "model"] = None
    return {runtime: list(paths) for runtime, paths in models.items()}


def is_complete(artifact: Path) -> bool:
    """Return whether a directory is a complete artifact: its provenance is written last."""
    return (artifact / "provenance.json").is_file()
