"""Whether baseline and candidate are one thing, given twice: such a gate is green whatever the
candidate is.
"""

from __future__ import annotations

from pathlib import Path

from compat_matrix.cells.plan import RESULTS_FILE
from compat_matrix.runtimes.runtime import Runtime


def one_environment(baseline: Runtime, candidate: Runtime) -> bool:
    """Return whether two runtimes run in one environment, however they were named.

    Two virtual environments of one Python have different folders; two names in one folder may be
    links to one program.
    """
    places = [
        (runtime.python.parent.resolve(), runtime.python.resolve())
        for runtime in (baseline, candidate)
    ]
    return places[0] == places[1]


def one_run(baseline: Path, candidate: Path) -> bool:
    """Return whether two folders hold the results of one run: they are one folder, or one is a copy
    of the other.

    Results hold times, so two runs never write the same bytes. Two runs without any result are not
    told apart.
    """
    if baseline.resolve() == candidate.resolve():
        return True
    files = [folder / RESULTS_FILE for folder in (baseline, candidate)]
    if not all(file.is_file() for file in files):
        return False
    texts = [file.read_bytes() for file in files]
    return bool(texts[0]) and texts[0] == texts[1]
