"""The start of a worker and the deletion of its folder: the price of a cell of the matrix beside
its answer.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import Comparison, alternate, environment
from compat_matrix.hosts.host import Host
from compat_matrix.runtimes.runtime import LOCAL, local_runtime
from compat_matrix.runtimes.worker import Worker
from savedmodel_common.deleting import Deleter

CELLS, FILES = 64, 40  # folders that are deleted one after another, and files in each


def run(repeats: int) -> list[Comparison]:
    return [start(repeats), fork(repeats), deletion(repeats)]


def start(repeats: int) -> Comparison:
    """A worker that can be asked, against a Python that has only imported TensorFlow."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:

        def ours() -> None:
            worker = Worker(local_runtime(), "tf2_worker", Path(folder), Path(folder, "log"))
            worker.hello()
            worker.close()

        times = alternate(ours, _import, repeats)
    notes = "tf2_worker, asked for its versions"
    return Comparison(
        "start of a worker", "savedmodel-compat", "import tensorflow", *times, 1.0, notes
    )


def fork(repeats: int) -> Comparison:
    """A further worker of a run, which is a fork of the process that has imported TensorFlow for
    the first one.
    """
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder, Host(Path(folder)) as host:
        names = itertools.count()

        def ours() -> None:
            worker = host.worker(LOCAL, "tf2_worker", f"-{next(names)}")
            worker.hello()
            worker.close()

        ours()
        times = alternate(ours, _import, repeats)
    notes = "tf2_worker, asked for its versions"
    return Comparison(
        "start of a further worker", "savedmodel-compat", "import tensorflow", *times, 0.2, notes
    )


def _import() -> None:
    command = [sys.executable, "-c", "import os, tensorflow; os._exit(0)"]
    subprocess.run(command, env=environment(), check=True, capture_output=True)


def deletion(repeats: int) -> Comparison:
    """The time for which a run waits while the folders of its cells go."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        deleter = Deleter(Path(folder, "deleted"))
        times = [
            (
                _deleted(Path(folder, f"ours{turn}"), deleter.delete),
                _deleted(Path(folder, f"theirs{turn}"), shutil.rmtree),
            )
            for turn in range(repeats)
        ]
        deleter.close()
    what = f"deletion of {CELLS} folders of {FILES} files"
    ours, theirs = zip(*times)
    return Comparison(
        what,
        "savedmodel_common.deleting",
        "shutil.rmtree",
        ours,
        theirs,
        1.0,
        "what the caller waits",
    )


def _deleted(folder: Path, delete: Callable[[Path], object]) -> float:
    """Make the folders of the cells, and return the seconds that ``delete`` takes for them."""
    for cell in range(CELLS):
        place = folder / str(cell)
        place.mkdir(parents=True)
        for file in range(FILES):
            (place / str(file)).write_bytes(b"x")
    before = time.perf_counter()
    for cell in range(CELLS):
        delete(folder / str(cell))
    return time.perf_counter() - before
