"""Predict what a release makes of an artifact, from the files of its model alone: the expectation
of a cell.

Each of our consumers declares its loader (:mod:`savedmodel_tools.compat` lists them). A check
declares what it calls, and whether it saves the model again. A cell needs the model to load, and
each of these parts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

from compat_matrix.cells.consumers import CONSUMERS, Consumer
from compat_matrix.cells.plan import Cell, is_complete
from compat_matrix.cells.results import Result
from compat_matrix.checks.kind import Check
from compat_matrix.checks.table import CHECKS
from compat_matrix.requests.artifact import Artifact, ArtifactError, read_artifact
from compat_matrix.verdict import prediction
from compat_matrix.verdict.prediction import Cause, Prediction, Says
from reference_impl.errors import SavedModelError
from reference_impl.format.container import layout
from savedmodel_tools import compat
from savedmodel_tools.skew import forms
from savedmodel_tools.skew.history import History, history
from savedmodel_tools.skew.lacks import Lack

SAVES = {
    "tensorflow": compat.SAVE_BY_TENSORFLOW,
    "reference": compat.SAVE,
}  # what is used of a model that a consumer saves
PASSES = Prediction(Says.PASSES)


class Predictor:
    """Predictions for the cells of the run in ``out``, for the versions that its consumers have.

    Each artifact is read once.
    """

    def __init__(self, out: Path, versions: Iterable[str], table: History | None = None) -> None:
        self.out, self.table = out, table or history()
        self.around = {version: self.table.around(version) for version in set(versions)}
        self.releases = sorted(set(itertools.chain.from_iterable(self.around.values())))
        self._artifacts: dict[str, _Foretold | str] = {}

    def of(self, cell: Cell) -> Prediction | None:
        """Return what a cell will show; None for a cell that no TensorFlow loader answers."""
        consumer, check = CONSUMERS.get(cell.consumer), CHECKS.get(cell.check)
        around = self.around.get(cell.consumer_version, ())
        if consumer is None or not consumer.loader or check is None or not around:
            return None
        found = self._artifacts.get(cell.artifact)
        if found is None:
            found = self._artifacts[cell.artifact] = self._read(cell)
        if isinstance(found, str):
            return Prediction(Says.UNKNOWN, why=found)
        each = [found.of(consumer, check, index) for index in around]
        if len(each) == 1 or each[0].says is each[-1].says is not Says.FAILS:
            return each[0]
        return _between(each, [self.table.releases[index].name for index in around])

    def foretell(self, cell: Cell, result: Result) -> None:
        """Keep the prediction of a cell in its result, if it was executed and its artifact
        exists.
        """
        if result.outcome.observable and is_complete(cell.artifact_dir(self.out)):
            foretold = self.of(cell)
            if foretold is not None:
                result.details[prediction.KEY] = foretold.to_json()

    def tell(self, cell: Cell, result: Result) -> None:
        """Keep the prediction of a cell in its result, in words: the result is not judged by it."""
        foretold = (
            self.of(cell)
            if result.outcome.observable and is_complete(cell.artifact_dir(self.out))
            else None
        )
        if foretold is not None:
            result.details[prediction.TOLD] = str(foretold)

    def explain(self, cell: Cell, result: Result) -> None:
        """Keep the prediction of a cell that failed in its result, in words, if it names the cause
        of the failure.
        """
        foretold = self.of(cell)
        if (
            foretold is not None
            and foretold.says is Says.FAILS
            and prediction.holds(foretold, result)
        ):
            result.details[prediction.TOLD] = str(foretold)

    def _read(self, cell: Cell) -> _Foretold | str:
        directory = cell.artifact_dir(self.out)
        try:
            return _Foretold(read_artifact(directory), self.releases, self.table)
        except (ArtifactError, SavedModelError, OSError) as error:
            return f"the model cannot be read ({type(error).__name__})"


def _between(each: Sequence[Prediction], names: Sequence[str]) -> Prediction:
    """Return the prediction for a release that the history lacks, from those for its neighbours."""
    before, after = each
    common = tuple(cause for cause in before.causes if cause in after.causes)
    if before.says is after.says is Says.FAILS and common:
        return Prediction(Says.FAILS, tuple(dict.fromkeys([*before.causes, *after.causes])))
    why = f"the op history does not have the release; {names[0]}: {before}; {names[1]}: {after}"
    return Prediction(Says.UNKNOWN, why=why)


class _Foretold:
    """The predictions of every release for an artifact, reduced to the missing features."""

    def __init__(self, artifact: Artifact, releases: Sequence[int], table: History) -> None:
        self.artifact = artifact
        self.uses: dict[tuple[str, ...], dict[tuple[str, str], compat.Use]] = {}
        for found in compat.of_model(
            layout.read(artifact.model), releases, table, compat.EVERY_LOADER
        ):
            self.uses[found.tags] = {(use.loader, use.part): use for use in found.uses}

    def of(self, consumer: Consumer, check: Check, index: int) -> Prediction:
        lacks: dict[Lack, None] = {}
        lost: dict[str, None] = {}
        calls = []
        asked: dict[tuple[str, ...], list[str]] = {}
        for request in self.artifact.requests:
            part = (
                f"signature {request['signature']}"
                if request["kind"] == "signature"
                else f"function {request['path']}"
            )
            asked.setdefault(tuple(request["tags"]), []).extend(
                [part] if check.calls(request) else []
            )
        for tags in sorted(asked or self.uses):
            uses = self.uses.get(tags, {})
            load = uses.get((consumer.loader, compat.LOAD))
            if load is None or index not in load.verdicts:
                continue
            lacks.update(dict.fromkeys(load.verdicts[index].lacks))
            lost.update(dict.fromkeys((*load.refused, *load.unknown)))
            parts = [
                *asked.get(tags, ()),
                *([SAVES[consumer.saver]] if check.saves and consumer.saver else []),
            ]
            calls += [
                uses[key]
                for part in dict.fromkeys(parts)
                if (key := (consumer.loader, part)) in uses
            ]
        at = "load"
        if not lacks:
            at = "call"
            for use in calls:
                verdict = use.verdicts[index]
                lacks.update(dict.fromkeys(verdict.lacks))
                lacks.update(
                    dict.fromkeys(
                        lack for lack in verdict.lost if lack.value in forms.ANSWERS_DIFFER
                    )
                )
                lost.update(dict.fromkeys((*verdict.risks, *use.refused, *use.unknown)))
        if lacks:
            return Prediction(Says.FAILS, tuple(_cause(lack) for lack in lacks), at=at)
        return Prediction(Says.UNKNOWN, why="; ".join(lost)) if lost else PASSES


def _cause(lack: Lack) -> Cause:
    return Cause(
        forms.KIND if lack.kind == forms.SILENT else lack.kind, lack.op, lack.attr, lack.value
    )
