"""A small `matrix run` whose workers are `programs/faulty_worker.py`, and what must be true of it
afterwards.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2] / "tests" / "support"))
from fake_artifacts import write_artifact
from matrix_world import SIGNATURE, VERSION, World

WORKER = Path(__file__).parent / "programs" / "faulty_worker.py"
PROGRAMS = {"tf2": "tf2_worker", "reference": "reference_worker"}  # consumer -> program
CHECK_OF = {
    "load": "load",
    "signatures": "signatures",
    "call": "values",
}  # the check that asks first
# The limit of a step is long for all but the cases that are to hang.
PATCHES = f"""
from compat_matrix.runtimes import worker
worker.command = lambda runtime, program: [{sys.executable!r}, {os.fspath(WORKER)!r}, program.name]
"""


def on_this_machine() -> bool:
    """Whether the workers of a world can be found: they are looked for in /proc."""
    return sys.platform.startswith("linux")


class FaultyWorld(World):
    """Cases without TensorFlow; ``hanging`` of them with a short limit."""

    def __init__(self, root: Path, cases: Iterable[str], hanging: Iterable[str] = ()) -> None:
        root.mkdir(parents=True)
        super().__init__(root)
        shutil.rmtree(self.fixtures / "old")
        for case in list(self.cases.iterdir()):
            case.unlink()
        for name in cases:
            limit = "TIMEOUT = 2" if name in hanging else ""
            self.case(name, [SIGNATURE], f'CHECKS = ("load", "signatures", "values")\n{limit}')
        with (self.site / "sitecustomize.py").open("a") as stream:
            stream.write(PATCHES)
        self.faults = root / "faults"
        self.faults.mkdir()
        (root / "tmp").mkdir()
        write_artifact(self.faults / "artifact")
        self.schedule([])
        self.pause = 0.0

    def schedule(self, faults: Iterable[tuple[str, str, str, str]]) -> None:
        """``(consumer, case, op, fault)``; a production is of the consumer that has its program."""
        rows = [[PROGRAMS[consumer], *more] for consumer, *more in faults]
        (self.faults / "schedule.json").write_text(json.dumps(rows))

    def environment(self, double: bool = True) -> dict[str, str]:
        own = {
            "FAULTS": str(self.faults),
            "FAULTS_PAUSE": str(self.pause),
            "TMPDIR": str(self.root / "tmp"),
        }
        return {**super().environment(double), **own}

    def command_line(self, *arguments: str) -> list[str]:
        """`matrix run` of the two consumers that have a program of their own; ``arguments``: more
        options.
        """
        ours = (
            "--cases-dir",
            self.cases,
            "--fixtures",
            self.fixtures,
            "--expectations",
            self.ledger,
            "--out",
            self.out,
        )
        words = [
            "run",
            *map(str, ours),
            "--producer",
            "tf2",
            *(word for name in PROGRAMS for word in ("--consumer", name)),
        ]
        if "-n" not in arguments:
            words += ["-n", "1"]
        words += ["--check", "produce", *self.checks(), *arguments]
        # The results are those of the tries that the faults happen to.
        return [
            sys.executable,
            "-m",
            "savedmodel_compat",
            "matrix",
            *words,
            "--",
            "--compat-second-tries",
            "0",
        ]

    def checks(self) -> list[str]:
        return [word for check in CHECK_OF.values() for word in ("--check", check)]

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.root / "log").open("ab") as log:
            return subprocess.Popen(
                self.command_line(*arguments),
                cwd=self.root,
                env=self.environment(),
                stdout=log,
                stderr=log,
            )

    def go(self, *arguments: str) -> int:
        return self.start(*arguments).wait(600)

    def observed(self) -> dict[str, dict[str, Any]]:
        """Cell -> its record, less what every run has of its own."""
        records = {
            cell: record
            for cell, record in self.results().items()
            if record["outcome"] != "NOT_APPLICABLE"
        }
        for record in records.values():
            del record["timings"], record["rss_kib"]
            # The command names the folders of the world.
            record["replay"] = record["replay"].replace(str(self.root), "WORLD")
        return {
            cell: record for cell, record in records.items() if record["message"] != "deselected"
        }

    def observed_so_far(self) -> int:
        """How many results a run has written, also one that is going on."""
        path = self.out / "results.jsonl"
        return path.read_bytes().count(b'"outcome": "PASS"') if path.exists() else 0

    def journal(self) -> list[list[str]]:
        """Lines of the workers: process, program, what."""
        path = self.faults / "journal"
        return (
            [line.split(maxsplit=2) for line in path.read_text().splitlines()]
            if path.exists()
            else []
        )

    def processes(self, of: str = "") -> list[int]:
        """Those of this world that run, by the folder in their environment; ``of``: with this in
        their command line.
        """
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    ours = f"FAULTS={self.faults}".encode() in (
                        entry / "environ"
                    ).read_bytes().split(b"\0")
                    if ours and of.encode() in (entry / "cmdline").read_bytes():
                        found.append(int(entry.name))
                except OSError:
                    continue
        return found

    def left(self) -> list[str]:
        """Processes and temporary files that a run has left."""
        paths = [
            *(self.out / "scratch").glob("*"),
            *self.out.rglob("*.tmp"),
            *(self.root / "tmp").iterdir(),
        ]
        return [str(pid) for pid in self.processes()] + [
            str(path.relative_to(self.root)) for path in paths
        ]

    def settled(self, limit: float = 60.0) -> bool:
        """Wait until no process of this world runs; whether that came."""
        deadline = time.monotonic() + limit
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.02)
        return not self.processes()


def cell_of(consumer: str, case: str, op: str) -> str:
    """The cell that a request belongs to."""
    if op == "produce":
        return f"{case}/tf2@{VERSION}/-/produce"
    return f"{case}/tf2@{VERSION}/{consumer}@{VERSION}/{CHECK_OF[op]}"


def evidence(world: FaultyWorld, record: dict[str, Any]) -> str:
    """All texts of a record's evidence."""
    return "\n".join(
        (world.out / path).read_text()
        for path in record["evidence"].values()
        if path.endswith(".txt")
    )


