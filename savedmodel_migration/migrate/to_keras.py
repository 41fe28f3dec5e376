"""``migrate --to keras``: Keras 2 SavedModels become ``.keras`` files of Keras 3, each proved to
predict as before.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compat_matrix.checks import oracle
from compat_matrix.requests.chance import chance_notes, left_to_chance
from compat_matrix.requests.draws import drawn, draws
from compat_matrix.requests.made_up import examples_of, made_up
from compat_matrix.requests.policies import ACROSS_LOADERS, Allowed
from compat_matrix.runtimes.worker import ReplyError
from savedmodel_common import staging, tensors
from savedmodel_common.compare import (
    EXACT,
    Mismatch,
    Tolerance,
    compare_named,
)
from savedmodel_common.gist import gist
from savedmodel_common.tensors import Tensor
from savedmodel_migration import workers
from savedmodel_migration.migrate import advice
from savedmodel_migration.migrate.migrator import Migrator, errors_noted
from savedmodel_migration.migrate.plan import ModelPlan
from savedmodel_migration.migrate.proof import Asker
from savedmodel_migration.migrate.records import (
    Part,
    Record,
    Status,
    Verdict,
)

PROGRAM, FILE_PROGRAM = workers.KERAS, workers.KERAS_FILE
FILE = "model.keras"
# Sets of inputs with negative numbers, beside the ones that count: seeds and factors. With a set
# and its opposite, a ReLU of a linear layer cannot be taken for none: either of them makes a
# negative number of each unit.
DRAWN = ((0, 2.0), (1, 2.0), (0, -2.0))
PREDICTIONS, SAVED_FILE = "predictions", "saved file"
SHOWN = 3
NOT_IMPORTED = (
    "ModuleNotFoundError",
    "ImportError",
)  # of --custom-objects: the user wants a rebuilt model
NO_VALUES = ("MissingValueError",)  # without its checkpoint a model cannot be wrapped either
BY_HAND = (
    "build a model around savedmodel_compat.keras.SavedModelLayer with inputs of the shapes that"
    " you use"
)
IN_16_BITS = Allowed(
    1e-2, 4e-3, "layers compute in 16 bits, and fuse and order operations otherwise"
)
DRAWS = (
    "each call of the old model answers otherwise: it draws random numbers, and nothing can be"
    " compared with them"
)
DRAWS_IT = "each call of the old model answers otherwise there, it draws random numbers"
# calls of a model whose graph draws, for each of the inputs: a class seldom changes with the
# numbers behind it
REPEATED = 5
DRAWABLE = ("float16", "float32", "float64")


class KerasMigrator(Migrator):
    """Rebuilds models one after the other with one warm worker, like `Migrator`."""

    def _make(self, record: Record, source: Path, stage: Path, plan: ModelPlan) -> None:
        stage.mkdir(parents=True)
        wanted = next((one for one in plan.parts if one.tags == ("serve",)), plan.parts[0])
        part = Part(
            list(wanted.tags), output=f"{record.relative}/{FILE}", signatures=wanted.signatures
        )
        others = [",".join(one.tags) or "no tags" for one in plan.parts if one is not wanted]
        if others:
            part.notes.append(f"MetaGraphs that are not in the .keras file: {'; '.join(others)}")
        record.parts = [part]
        with errors_noted(source, part):
            asker = Asker(self.hosts, stage.with_name("asked"), self.settings.limit, PROGRAM)
            self._rebuild(asker, source, stage / FILE, part)
        record.status, record.reason, record.fix = part.status, part.reason, part.fix

    def _rebuild(self, asker: Asker, source: Path, target: Path, part: Part) -> None:
        """Rebuild a model; wrap all of it if that cannot be done, or makes another model of it."""
        said = self._rebuilt(asker, source, target)
        if refused := said.get("refused"):
            part.status, part.reason, part.fix = Status.REFUSED, refused["reason"], refused["fix"]
        else:
            said["repeat"] = _repeated(source, part.tags)
            unlike = self._prove_rebuilt(asker, source, said, target, part)
            if unlike and not self.settings.custom_objects:
                self._again(asker, source, target, part, unlike)
        # With --custom-objects, the code that the user named may be what differs, and the user
        # wants to know.
        unexplained = part.status is Status.DIFFERS and not self.settings.custom_objects
        if (part.status is Status.REFUSED or unexplained) and self.settings.wrap:
            self._wrap(asker, source, target, part)

    def _prove_rebuilt(
        self, asker: Asker, source: Path, said: Mapping[str, Any], target: Path, part: Part
    ) -> list[dict[str, str]]:
        """Prove a rebuilt model.

        Return the layers that compute something else than before, if it answers otherwise.
        """
        part.reason, part.fix = _reason(said["wrapped"])
        unlike: list[dict[str, str]] = []

        def explain(models: _Models) -> None:
            unlike.extend(models.unlike(source, said["inputs"]))

        self._prove(
            asker,
            said,
            target,
            part,
            Status.PARTIAL if said["wrapped"] else Status.REBUILT,
            explain,
        )
        if unlike:
            part.reason = "; ".join([*(_told(item) for item in unlike), part.reason])
        return unlike

    def _again(
        self, asker: Asker, source: Path, target: Path, part: Part, unlike: Sequence[dict[str, str]]
    ) -> None:
        """Rebuild a model again, without the layers of Keras that compute something else than the
        graph does.

        They are made of their graph. One that is still unlike is cut out. The part changes only if
        one of these is proved.
        """
        named: dict[str, dict[str, str]] = {}
        cut: list[str] = []
        while unlike:
            cut += [item["path"] for item in unlike if item["path"] in named]
            named.update({item["path"]: item for item in unlike if item["path"] not in named})
            said = self._rebuilt(asker, source, target, list(named.values()), cut)
            if said.get("refused"):
                return
            said["repeat"] = _repeated(source, part.tags)
            notes = [*part.notes, *map(_told, named.values())]
            again = Part(part.tags, output=part.output, signatures=part.signatures, notes=notes)
            before, unlike = set(cut), self._prove_rebuilt(asker, source, said, target, again)
            if again.status in (Status.REBUILT, Status.PARTIAL):
                part.__dict__.update(again.__dict__)
                return
            unlike = [
                item for item in unlike if item["path"] not in before
            ]  # ends: each path is named and cut once

    def _wrap(self, asker: Asker, source: Path, target: Path, part: Part) -> None:
        """Wrap a model that was refused or differs.

        The reason for that stays; so does the status if it cannot be wrapped.
        """
        said = self._wrapped(asker, source, target, part.tags)
        if refused := said.get("refused"):
            if refused["reason"] != part.reason:
                part.reason += f"; it cannot be wrapped either: {refused['reason']}"
            part.fix = part.fix or (
                BY_HAND if refused["sound"] else advice.fix_of(refused["reason"], None)
            )
            return
        if part.status is Status.DIFFERS:
            part.reason = f"rebuilt, it differs: {part.reason}"
        part.layers = {}
        meta_graph = oracle.layout_of(source).meta_graph(part.tags)
        chance = _chance(meta_graph, said)
        part.notes += chance_notes(said["signature"], chance)
        left_out = [number for number, name in enumerate(said["outputs"]) if name in chance]
        more = {
            "left_out": left_out,
            "examples": examples_of(meta_graph),
            "repeat": _repeated(source, part.tags, said["signature"]),
        }
        self._prove(asker, {**said, **more}, target, part, Status.WRAPPED)

    def _prove(
        self,
        asker: Asker,
        said: Mapping[str, Any],
        target: Path,
        part: Part,
        good: Status,
        explain: Callable[[_Models], None] = lambda models: None,
    ) -> None:
        """Compare both models, and judge the new one; ``explain`` is called if their predictions
        differ.
        """
        part.notes += [note for note in said["notes"] if note not in part.notes]
        part.names, part.layers, part.tree = said["names"], said["layers"], said["tree"]
        models = _Models(
            asker,
            IN_16_BITS if said["half"] else ACROSS_LOADERS,
            set(said.get("left_out", ())),
            said["repeat"],
        )
        predictions, first = models.predictions(said["inputs"], said.get("examples", ()))
        random = sorted(models.left_out - set(said.get("left_out", ())))
        part.notes += [
            f"output {number} is not compared: {DRAWS_IT}" for number in random if first is not None
        ]
        part.verdicts = [predictions]
        if predictions.state in ("equal", "close") and first is not None:
            part.verdicts.append(
                self._saved_file(models, first, target, good is not Status.REBUILT)
            )
            why = "the model computes in 16 bits: a gradient has too few of them for a comparison"
            skipped = [Verdict(what, "none", why) for what in ("gradients", "training step")]
            part.verdicts += skipped if said["half"] else models.training(first.inputs)
        if predictions.state == "differs":
            explain(models)
        asker.ask("forget")
        _judge(part, good)

    def _rebuilt(
        self,
        asker: Asker,
        source: Path,
        target: Path,
        unlike: Sequence[Mapping[str, str]] = (),
        cut: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Ask for a rebuilt model.

        An error that Keras raises on the way is a refusal too: the model may still be wrapped.
        """
        try:
            cuts: dict[str, Any] = (
                {"cuts": str(asker.place("layers"))} if self.settings.wrap else {}
            )
            cuts.update(unlike=[dict(item) for item in unlike], cut=list(cut))
            return asker.ask("rebuild", dir=str(source), target=str(target), **cuts, **self._code())
        except ReplyError as error:
            if not self.settings.wrap or (error.error_class or "").endswith(
                (*advice.SCARCE, *NOT_IMPORTED, *NO_VALUES)
            ):
                raise
            return {
                "refused": {
                    "reason": str(error),
                    "fix": advice.fix_of(str(error), error.error_class),
                }
            }

    def _wrapped(
        self, asker: Asker, source: Path, target: Path, tags: Sequence[str]
    ) -> dict[str, Any]:
        """Ask for a model around a copy of the SavedModel: the file holds all of its folder, and
        nothing from elsewhere.
        """
        copy = asker.place("model")
        try:
            staging.place(source, copy)
        except staging.Unstageable as error:
            return {"refused": {"reason": str(error), "sound": False}}
        said = asker.ask("wrap", dir=str(copy), target=str(target), tags=list(tags), **self._code())
        if refused := said.get("refused"):
            refused["reason"] = refused["reason"].replace(str(copy), str(source))
        return said

    def _code(self) -> dict[str, Any]:
        """Return whose Python code a worker may run, and where it is looked for: as Python does, or
        in this directory.
        """
        custom = list(self.settings.custom_objects)
        places = [
            str(Path(path).resolve())
            for path in os.environ.get("PYTHONPATH", "").split(os.pathsep)
            if path
        ]
        paths = [*places, str(Path.cwd())] if custom else []
        return {
            "custom_objects": custom,
            "paths": paths,
            "trust_lambda": self.settings.trust_lambda,
        }

    def _saved_file(self, models: _Models, first: _Answers, target: Path, wrapped: bool) -> Verdict:
        """Compare the new model with what another process loads of its file: weights by their bits,
        and answers.
        """
        asker = models.asker
        # A process that has imported the layer of wrapped models proves nothing about rebuilt ones.
        reader = Asker(
            self.hosts,
            asker.folder,
            self.settings.limit,
            FILE_PROGRAM,
            " wrapped" if wrapped else "",
        )
        inputs, weights = (str(asker.place(f"{name}.npz")) for name in ("inputs", "weights"))
        tensors.save(inputs, dict(first.inputs))
        paths = asker.ask("weights", weights=weights)["paths"]
        loaded = {name: str(asker.place(f"file.{name}.npz")) for name in ("answers", "weights")}
        try:
            reader.ask(
                "file_answers",
                file=str(target),
                inputs=inputs,
                wrapped=wrapped,
                **self._code(),
                **loaded,
            )
        except ReplyError as error:
            return Verdict(
                SAVED_FILE,
                "differs",
                f"it does not load and answer in another process: {gist(str(error))}",
            )
        differing = compare_named(tensors.load(weights), tensors.load(loaded["weights"]), EXACT)
        if differing:
            said = (
                f"{paths[int(item.where)] if item.where else 'weights'}: {item.message}"
                for item in differing[:SHOWN]
            )
            return Verdict(SAVED_FILE, "differs", "; ".join(said))
        return Verdict(SAVED_FILE, *models.difference(first.new, tensors.load(loaded["answers"])))


