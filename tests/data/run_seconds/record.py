"""Writes ``cells.json.gz``: the executed cells of a whole run and the seconds of each, for
tests/report/test_time_left.py.

    PYTHONPATH=. python tests/data/run_seconds/record.py RUN_FOLDER

``seconds`` has an entry for each artifact, ``[case, producer, version, [consumer/check,
milliseconds, ...]]``, in the order of the plan. ``wall`` are the seconds of the whole run, with
``processes`` processes.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from compat_matrix.cells.run_file import RunFile
from docs.cell_costs import measured

FILE = Path(__file__).with_name("cells.json.gz")


def main(folder: Path) -> None:
    artifacts: dict[str, list] = {}
    for cell, seconds in measured(folder):
        start = [cell.case, cell.producer, cell.producer_version, []]
        entry = artifacts.setdefault(cell.artifact_id, start)
        entry[3] += [f"{cell.consumer}/{cell.check}", round(seconds * 1000)]
    run = RunFile.read(folder)
    data = {"wall": run.seconds, "processes": run.processes, "seconds": list(artifacts.values())}
    FILE.write_bytes(gzip.compress(json.dumps(data, separators=(",", ":")).encode(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
