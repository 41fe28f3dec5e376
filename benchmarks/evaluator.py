"""Steady calls of signatures: `reference_eval`, which computes with NumPy, against
`tf.saved_model`, in turns.

The signatures are those of the fixtures (`fixtures_v1`, `fixtures_v2`) and of the cases of the
matrix, with their recorded inputs. A signature counts if both sides answer it. In these models the
number of nodes takes the time; in ResNet50, which has rows of its own, arithmetic does.

    python -m benchmarks.evaluator    # lists the slowest signatures
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

from benchmarks import Comparison, Figure, attempt, models
from compat_matrix.cases import all_cases
from compat_matrix.cells.generators import fixtures_root

GOAL = 20.0
RESNET_GOAL = 5.0  # seconds of the processor
CALLS = 1000  # in a row of the table: one call takes a fraction of a millisecond
_LEAST = 0.02  # seconds of the calls that are timed together
_TURNS = 3
_SHOWN = 30
_FATAL = "fault_"  # cases that end or hang the process on purpose

Call = Callable[[], object]


@dataclass(frozen=True)
class Times:
    """The time of one call: on the clock, and of the processor."""

    seconds: float
    cpu: float


@dataclass(frozen=True)
class Steady:
    """The calls of one signature."""

    name: str
    ours: Times
    theirs: Times

    @property
    def ratio(self) -> float:
        return self.ours.cpu / self.theirs.cpu


def run(repeats: int) -> list[Union[Comparison, Figure]]:
    """Rows for all signatures together, for the slowest one, and for ResNet50.

    Every measurement is the median of three turns, so `repeats` is not needed.
    """
    return [*attempt("evaluated signatures", small), *attempt("evaluated ResNet50", resnet)]


def small() -> list[Comparison]:
    """The median of all signatures, and the signature with the largest ratio."""
    found = list(measured())
    worst = max(found, key=lambda one: one.ratio)
    title = f"{CALLS:,} calls of a signature"
    return [
        _row(title, f"median of {len(found)}", found, CALLS),
        _row(title, f"largest ratio of {len(found)}: {worst.name}", [worst], CALLS),
    ]


def resnet() -> list[Union[Comparison, Figure]]:
    """ResNet50 for one image."""
    import numpy as np

    model = next(model for model in models.MODELS if model.name == "resnet_keras3")
    image = np.random.default_rng(0).random(model.shape, np.float32)
    ours, theirs = _signatures(models.provide(model), ["serve"], "serving_default")
    (name,) = ours.inputs
    found = _steady("ResNet50", *_calls(ours, theirs, {name: image}))
    return [
        _row("call of a signature", "ResNet50 at batch 1", [found]),
        Figure("evaluate: ResNet50 at batch 1, one call", found.ours.cpu, "CPU s", RESNET_GOAL),
    ]


def _row(title: str, notes: str, found: Sequence[Steady], calls: int = 1) -> Comparison:
    def each(side: str, unit: str) -> tuple[float, ...]:
        return tuple([calls * getattr(getattr(one, side), unit) for one in found])

    return Comparison(
        title,
        "reference_eval",
        "tf.saved_model",
        each("ours", "seconds"),
        each("theirs", "seconds"),
        GOAL,
        notes,
        each("ours", "cpu"),
        each("theirs", "cpu"),
    )


# Artifacts
# --------------------------------------------------------------------------------------------------


def measured() -> Iterator[Steady]:
    """Measure each signature that both sides answer."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        for name, artifact in _artifacts(Path(folder)):
            for request in _requests(artifact):
                calls = _both(artifact, request)
                if calls is not None:
                    yield _steady(f"{name}, {request['signature']}", *calls)


