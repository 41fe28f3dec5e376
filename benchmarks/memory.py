"""Peak memory of a load: each in a process of its own, beyond what importing TensorFlow and the loader needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks import models

GOAL = 1.2  # of the checkpoint and saved_model.pb

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
        return self.ratio <= GOAL


def run() -> list[Peak]:
    """The peaks of all models."""
    found = []
    for model in models.MODELS:
        directory = models.provide(model)
        files = [directory / "saved_model.pb", *directory.glob("variables/*")]
        size = sum(file.stat().st_size for file in files)
        found.append(Peak(model.title, size, *(growth(whose, directory) for whose in ("ours", "theirs"))))
        if not found[-1].theirs:
            raise RuntimeError(
                f"{model.title}: a load that needs no memory was not measured; nothing may be loaded in this process"
            )
    return found


def growth(whose: str, directory: Path) -> int:
    """By how many bytes loading makes a process grow; `whose` is "ours" or "theirs"."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-c", _LOAD, whose, str(directory)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return int(json.loads(done.stdout))
