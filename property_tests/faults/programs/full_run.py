"""A whole `matrix run` on a disk that fills up while it runs, then the same run resumed where there
is room; see `full_disk.py`.

``python -m property_tests.faults.full_run FOLDER PAGES... [-OPTION...]``, in a mount namespace of
its own. Prints a line of JSON for each.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3] / "tests" / "support"))

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.plan import RESULTS_FILE
from compat_matrix.cells.results import DESELECTED, read_results
from property_tests.faults.faulty_world import FaultyWorld
from property_tests.faults.programs.full_disk import Disk

CASES = ("case_a", "case_b", "case_c")


def main(folder: Path) -> None:
    world = FaultyWorld(folder.with_name("world"), CASES)
    disk = Disk(folder)
    world.out = folder / "out"
    options = [word for word in sys.argv[2:] if word.startswith("-")]
    for room in (*[int(word) for word in sys.argv[2:] if word not in options], 500):
        disk.leave_pages(room)
        (world.root / "log").unlink(missing_ok=True)
        code = world.go("--resume", *options)
        results = [r for r in read_results(world.out / RESULTS_FILE) if r.message != DESELECTED]
        told = Counter(str(r.outcome) for r in results if r.outcome is not Outcome.NOT_APPLICABLE)
        said = (world.root / "log").read_text().splitlines()
        print(
            json.dumps(
                {"room": room, "code": code, "told": told, "left": world.left(), "said": said}
            ),
            flush=True,
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
