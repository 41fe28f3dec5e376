"""``savedmodel-compat migrate ZOO --out OUT --jobs 2``: the whole command, on the small models of
`benchmarks.models.zoo`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks import environment, measured

COUNT, JOBS = 1000, 2
GOAL = 14.0  # models a second, on two cores
_PROVED = {
    "answers, reference",
    "answers, tf2",
    "answers, c_api",
    "weights",
    "signatures",
    "next generation",
}


@dataclass(frozen=True)
class Rate:
    """How fast many models were migrated, from the start of the command to its end.

    Attributes:
      count: of models.
      seconds, cpu: on the clock; of the processor, of all processes.
      peak: bytes of the largest process.
    """

    count: int
    seconds: float
    cpu: float
    peak: int

    @property
    def name(self) -> str:
        return f"migrate {self.count:,} small models, --jobs {JOBS}"

    @property
    def rate(self) -> float:
        return self.count / self.seconds

    @property
    def reached(self) -> bool:
        return self.rate >= GOAL


def run(repeats: int = 1) -> list[Rate]:
    """One run, whatever ``repeats`` is: it takes minutes."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        return [measure(Path(folder), COUNT)]


def measure(folder: Path, count: int) -> Rate:
    """Make a zoo of ``count`` models in ``folder`` and migrate it.

    Raises:
      CalledProcessError: the zoo could not be made.
      Refused: the command's exit code is not 0.
      RuntimeError: a model is not there, or something of it is not proved.
    """
    zoo, out = folder / "zoo", folder / "out"
    make = [sys.executable, "-m", "benchmarks.models.zoo", str(zoo), "--count", str(count)]
    subprocess.run(
        make, env=environment(), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    command = [
        sys.executable,
        "-m",
        "savedmodel_compat",
        "migrate",
        str(zoo),
        "--out",
        str(out),
        "--jobs",
        str(JOBS),
    ]
    usage = measured(command, environment())
    check(out, count)
    return Rate(count, usage.seconds, usage.cpu, usage.peak)


def check(out: Path, count: int) -> None:
    """That ``count`` models were migrated, each with every proof. Raises RuntimeError."""
    models = json.loads((out / "report.json").read_text(encoding="utf-8"))["models"]
    good = {model["relative"] for model in models if model["status"] == "migrated"}
    there = {folder.name for folder in (out / "models").iterdir()}
    if len(models) != count or len(good) != count or there != good:
        raise RuntimeError(
            f"of {count} models {len(good)} were migrated, and {len(there)} are in the output"
        )
    for model in models:
        for part in model["parts"]:
            verdicts = {item["what"]: item["state"] for item in part["verdicts"]}
            unproved = [what for what in _PROVED if verdicts.get(what) not in ("equal", "close")]
            unproved = [
                what for what in unproved if what != "weights" or part["names"]
            ]  # there are models without
            if unproved or part["not_asked"]:
                unproved += [f"{key}: {why}" for key, why in part["not_asked"].items()]
                raise RuntimeError(f"{model['name']}: not proved: {', '.join(unproved)}")
