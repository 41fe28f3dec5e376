"""Ask consumers of one runtime the requests of a model whose answers are recorded.

The plan has one cell per consumer.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compat_matrix.cells.consumers import CONSUMERS
from compat_matrix.cells.plan import Cell
from compat_matrix.cells.results import Result
from compat_matrix.checks import CHECKS
from compat_matrix.engine.loop import run_plan
from compat_matrix.hosts.pool import Hosts
from compat_matrix.plan.planning import Axes, expand, fixture_artifact
from compat_matrix.requests import given
from compat_matrix.requests.artifact import Artifact, read_artifact
from compat_matrix.runtimes.runtime import Runtime
from compat_matrix.verdict import Ledger
from reference_impl.format.container import layout
from savedmodel_common import staging


@dataclass(frozen=True)
class Asked:
    """A cell, its result, and the artifact that it asked about."""

    cell: Cell
    result: Result
    artifact: Artifact

    def failed(self, tags: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return request -> outcome and message, for the requests of a MetaGraph that were not
        answered as recorded.
        """
        failed = self.result.details.get("failed") or {}
        names = [
            str(request["id"])
            for request in self.artifact.requests
            if tuple(request["tags"]) == tuple(tags)
        ]
        return {name: failed[name] for name in names if name in failed}


def ask(
    hosts: Hosts,
    runtime: Runtime,
    consumers: Sequence[str],
    name: str,
    model: Path,
    io: Path,
    document: dict[str, Any],
    folder: Path,
    limit: float,
) -> list[Asked]:
    """Execute the cells.

    A consumer that cannot answer any of the requests loads the model only.

    ``consumers`` that the runtime lacks are left out; ``name`` is that of the case, in cells;
    ``io`` is a folder with the tensors of the requests, ``document`` its ``io.json``; ``folder``,
    of the run, is emptied; ``limit``: seconds for one step. Raises Unstageable: the model cannot be
    copied or linked; ArtifactError: the requests are not valid.
    """
    shutil.rmtree(folder, ignore_errors=True)
    directory = folder / "given" / name
    directory.mkdir(parents=True)
    staging.place(model, directory / "model", follow_links=True)
    given.copied(
        directory, io, document, layout.read(directory / "model"), f"the SavedModel at {model}"
    )
    artifact = read_artifact(directory)
    able = {
        consumer: CONSUMERS[consumer] for consumer in consumers if consumer not in runtime.lacks
    }
    planned = replace(fixture_artifact(directory), timeout=limit)
    plan = expand([planned], able, CHECKS, Axes((runtime,)), Ledger())
    return [
        Asked(plan.by_id[result.cell], result, artifact) for result in run_plan(hosts, folder, plan)
    ]
