"""How far a reader walks: the functions, modules and rooms that the smallest load, call and save go
through.

A *room* is a folder of `reference_impl`; a module beside the folders is a room of its own. Counted
with `sys.setprofile`, so nothing depends on the machine. A second run of the same walk is counted,
since the first one also imports and fills caches.

    python -m benchmarks.trips
    python -m benchmarks.trips --walk save --edges 20    # the most frequent changes of room
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

PACKAGE = "reference_impl"
HALF_PLUS_TWO = Path("fixtures_v1", "half_plus_two", "model")


@dataclass
class Trip:
    """The functions, modules and rooms that a walk went through."""

    calls: int = 0
    functions: set[CodeType] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    module_changes: int = 0  # calls from one module of the package into another one
    room_changes: int = 0
    depth: int = 0  # the largest number of our functions on the stack
    edges: Counter[tuple[str, str]] = field(default_factory=Counter)  # changes of room

    def row(self, name: str) -> str:
        figures = (
            self.calls,
            len(self.functions),
            len(self.modules),
            self.module_changes,
            self.room_changes,
            self.depth,
        )
        return f"{name:<18}" + "".join(f"{figure:>10}" for figure in figures)


HEAD = f"{'walk':<18}" + "".join(
    f"{word:>10}" for word in ("calls", "functions", "modules", "to module", "to room", "depth")
)


def room(module: str) -> str:
    """Return the room of a module: ``reference_impl.format`` for
    ``reference_impl.format.bundle.table``.
    """
    return ".".join(module.split(".")[:2])


def count(walk: Callable[[], object]) -> Trip:
    """Run a walk and return what it went through."""
    trip = Trip()
    stack: list[str] = []  # the modules of our functions that have not returned

    def seen(frame: FrameType, event: str, _: Any) -> None:
        if event not in ("call", "return"):
            return
        module = frame.f_globals.get("__name__", "")
        if module != PACKAGE and not module.startswith(PACKAGE + "."):
            return
        if event == "return":
            if stack:
                stack.pop()
            return
        trip.calls += 1
        trip.functions.add(frame.f_code)
        trip.modules.add(module)
        if stack and stack[-1] != module:
            trip.module_changes += 1
            if room(stack[-1]) != room(module):
                trip.room_changes += 1
                trip.edges[room(stack[-1]), room(module)] += 1
        stack.append(module)
        trip.depth = max(trip.depth, len(stack))

    sys.setprofile(seen)
    try:
        walk()
    finally:
        sys.setprofile(None)
    return trip


def walks(folder: Path) -> dict[str, Callable[[], object]]:
    """Return the walks by name. The smallest model has two variables and one function."""
    import tensorflow as tf

    import reference_impl

    smallest = tf.Module()
    smallest.weight, smallest.bias = tf.Variable([1.0, 2.0]), tf.Variable(0.5)

    def answer(x: tf.Tensor) -> tf.Tensor:
        return x * smallest.weight + smallest.bias

    smallest.answer = tf.function(answer, input_signature=[tf.TensorSpec([2], tf.float32, "x")])
    path = str(folder / "smallest")
    reference_impl.save(smallest, path)
    loaded = reference_impl.load(path)
    x = tf.constant([3.0, 4.0])
    numbers = iter(range(1 << 30))
    return {
        "load": lambda: reference_impl.load(path),
        "call": lambda: loaded.answer(x),
        "save": lambda: reference_impl.save(smallest, str(folder / f"again-{next(numbers)}")),
        "load, TF 1.x": lambda: reference_impl.load(str(HALF_PLUS_TWO)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--walk", help="count only this walk")
    parser.add_argument(
        "--edges", type=int, default=0, help="print that many of the most frequent changes of room"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trips-") as folder:
        known = walks(Path(folder))
        if options.walk and options.walk not in known:
            parser.error(f"the walks are: {', '.join(known)}")
        print(HEAD)
        for name, walk in known.items():
            if options.walk in (None, name):
                walk()
                trip = count(walk)
                print(trip.row(name))
                for (source, target), times in trip.edges.most_common(options.edges):
                    print(f"{times:>10}  {source} -> {target}")


if __name__ == "__main__":
    main()
