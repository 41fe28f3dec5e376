"""``migrate --to keras``: Keras 2 SavedModels become ``.keras`` files of Keras 3, each proved to predict as before."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compat_matrix.models.migrate import advice
from compat_matrix.models.migrate.migrator import Migrator, errors_noted
from compat_matrix.models.migrate.plan import ModelPlan
from compat_matrix.models.migrate.proof import Asker
from compat_matrix.models.migrate.records import Part, Record, Status, Verdict
from compat_matrix.requests.compare import EXACT, compare_named
from compat_matrix.requests.made_up import made_up
from compat_matrix.requests.policies import ACROSS_LOADERS, Allowed
from compat_matrix.runtimes.worker import ReplyError
from compat_matrix.serving import staging
from compat_matrix.workers import tensors
from compat_matrix.workers.tensors import Tensor

PROGRAM = "keras_worker"
FILE = "model.keras"
DRAWN = 2  # sets of inputs with negative numbers, beside the ones that count
PREDICTIONS = "predictions"
IN_16_BITS = Allowed(1e-2, 4e-3, "layers compute in 16 bits, and fuse and order operations otherwise")
DRAWABLE = ("float16", "float32", "float64")


class KerasMigrator(Migrator):
    """Rebuilds models one after the other with one warm worker, like `Migrator`."""

    def _make(self, record: Record, source: Path, stage: Path, plan: ModelPlan) -> None:
        stage.mkdir(parents=True)
        wanted = next((one for one in plan.parts if one.tags == ("serve",)), plan.parts[0])
        part = Part(list(wanted.tags), output=f"{record.relative}/{FILE}", signatures=wanted.signatures)
        others = [",".join(one.tags) or "no tags" for one in plan.parts if one is not wanted]
        if others:
            part.notes.append(f"MetaGraphs that are not in the .keras file: {'; '.join(others)}")
        record.parts = [part]
        with errors_noted(source, part):
            asker = Asker(self.hosts, stage.with_name("asked"), self.settings.limit, PROGRAM)
            self._rebuild(asker, source, stage / FILE, part)
        record.status, record.reason, record.fix = part.status, part.reason, part.fix

    def _rebuild(self, asker: Asker, source: Path, target: Path, part: Part) -> None:
        custom = list(self.settings.custom_objects)
        asked = {"dir": str(source), "target": str(target), "custom_objects": custom}
        said = asker.ask("rebuild", **asked, trust_lambda=self.settings.trust_lambda)
        good = Status.REBUILT
        if refused := said.get("refused"):
            part.status, part.reason, part.fix = Status.REFUSED, refused["reason"], refused["fix"]
            if not self.settings.wrap:
                return
            said, good = _wrap(asker, source, target, part.tags), Status.WRAPPED
            if refused := said.get("refused"):
                part.reason += f"; it cannot be wrapped either: {refused['reason']}"
                return
        part.notes += said["notes"]
        part.names, part.layers, part.tree = said["names"], said["layers"], said["tree"]
        part.verdicts = [_predictions(asker, said["inputs"], IN_16_BITS if said["half"] else ACROSS_LOADERS)]
        if said["half"]:
            part.notes.append("gradients and a training step were not compared: the model computes in 16 bits")
        elif part.verdicts[0].state in ("equal", "close"):
            part.verdicts += _training(asker, said["inputs"], target)
        asker.ask("forget")
        _judge(part, good)


def _wrap(asker: Asker, source: Path, target: Path, tags: Sequence[str]) -> dict[str, Any]:
    """Ask for a model around a copy of the SavedModel: the file holds all of its folder, and nothing from elsewhere."""
    copy = asker.place("model")
    try:
        staging.place(source, copy)
    except staging.Unstageable as error:
        return {"refused": {"reason": str(error)}}
    return asker.ask("wrap", dir=str(copy), target=str(target), tags=list(tags))


def _predictions(asker: Asker, inputs: Sequence[Mapping[str, Any]], allowed: Allowed) -> Verdict:
    """Compare what the old and the new model answer to the same inputs."""
    problem = "no inputs could be made for it"
    specs = {str(number): item for number, item in enumerate(inputs)}
    for made in made_up(specs):
        try:
            first = _compared(asker, made, allowed)
            states = [first, *(_compared_drawn(asker, made, seed, allowed) for seed in range(DRAWN))]
        except ReplyError as error:
            problem = str(error)
            continue
        worst = max(states, key=lambda state: ("equal", "close", "differs").index(state[0]))
        return Verdict(PREDICTIONS, *worst)
    return Verdict(PREDICTIONS, "absent", problem)


def _compared_drawn(asker: Asker, made: Mapping[str, Tensor], seed: int, allowed: Allowed) -> tuple[str, str]:
    """Compare answers to other numbers in the same shapes: negative ones too, unless they are indices to the model."""
    random = np.random.default_rng(seed)
    try:
        return _compared(asker, _drawn(made, lambda shape: random.standard_normal(shape) * 2), allowed)
    except ReplyError:
        return _compared(asker, _drawn(made, lambda shape: random.integers(0, 3, shape)), allowed)


def _training(asker: Asker, inputs: Sequence[Mapping[str, Any]], target: Path) -> list[Verdict]:
    """Compare the saved file, the weights, the gradients and a training step. The models in the worker are changed."""
    problem = "no inputs could be made for it"
    for made in made_up({str(number): item for number, item in enumerate(inputs)}):
        random = np.random.default_rng(0)
        # Indices to the model where it takes no others.
        for draw in (random.standard_normal, lambda shape, numbers=random: numbers.integers(0, 3, shape)):
            file = asker.place("inputs.npz")
            tensors.save(file, _drawn(made, draw))
            try:
                said = asker.ask("prove", inputs=str(file), target=str(target))
            except ReplyError as error:
                problem = str(error)
                continue
            return [Verdict(what, state, detail) for what, state, detail in said["verdicts"]]
    return [Verdict("training step", "absent", problem)]


def _drawn(made: Mapping[str, Tensor], draw: Callable[[tuple[int, ...]], Any]) -> dict[str, Tensor]:
    return {
        name: tensors.from_numpy(draw(item.array.shape).astype(item.dtype)) if item.dtype in DRAWABLE else item
        for name, item in made.items()
    }


def _compared(asker: Asker, inputs: Mapping[str, Tensor], allowed: Allowed) -> tuple[str, str]:
    """Return ``(state, detail)`` of one call of both. Raises ReplyError, WorkerDied."""
    files = {name: asker.place(f"{name}.npz") for name in ("inputs", "old", "new")}
    tensors.save(files["inputs"], dict(inputs))
    asker.ask("answers", **{name: str(path) for name, path in files.items()})
    old, new = ({key: _wide(item) for key, item in tensors.load(files[name]).items()} for name in ("old", "new"))
    if not old:
        return "differs", "the old model answers nothing"
    if not compare_named(old, new, EXACT):
        return "equal", ""
    found = compare_named(old, new, allowed.bounds)
    if found:
        return "differs", "; ".join(f"output {item.where} {item.message}" for item in itertools.islice(found, 3))
    return "close", allowed.reason


def _wide(item: Tensor) -> Tensor:
    """Return integers as int64: some layers of Keras 3 count in int32 what those of Keras 2 count in int64."""
    return Tensor("int64", item.array.astype(np.int64)) if item.dtype == "int32" else item


def _judge(part: Part, good: Status) -> None:
    """Set the status of a new model: it is `good`, and in the output, if all that was compared is as before.

    The reason why a wrapped model was not rebuilt stays.
    """
    rebuilding = f"; not rebuilt: {part.reason}" if part.reason else ""
    differing = [item for item in part.verdicts if item.state == "differs"]
    absent = [item for item in part.verdicts if item.state == "absent"]
    if differing:
        part.status = Status.DIFFERS
        part.reason = "; ".join(f"{item.what}: {item.detail}" for item in differing) + rebuilding
    elif absent or not part.verdicts:
        part.status = Status.UNPROVED
        problem = "; ".join(f"{item.what}: {item.detail}" for item in absent) or "nothing was compared"
        part.reason, part.fix = problem + rebuilding, advice.fix_of(problem, None) or part.fix
    else:
        part.status = good