def _reason(wrapped: Sequence[Mapping[str, str]]) -> tuple[str, str]:
    """Return why layers of a model were not rebuilt, and what would help."""
    fixes = dict.fromkeys(item["fix"] for item in wrapped if item["fix"])
    return "; ".join(item["reason"] for item in wrapped), "; ".join(fixes)


def _told(unlike: Mapping[str, str]) -> str:
    """Return a layer that computes something else, as a refusal has it."""
    return f"layer {unlike['layer']} ({unlike['path']}): {unlike['reason']}"


def _repeated(source: Path, tags: Sequence[str], signature: str = "") -> int:
    """Return how many more times the old model is asked: its graph, or what a signature needs of
    it, draws without a seed.
    """
    meta_graph = oracle.layout_of(source).meta_graph(tags)
    return REPEATED if (drawn(meta_graph, signature) if signature else draws(meta_graph)) else 0


def _chance(meta_graph: Any, said: Mapping[str, Any]) -> dict[str, str]:
    """Return output -> variable for those outputs of a wrapped signature that do not count, unless
    there are no others.
    """
    if not said["signature"] or meta_graph.HasField(
        "object_graph_def"
    ):  # functions of TF 2 run in order
        return {}
    found = left_to_chance(meta_graph, said["signature"])
    return found if set(said["outputs"]) - found.keys() else {}


