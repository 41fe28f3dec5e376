"""Mutation testing: ``python -m property_tests.mutants --sample 500 --seed 1``.

Changes one thing at a time in the parsers, the canonical form and the ledger, and runs the tests
that execute that line, those of the quickest files first, until one fails. What survives is
equivalent or not tested; what no test executes is said at once. Results are appended to
``tried.jsonl`` of ``--out``, and what is there is not tried again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Optional

from property_tests.mutants import places, running
from property_tests.mutants.places import Place
from property_tests.mutants.reach import Reach, reach

ROOT = Path(__file__).parents[2]
MODULES = (
    *(
        "reference_impl/format/**/*.py",
        "reference_impl/graph/**/*.py",
        "reference_impl/safety/*.py",
        "reference_impl/views/*.py",
    ),
    *(
        "savedmodel_tools/canonical/*.py",
        "compat_matrix/verdict/*.py",
        "savedmodel_common/strict_json.py",
    ),
)
KILLED, SURVIVED, NOT_REACHED = "killed", "survived", "not reached"


class Judge:
    """Tries changes in forks, some at a time."""

    def __init__(self, root: Path, known: Reach, seed: int, budget: float) -> None:
        self.root, self.known, self.seed, self.budget = root, known, seed, budget
        self.kills: dict[str, Counter[str]] = defaultdict(
            Counter
        )  # module -> file of tests -> kills
        self.passes: dict[str, bool] = {}  # test that killed -> whether it passes without a change

    def groups(self, place: Place) -> list[list[str]]:
        """The tests, by file; the files that cost least and killed most first."""
        usable = (
            test
            for test in self.known.tests(place)
            if test in self.known.seconds and self.passes.get(test, True)
        )
        quickest, total = defaultdict(list), 0.0
        for test in sorted(usable, key=lambda test: (self.known.seconds[test], test)):
            total += self.known.seconds[test]
            if quickest and total > self.budget:
                break
            quickest[test.split("::")[0]].append(test)
        cost = {
            file: 0.1 + sum(self.known.seconds[test] for test in tests)
            for file, tests in quickest.items()
        }
        kills = self.kills[place.module]
        return [
            quickest[file]
            for file in sorted(quickest, key=lambda file: cost[file] / (1 + kills[file]))
        ]

    def start(self, place: Optional[Place], groups: list[list[str]]) -> running.Fork:
        cpu = 3 + int(4 * sum(self.known.seconds[test] for group in groups for test in group))

        def work() -> Optional[str]:
            if place is not None:
                source = (self.root / place.module).read_text(encoding="utf-8")
                running.install(self.root, place.module, places.mutant(place, source, self.seed))
            return running.run(self.root, groups)

        return running.fork(self.root, lambda: [work()], cpu, 30.0 + 10 * cpu)

    def sound(self, test: str) -> bool:
        """Whether a test that killed passes in a fork without a change; asked once.

        If not it judges nothing from then on.
        """
        if test in self.known.seconds and test not in self.passes:
            child = self.start(None, [[test]])
            while not child.finished():
                time.sleep(0.01)
            self.passes[test] = child.said == [None]
        return self.passes.get(test, True)

    def judge(
        self, chosen: Sequence[Place], jobs: int
    ) -> Iterator[tuple[Place, str, str, int, float]]:
        """(place, verdict, what killed it, how many tests, seconds of CPU) as they come."""
        waiting = list(reversed(chosen))
        busy: list[tuple[Place, list[list[str]], running.Fork]] = []
        while waiting or busy:
            while waiting and len(busy) < jobs:
                place = waiting.pop()
                groups = self.groups(place)
                if groups:
                    busy.append((place, groups, self.start(place, groups)))
                else:
                    yield place, NOT_REACHED, "", 0, 0.0
            time.sleep(0.01)
            for running_one in list(busy):
                place, groups, child = running_one
                if not child.finished():
                    continue
                busy.remove(running_one)
                number = sum(map(len, groups))
                if child.said == [None]:
                    yield place, SURVIVED, "", number, child.cpu
                    continue
                by = (
                    child.said[0]
                    if child.said
                    else "time"
                    if child.overdue
                    else "CPU time, or it crashed"
                )
                if not self.sound(by):
                    waiting.append(place)
                    continue
                self.kills[place.module][by.split("::")[0]] += 1
                yield place, KILLED, by, number, child.cpu


def table(every: Sequence[Place], tried: dict[tuple[str, str], dict[str, Any]]) -> str:
    """Figures by module, as Markdown."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for place in every:
        counts[place.module]["places"] += 1
        record = tried.get((place.module, place.key))
        if record:
            counts[place.module].update(["tried", record["verdict"]])
    rows = [
        (
            module,
            *(counts[module][name] for name in ("places", "tried", KILLED, SURVIVED, NOT_REACHED)),
        )
        for module in sorted(counts)
    ]
    rows.append(("all", *(sum(row[n] for row in rows) for n in range(1, 6))))
    head = (
        "| module | places | tried | killed | survived | not reached |\n| --- | --- | --- | --- |"
        " --- | --- |\n"
    )
    return head + "".join(f"| {' | '.join(map(str, row))} |\n" for row in rows)


