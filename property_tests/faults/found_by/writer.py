"""Writers on a disk that is full, and writers that are killed: the old files stay, or the new ones
are there.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from property_tests.faults.declaring import Fault, NotHere, Seen
from property_tests.faults.stage import Stage

ROOT = Path(__file__).parents[3]
PROGRAMS = "property_tests.faults.programs"
OWN_MOUNTS = ("unshare", "--map-root-user", "--mount")  # namespaces: nothing of it is seen outside
# What a run may say of a cell on a disk that fills up.
OF_A_FULL_DISK = {"PASS", "ENV_ERROR", "NOT_RUN"}
Attempt = dict[str, Any]


@dataclass(frozen=True)
class WriterOnFullDisk:
    """A writer of `programs/full_disk.py`, with ever more room: a named error and the old files,
    until there is room for the new ones.

    Attributes:
      writer: ``save``, ``tensorflow``, ``report`` or ``update``.
      old, new: what is told of the files before and after; None: whatever the first and the last
        attempt tell.
    """

    writer: str
    old: str | None = None
    new: str | None = None

    def shown(self) -> str:
        return f"`python -m {PROGRAMS}.full_disk DISK {self.writer}`"

    def declaration(self) -> tuple[object, ...]:
        return ("full_disk", self.writer, self.old, self.new)

    def look(self, fault: Fault, stage: Stage) -> Seen:
        tried = _on_a_disk_of_its_own(fault, stage, "full_disk", [self.writer])
        *failed, last = tried
        if not failed:
            return Seen("", "", "the first attempt had room")
        old, new = self.old or failed[0]["told"], self.new or last["told"]
        refused = f"{len(failed)} times ENOSPC"
        for attempt in failed:
            if (attempt["error"], attempt["told"], attempt["left"]) != ("ENOSPC", old, 0):
                return Seen("", "", f"with room for {attempt['room']}: {attempt}")
        if (last["error"], last["told"], last["left"]) != ("", new, 0) or old == new:
            return Seen("", "", f"with room for {last['room']}: {last}")
        return Seen(refused, f"the new files with room for {last['room']}", "")


@dataclass(frozen=True)
class RunOnFullDisk:
    """A `matrix run` on a disk that fills up (`programs/full_run.py`), then resumed with room.

    Attributes:
      rooms: pages that are free, one run after another; the last run has room.
      options: more options of the run.
    """

    rooms: tuple[int, ...]
    options: tuple[str, ...] = ()

    def shown(self) -> str:
        return " ".join(["`matrix run --resume", *self.options]) + "`"

    def declaration(self) -> tuple[object, ...]:
        return ("full_run", self.rooms, self.options)

    def look(self, fault: Fault, stage: Stage) -> Seen:
        words = [*map(str, self.rooms), *self.options]
        *full, resumed = runs = _on_a_disk_of_its_own(fault, stage, "full_run", words)
        codes = [run["code"] for run in runs]
        said = [line for run in full for line in run["said"]]
        errors = [line for line in said if line.startswith("OSError")]
        defects = [
            *[f"it says {line}" for line in said if re.search("INTERNALERROR|Traceback", line)],
            *[f"it leaves {run['left']}" for run in runs if run["left"]],
            *[f"it tells {run['told']}" for run in runs if not set(run["told"]) <= OF_A_FULL_DISK],
        ]
        passed = [run["told"].get("PASS", 0) for run in runs]
        if passed != sorted(passed):
            defects.append(f"results are lost: {passed}")
        if set(codes) - {0, 4} or 4 not in codes or resumed["code"]:
            defects.append(f"the runs end with {codes}")
        if not any(run["code"] == 4 and (run["told"] or len(runs) == 2) for run in full):
            defects.append("no run was stopped in its middle")
        if list(resumed["told"]) != ["PASS"]:
            defects.append(f"the resumed run tells {resumed['told']}")
        file = re.compile(r"OSError: /.*/disk/out/[a-z]+\.[a-z0-9]+: No space left on device")
        defects += [f"it says {line}" for line in errors if not file.fullmatch(line)]
        if len(errors) < codes.count(4):
            defects.append("a run says nothing of the disk")
        line = re.sub(r"/.*/disk/", "DISK/", errors[0]) if errors else ""
        return Seen("4, then 0", line, "; ".join(defects))


@dataclass(frozen=True)
class KilledWriter:
    """A program that forks a writer and kills it at each moment at which it changes the directory.

    It prints a line for each kill: what the export tells, how many files are left beside it.

    Attributes:
      words: the program and its arguments; the folder is its last one.
      told: what an export may tell: the old state, the new one, and what a writer that is not
        killed leaves.
      least: so many kills at least.
      left: how many files may be left, as the program counts them.
      writer: who is killed, for the page.
    """

    words: tuple[str, ...]
    told: tuple[str, ...]
    least: int
    left: frozenset[str] = frozenset({"0", "1"})
    writer: str = "reference_impl.save"

    def shown(self) -> str:
        return f"`{self.writer}`"

    def declaration(self) -> tuple[object, ...]:
        return ("killed", self.words, self.told, self.least)

    def look(self, fault: Fault, stage: Stage) -> Seen:
        folder = _folder(fault, stage)
        folder.mkdir()
        fault.plant(folder)
        done = _run([sys.executable, *self.words, str(folder)])
        lines = done.stdout.splitlines()
        if done.returncode or len(lines) < self.least:
            return Seen(
                "", "", f"{len(lines)} kills, exit {done.returncode}: {done.stderr[-2000:]}"
            )
        states = {line.rpartition(" ")[0] for line in lines}
        left = {line.rpartition(" ")[2] for line in lines}
        defect = "" if states == set(self.told) and left == self.left else f"{states}, left {left}"
        if lines[-1] != f"{self.told[-1]} 0":
            defect = f"at the end: {lines[-1]}"
        return Seen(f"{len(lines)} lines", f"only {', '.join(sorted(states))}", defect)


def _folder(fault: Fault, stage: Stage) -> Path:
    return stage.folder / fault.name


def _on_a_disk_of_its_own(
    fault: Fault, stage: Stage, program: str, words: Sequence[str]
) -> list[Attempt]:
    """Run a program that mounts and fills a small disk. Returns what it prints."""
    folder = _folder(fault, stage)
    (folder / "disk").mkdir(parents=True)
    (folder / "probe").mkdir()
    probe = [*OWN_MOUNTS, "mount", "-t", "tmpfs", "tmpfs", str(folder / "probe")]
    if not sys.platform.startswith("linux") or not shutil.which("unshare"):
        raise NotHere("there are no mount namespaces here: full disks were not tried")
    refused = _run(probe)
    if refused.returncode:
        raise NotHere(f"nobody may mount here: full disks were not tried: {refused.stderr}")
    fault.plant(folder)
    command = [sys.executable, "-m", f"{PROGRAMS}.{program}", str(folder / "disk"), *words]
    done = _run([*OWN_MOUNTS, *command])
    if done.returncode:
        raise RuntimeError(f"{program} ends with {done.returncode}: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
