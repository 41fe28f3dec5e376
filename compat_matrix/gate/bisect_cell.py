"""The models and programs that the id of a cell names, from the options of a command or from the
folder of a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from compat_matrix.cells import registry as registries
from compat_matrix.cells.plan import PLAN_FILE, Cell, Plan
from compat_matrix.cells.registry import OURS, Registry
from compat_matrix.cells.run_file import RunFile
from compat_matrix.checks import CHECKS
from compat_matrix.plan import planning
from compat_matrix.plan.planning import Axes
from compat_matrix.runtimes.runtime import Runtime
from compat_matrix.verdict import Ledger
from savedmodel_common.printable import like, unknown

_SAME = (
    "case",
    "producer",
    "producer_version",
    "consumer",
    "check",
)  # the version of the consumer is that of the release


class NotAsked(ValueError):
    """No release can be asked this cell; the message says why."""


@dataclass(frozen=True)
class Source:
    """Where the models and programs of a cell come from.

    Attributes:
      registry: of producers and consumers, plug-ins among them.
      fixtures, cases: folders in place of ours, None for ours.
      artifact: an artifact that exists, in place of all of these; None: the plan finds it.
    """

    registry: Registry = OURS
    fixtures: Path | None = None
    cases: Path | None = None
    artifact: Path | None = None

    @classmethod
    def of_run(cls, folder: Path, cell_id: str) -> Source:
        """Return the source of a cell of a run: of `matrix run`, a gate or `check`.

        Raises NotAsked, PlanError.
        """
        plan, about = Plan.read(folder / PLAN_FILE), RunFile.read(folder)
        cell = plan.by_id.get(cell_id)
        if cell is None:
            raise NotAsked(f"{folder} has no cell {cell_id}.{like(cell_id, plan.by_id)}")
        made = {one.artifact_id for one in plan if one.is_production}
        artifact = None if cell.artifact_id in made else cell.artifact_dir(folder)
        return cls(
            registries.read(folder), about.folder("fixtures"), about.folder("cases"), artifact
        )

    def check(self, parts: Mapping[str, str]) -> None:
        """Raise NotAsked for names that are not known here, and for cells that no TensorFlow
        answers.
        """
        names = [("consumer", self.registry.consumers), ("check", CHECKS)]
        if self.needs_writer(parts):
            names.append(("producer", self.registry.producers))
        for what, known in names:
            if wrong := unknown(what, [parts[what]], known):
                raise NotAsked(wrong)
        if self.registry.consumers[parts["consumer"]].version is not None:
            raise NotAsked(
                f"the consumer {parts['consumer']} has a version of its own: no release of"
                " TensorFlow changes it"
            )

    def needs_writer(self, parts: Mapping[str, str]) -> bool:
        """Return whether a TensorFlow of the version in the cell id has to write the model."""
        if self.artifact is not None or parts["producer"] in ("fixture", "given"):
            return False
        producer = self.registry.producers.get(parts["producer"])
        return producer is None or (producer.artifacts is None and producer.version is None)

    def cells(
        self, parts: Mapping[str, str], runtimes: Sequence[Runtime], reader: Runtime
    ) -> tuple[list[Cell], list[Cell]]:
        """Return the cells that ``reader`` answers, none or one, and the productions of its
        artifact. Raises PlanError.
        """
        axes = Axes(tuple(runtimes), checks=(parts["check"],))
        if self.artifact is not None:
            plan = planning.plan_of(self.artifact, axes, self.registry)
        else:
            asked = self.registry.planned((parts["producer"],))
            only = [parts["case"]]
            plan = planning.make_plan(
                Ledger(), self.fixtures, self.cases, axes, asked, only, self.registry
            )
        found = [cell for cell in plan if cell.runtime == reader.name and _is(cell, parts)]
        made = [
            cell
            for cell in plan
            if cell.is_production and found and cell.artifact_id == found[0].artifact_id
        ]
        return found, made


def _is(cell: Cell, parts: Mapping[str, str]) -> bool:
    return all(getattr(cell, name) == parts[name] for name in _SAME)
