"""The first call of every signature of real models: ours against `tf.saved_model`, in one process,
in turns.

The first call of any function in a process takes TensorFlow another 0.1 to 0.2 s. It is made before
the clock starts, since `tf.saved_model.load` calls functions itself and pays for it at the load.

The models are those of the directory in SAVEDMODEL_COMPAT_ZOO, or of ``../shared/zoo/models``
beside this checkout; without either, a row says that the benchmark did not run. ``python -m
benchmarks.first_calls`` lists the slowest models.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Union

from benchmarks import Comparison, NotMeasured, Usage

GOAL = 1.0
LOAD_GOAL = 0.5  # load and first calls
_SHOWN = 30


@dataclass(frozen=True)
class FirstCalls:
    """Seconds, and seconds of the processor, for the first calls of one model, and for its load and
    these calls together.
    """

    name: str
    ours: Usage
    theirs: Usage
    ours_loaded: Usage
    theirs_loaded: Usage


def zoo() -> list[Path]:
    """The directories of the models; empty where there are none."""
    folder = Path(
        os.environ.get("SAVEDMODEL_COMPAT_ZOO")
        or Path(__file__).parents[2] / "shared" / "zoo" / "models"
    )
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def run(repeats: int) -> list[Union[Comparison, NotMeasured]]:
    """Two rows for all models together.

    Every load pays for its first calls anew, so `repeats` need not be more than two.
    """
    models = zoo()
    if not models:
        return [
            NotMeasured(
                "first calls of real models", "SAVEDMODEL_COMPAT_ZOO names no directory of them"
            )
        ]
    turns = [list(measured(models)) for _ in range(min(repeats, 2))]
    if not turns[0]:
        reason = f"both load and call none of the {len(models)} folders in SAVEDMODEL_COMPAT_ZOO"
        return [NotMeasured("first calls of real models", reason, failed=True)]
    what = f"first calls of {len(turns[0])} real models"
    return [
        _row(what, turns, "ours", "theirs", GOAL),
        _row(f"load and {what}", turns, "ours_loaded", "theirs_loaded", LOAD_GOAL),
    ]


def _row(
    what: str, turns: list[list[FirstCalls]], ours: str, theirs: str, goal: float
) -> Comparison:
    def total(turn: list[FirstCalls], side: str, unit: str) -> float:
        return sum(getattr(getattr(found, side), unit) for found in turn)

    def totals(unit: str) -> list[tuple[float, ...]]:
        own = tuple([total(turn, ours, unit) for turn in turns])
        shipped = tuple([total(turn, theirs, unit) for turn in turns])
        return [own, shipped]

    wall, cpu = totals("seconds"), totals("cpu")
    return Comparison(
        what, "reference_impl", "tf.saved_model", *wall, goal, "every signature", *cpu
    )


def measured(models: list[Path]) -> Iterator[FirstCalls]:
    """Measure every model that both load, and whose signatures both call; the first one twice,
    since it warms the process up.
    """
    import tensorflow as tf

    import reference_impl

    for number, model in enumerate([models[0], *models]):
        loaders = [
            functools.partial(reference_impl.load, model),
            functools.partial(tf.saved_model.load, str(model)),
        ]
        found = [_first_calls(load) for load in (loaders if number % 2 else loaders[::-1])]
        ours, theirs = found if number % 2 else found[::-1]
        if number and ours is not None and theirs is not None:
            yield FirstCalls(model.name, ours[0], theirs[0], ours[1], theirs[1])


def _first_calls(load: Any) -> Optional[tuple[Usage, Usage]]:
    """Load a model and call each signature once.

    Return the seconds of the calls and of everything, or None if one fails.
    """
    try:
        start, start_cpu = time.perf_counter(), time.process_time()
        loaded = load()
        load_time, load_cpu = time.perf_counter() - start, time.process_time() - start_cpu
        calls = [
            (function, _arguments(function)) for _, function in sorted(loaded.signatures.items())
        ]
        start, start_cpu = time.perf_counter(), time.process_time()
        for function, arguments in calls:
            function(**arguments)
        call_time, call_cpu = time.perf_counter() - start, time.process_time() - start_cpu
    except (
        Exception
    ):  # of any kind, by any op of any model: both must load and call it, or it does not count
        return None
    return Usage(call_time, call_cpu, 0), Usage(load_time + call_time, load_cpu + call_cpu, 0)


def _arguments(function: Any) -> dict[str, Any]:
    import tensorflow as tf

    def value(spec: Any) -> Any:
        shape = [
            1 if size is None else size
            for size in (spec.shape.as_list() if spec.shape.rank is not None else [1])
        ]
        return tf.fill(shape, "") if spec.dtype == tf.string else tf.zeros(shape, spec.dtype)

    return {name: value(spec) for name, spec in function.structured_input_signature[1].items()}


def main() -> None:
    found = sorted(measured(zoo()), key=lambda one: one.theirs.cpu - one.ours.cpu)
    for one in found[:_SHOWN]:
        print(f"{one.name:60} ours {one.ours.cpu:7.3f} theirs {one.theirs.cpu:7.3f} CPU s")
    for name in ("ours", "theirs", "ours_loaded", "theirs_loaded"):
        print(f"all {len(found)}, {name}: {sum(getattr(one, name).cpu for one in found):.2f} CPU s")


if __name__ == "__main__":
    main()
