"""Peak memory of a load: each in a process of its own, beyond what importing TensorFlow and the
loader needs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks import attempt, environment, models

GOAL = 1.2  # of the checkpoint and saved_model.pb
SMALL = 16 * 2**20  # bytes that any model may take, however small its files are

_LOAD = """
import json, resource, sys

import tensorflow as tf

if sys.argv[1] == "ours":
    import reference_impl.api
    import reference_impl.loading.loader
    import reference_impl.v1
    load = reference_impl.api.load
else:
    load = tf.saved_model.load
tf.Variable(0.0).assign_add(1.0)  # the eager runtime, too, is there before
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
loaded = load(sys.argv[2])
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps((after - before) * (1 if sys.platform == "darwin" else 1024)))
"""


@dataclass(frozen=True)
class Peak:
    """Bytes by which a load made a process grow at its highest.

    Attributes:
      name: of the model.
      size: bytes of its checkpoint and saved_model.pb.
      ours, theirs: bytes.
    """

    name: str
    size: int
    ours: int
    theirs: int

    @property
    def ratio(self) -> float:
        return self.ours / self.size

    @property
    def reached(self) -> bool:
        return self.ratio <= GOAL or self.ours <= SMALL


def run(repeats: int = 1) -> list[Peak]:
    """The peaks of all models, each measured once."""
    rows: list[Peak] = []
    for model in models.MODELS:
        rows += attempt(f"peak memory: {model.title}", peak, model)
    return rows


def peak(model: models.Model) -> Peak:
    """Measure one model.

    Raises RuntimeError: this process uses so much memory itself that nothing was measured.
    """
    directory = models.provide(model)
    size = sum(
        file.stat().st_size
        for file in [directory / "saved_model.pb", *directory.glob("variables/*")]
    )
    found = Peak(model.title, size, *(growth(whose, directory) for whose in ("ours", "theirs")))
    if not found.theirs:
        raise RuntimeError(
            "a load that needs no memory was not measured; nothing may be loaded in this process"
        )
    return found


def growth(whose: str, directory: Path) -> int:
    """By how many bytes loading makes a process grow; `whose` is "ours" or "theirs"."""
    command = [sys.executable, "-c", _LOAD, whose, str(directory)]
    done = subprocess.run(
        command, env=environment(), check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    return int(json.loads(done.stdout))