@dataclass(frozen=True)
class _Answers:
    """The answers of an old and a new model to the same inputs."""

    inputs: Mapping[str, Tensor]
    old: Mapping[str, Tensor]
    new: Mapping[str, Tensor]


class _NewFails(ReplyError):
    """The new model fails where the old one answers."""


@dataclass(frozen=True)
class _Models:
    """An old and a new model in a worker, and how their answers are compared."""

    asker: Asker
    allowed: Allowed
    left_out: set[
        int
        # outputs that do not count: the old model leaves them to chance, or draws them. More may be
        # found
    ]
    repeat: int = 0  # how many more times the old model is asked, to find outputs that it draws

    def predictions(
        self, inputs: Sequence[Mapping[str, Any]], examples: Sequence[bytes] = ()
    ) -> tuple[Verdict, _Answers | None]:
        """Compare what the models answer to the same inputs.

        Return the verdict and the first answers.

        ``examples``: serialised `tf.Example`s, for inputs of strings. The first ones, since a model
        that draws numbers may draw the same in each process, but others in each call.
        """
        problem, state = "no inputs could be made for it", "absent"
        specs = {str(number): item for number, item in enumerate(inputs)}
        for made in made_up(specs, examples):
            try:
                first = self._asked(made)
                found = self.difference(first.old, first.new)
                if found[0] == "differs":
                    again = self._named(first.old, self._asked(made).old, EXACT)
                    self.left_out.update(int(item.where) for item in again if item.where)
                others = [self._compared_drawn(made, seed, factor) for seed, factor in DRAWN]
                if first.old and first.old.keys() <= set(map(str, self.left_out)):
                    return Verdict(PREDICTIONS, "absent", DRAWS), None
                # Other inputs may have shown that an output is drawn.
                states = [
                    self.difference(first.old, first.new),
                    *(self.difference(*pair) for pair in others),
                ]
            except _NewFails as error:
                problem, state = (
                    f"where the old model answers, the new one does not: {gist(str(error))}",
                    "differs",
                )
                continue
            except ReplyError as error:
                problem = problem if state == "differs" else gist(str(error))
                continue
            worst = max(states, key=lambda found: ("equal", "close", "differs").index(found[0]))
            return Verdict(PREDICTIONS, *worst), first
        return Verdict(PREDICTIONS, state, problem), None

    def _compared_drawn(
        self, made: Mapping[str, Tensor], seed: int, factor: float
    ) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
        """Return both answers to other numbers in the same shapes: negative ones too, unless they
        are indices to the model.
        """
        try:
            answers = self._asked(_normal(made, seed, factor))
        except ReplyError:
            random = np.random.default_rng(seed)
            answers = self._asked(_drawn(made, lambda shape: random.integers(0, 3, shape)))
        return answers.old, answers.new

    def training(self, made: Mapping[str, Tensor]) -> list[Verdict]:
        """Compare the weights, the gradients and a training step.

        The models in the worker are changed.
        """
        problem, random = "", np.random.default_rng(0)
        # Indices to the model where it takes no others.
        for draw in (random.standard_normal, lambda shape: random.integers(0, 3, shape)):
            file = self.asker.place("inputs.npz")
            tensors.save(file, _drawn(made, draw))
            try:
                said = self.asker.ask("prove", inputs=str(file), left_out=sorted(self.left_out))
            except ReplyError as error:
                problem = gist(str(error))
                continue
            return [Verdict(what, state, detail) for what, state, detail in said["verdicts"]]
        return [Verdict("training step", "absent", problem)]

    def unlike(self, source: Path, inputs: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
        """Return the layers of a rebuilt model that compute something else than before: reason,
        layer, path, fix.
        """
        specs = {str(number): item for number, item in enumerate(inputs)}
        for made in made_up(specs):
            for given in (*(_normal(made, seed, factor) for seed, factor in DRAWN), made):
                file = self.asker.place("inputs.npz")
                tensors.save(file, dict(given))
                try:
                    found = self.asker.ask("unlike", dir=str(source), inputs=str(file))["layers"]
                except ReplyError:
                    continue
                if found:
                    return list(found)
        return []

    def _asked(self, inputs: Mapping[str, Tensor]) -> _Answers:
        """Call both models once. Raises _NewFails, another ReplyError, WorkerDied."""
        files = {name: self.asker.place(f"{name}.npz") for name in ("inputs", "old", "new")}
        tensors.save(files["inputs"], dict(inputs))
        said = self.asker.ask(
            "answers", repeat=self.repeat, **{name: str(path) for name, path in files.items()}
        )
        if "failed" in said:
            raise _NewFails("answers", {"status": "error", "message": said["failed"]}, "")
        self.left_out.update(said["random"])
        return _Answers(inputs, tensors.load(files["old"]), tensors.load(files["new"]))

    def difference(self, old: Mapping[str, Tensor], new: Mapping[str, Tensor]) -> tuple[str, str]:
        """Return ``(state, detail)`` of two answers."""
        if not old:
            return "differs", "the old model answers nothing"
        if not self._named(old, new, EXACT):
            return "equal", ""
        found = self._named(old, new, self.allowed.bounds)
        if found:
            return "differs", "; ".join(
                f"output {item.where} {item.message}" for item in itertools.islice(found, SHOWN)
            )
        return "close", self.allowed.reason

    def _named(
        self, old: Mapping[str, Tensor], new: Mapping[str, Tensor], bounds: Tolerance
    ) -> list[Mismatch]:
        """Compare the outputs that count."""
        left_out = set(map(str, self.left_out))

        def counted(answer: Mapping[str, Tensor]) -> dict[str, Tensor]:
            return {key: _wide(item) for key, item in answer.items() if key not in left_out}

        return compare_named(counted(old), counted(new), bounds)


def _drawn(made: Mapping[str, Tensor], draw: Callable[[tuple[int, ...]], Any]) -> dict[str, Tensor]:
    return {
        name: (
            tensors.from_numpy(draw(item.array.shape).astype(item.dtype))
            if item.dtype in DRAWABLE
            else item
        )
        for name, item in made.items()
    }


def _normal(made: Mapping[str, Tensor], seed: int, factor: float) -> dict[str, Tensor]:
    random = np.random.default_rng(seed)
    return _drawn(made, lambda shape: random.standard_normal(shape) * factor)


def _wide(item: Tensor) -> Tensor:
    """Return integers as int64: some layers of Keras 3 count in int32 what those of Keras 2 count
    in int64.
    """
    return Tensor("int64", item.array.astype(np.int64)) if item.dtype == "int32" else item


def _judge(part: Part, good: Status) -> None:
    """Set the status of a new model: it is `good`, and in the output, if all that was compared is
    as before.

    The reason why a wrapped model, or a layer of it, was not rebuilt stays.
    """
    rebuilding = f"; not rebuilt: {part.reason}" if part.reason else ""
    differing = [item for item in part.verdicts if item.state == "differs"]
    absent = [item for item in part.verdicts if item.state == "absent"]
    if differing:
        part.status = Status.DIFFERS
        part.reason = "; ".join(f"{item.what}: {item.detail}" for item in differing) + rebuilding
    elif absent or not part.verdicts:
        part.status = Status.UNPROVED
        problem = (
            "; ".join(f"{item.what}: {item.detail}" for item in absent) or "nothing was compared"
        )
        random = any(item.detail == DRAWS for item in absent)
        problem = f"{advice.RANDOM_ALL}: {problem}" if random else problem
        part.reason, part.fix = problem + rebuilding, advice.fix_of(problem, None) or part.fix
    else:
        part.status = good