class Killer:
    """Sends signals to workers of a world at random moments; once at most to one that is starting:
    twice is the end of it.
    """

    SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM)

    def __init__(self, world: FaultyWorld, rng: Any, most: int) -> None:
        self.world, self.rng, self.most = world, rng, most
        self.killed: dict[int, signal.Signals] = {}
        self.in_start = False

    def watch(self, run: subprocess.Popen[bytes]) -> None:
        """Until the run ends."""
        while run.poll() is None:
            time.sleep(self.rng.random() * 0.2)
            pids = [pid for pid in self.world.processes(WORKER.name) if pid not in self.killed]
            if len(self.killed) >= self.most or not pids:
                continue
            pid = self.rng.choice(sorted(pids))
            ready = any(
                line[0] == str(pid) for line in self.world.journal()
            )  # it was asked something
            if not ready and self.in_start:
                continue
            self.in_start |= not ready
            how = self.rng.choice(self.SIGNALS)
            try:
                os.kill(pid, how)
            except ProcessLookupError:
                continue
            self.killed[pid] = how

    def asked(self) -> list[tuple[str, str, str, str]]:
        """(consumer, case, op, signal) of each that was killed in the middle of a request."""
        last = {int(line[0]): line for line in self.world.journal()}
        consumers = {program: consumer for consumer, program in PROGRAMS.items()}
        found = []
        for pid, how in self.killed.items():
            if pid in last:
                _, program, what = last[pid]
                word, *rest = what.split()
                if word == "begin" and rest[0] != "close":
                    found.append((consumers[program], rest[1], rest[0], how.name))
        return found