def _read(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """What was tried; the last word counts. A line that a kill cut short is none."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        found[record["module"], record["key"]] = record
    return found


def _options(arguments: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m property_tests.mutants", description=__doc__)
    parser.add_argument("--sample", type=int, help="so many of the places; all without it")
    parser.add_argument(
        "--seed", type=int, default=1, help="the order, and which way numbers change"
    )
    parser.add_argument("--only", default="", help="a part of the modules' names")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--out", type=Path, default=Path("mutants-out"), help="where results are kept"
    )
    parser.add_argument(
        "--budget",
        type=float,
        default=15.0,
        help="seconds of tests for one change, the quickest that reach it",
    )
    parser.add_argument("--retry", action="store_true", help="try again what was not killed")
    parser.add_argument(
        "--table", action="store_true", help="print the figures of what was tried, and try nothing"
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the project")
    parser.add_argument("--modules", nargs="+", default=MODULES, help="patterns below it")
    parser.add_argument(
        "--tests", nargs="+", default=["tests", "property_tests"], help="what pytest is given"
    )
    parser.add_argument(
        "--tensorflow",
        action="store_true",
        help="with the tests that need TensorFlow: slow, name them with --tests",
    )
    return parser.parse_args(arguments)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Print what survives, and figures."""
    options = _options(arguments)
    root, out = options.root.resolve(), options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    modules = sorted(
        path.relative_to(root).as_posix()
        for pattern in options.modules
        for path in root.glob(pattern)
    )
    every = [
        p
        for m in modules
        for p in places.places(m, (root / m).read_text(encoding="utf-8"), options.seed)
    ]
    log = out / "tried.jsonl"
    tried = _read(log)
    if options.table:
        print(table(every, tried), end="")
        return 0
    wanted = [place for place in every if options.only in place.module]
    random.Random(options.seed).shuffle(wanted)
    wanted = wanted[: options.sample]
    done = {
        name for name, record in tried.items() if not options.retry or record["verdict"] == KILLED
    }
    chosen = [place for place in wanted if (place.module, place.key) not in done]
    os.environ.update(
        OPENBLAS_NUM_THREADS="1", SAVEDMODEL_COMPAT_ZOO=os.devnull
    )  # real models are not on every machine
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(out / "pycache")
    running.warm(options.tensorflow)
    judge = Judge(root, reach(root, options.tests, modules, out), options.seed, options.budget)
    for record in tried.values():
        if "::" in record["by"]:
            judge.kills[record["module"]][record["by"].split("::")[0]] += 1
    with log.open("a", encoding="utf-8") as stream:
        for number, (place, verdict, by, tests, cpu) in enumerate(
            judge.judge(chosen, options.jobs), 1
        ):
            record = {
                "module": place.module,
                "key": place.key,
                "line": place.lines[0],
                "message": place.in_message,
            }
            stream.write(
                json.dumps(
                    {**record, "verdict": verdict, "by": by, "tests": tests, "cpu": round(cpu, 2)}
                )
                + "\n"
            )
            stream.flush()
            if verdict != KILLED:
                print(f"{verdict}: {place.module}:{place.lines[0]}: {place.key}", flush=True)
            print(f"{number} of {len(chosen)} ({len(every)} in all)", file=sys.stderr, flush=True)
    print(table(every, _read(log)), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