def _artifacts(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and the folder of each fixture, then of each case, which is made here."""
    import tensorflow as tf

    from compat_matrix.workers import producing

    for path in sorted(fixtures_root("fixtures_v1").glob("*/io/io.json")):
        yield path.parts[-3], path.parents[1]
    for versions in sorted(fixtures_root("fixtures_v2").glob("tf2_*")):
        newest = max(versions.glob("*/io/io.json"), key=_version)
        yield f"{versions.name} {newest.parts[-3]}", newest.parents[1]
    for case in all_cases():
        made = folder / case.name
        try:
            producing.produce(str(case.file), str(made), str(folder), tf.saved_model.save, tf=tf)
        except Exception:  # of any kind: some cases are those that cannot be saved
            continue
        if not case.name.startswith(_FATAL):
            yield case.name, made


def _version(path: Path) -> list[int]:
    """Return ``[2, 21]`` for the files of a fixture of TensorFlow 2.21."""
    return [int(part) for part in path.parts[-3].split(".")]


def _requests(artifact: Path) -> list[dict[str, Any]]:
    """Return the first request of each signature that was answered."""
    spec = json.loads((artifact / "io" / "io.json").read_text(encoding="utf-8"))
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for request in spec["requests"]:
        if request["kind"] == "signature" and request.get("outputs"):
            found.setdefault((request["signature"], *request["tags"]), request)
    return list(found.values())


# Calls
# --------------------------------------------------------------------------------------------------


def _signatures(model: Path, tags: Sequence[str], key: str) -> tuple[Any, Any]:
    """Load a model on both sides. Return our signature and TensorFlow's."""
    import tensorflow as tf

    import reference_eval

    theirs = tf.saved_model.load(str(model), list(tags)).signatures[key]
    return reference_eval.load(model, tags).signatures[key], theirs


def _calls(ours: Any, theirs: Any, given: dict[str, Any]) -> tuple[Call, Call]:
    """Return a call on each side, with the same inputs."""
    import tensorflow as tf

    constants = {name.replace("/", "_"): tf.constant(value) for name, value in given.items()}
    return lambda: ours(**given), lambda: theirs(**constants)


def _both(artifact: Path, request: dict[str, Any]) -> Any:
    """Return a call on each side after its first run, or None if one fails."""
    from savedmodel_common import tensors
    from savedmodel_tools.evaluation import inputs

    try:
        ours, theirs = _signatures(artifact / "model", request["tags"], request["signature"])
        stored = tensors.load(artifact / "io" / request["inputs"])
        given = {
            name: inputs.fitted(name, tensor, *ours.inputs[name]) for name, tensor in stored.items()
        }
        calls = _calls(ours, theirs, given)
        for call in calls:
            call()
    except Exception:  # of any kind, by any op of any model: both must answer, or it does not count
        return None
    return calls


def _steady(name: str, ours: Call, theirs: Call) -> Steady:
    """Measure both sides in turns, after a first run of each that fills caches."""
    our_count, their_count = _count(ours), _count(theirs)
    turns = [(_timed(ours, our_count), _timed(theirs, their_count)) for _ in range(_TURNS)]
    return Steady(
        name, _middle([ours for ours, _ in turns]), _middle([theirs for _, theirs in turns])
    )


def _count(call: Call) -> int:
    """Return how many calls take long enough to be timed together."""
    call()
    return max(1, round(_LEAST / _timed(call, 1).seconds))


def _timed(call: Call, count: int) -> Times:
    start, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        call()
    return Times((time.perf_counter() - start) / count, (time.process_time() - cpu) / count)


def _middle(turns: Sequence[Times]) -> Times:
    return Times(
        statistics.median([turn.seconds for turn in turns]),
        statistics.median([turn.cpu for turn in turns]),
    )


def main() -> int:
    found = sorted(measured(), key=lambda one: one.ratio)
    for one in found[-_SHOWN:]:
        ours, theirs = one.ours.cpu * 1e6, one.theirs.cpu * 1e6
        print(f"{one.ratio:7.2f} ours {ours:9.0f} theirs {theirs:9.0f} CPU us  {one.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
