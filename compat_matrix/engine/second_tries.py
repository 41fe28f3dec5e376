"""Second tries: a cell with an unexpected result is executed once more, in a fresh process.

The first try is kept on disk before the second begins. If the run is interrupted in between, a
resumed run makes only the second try. Few cells get a second try, so that a run in which everything
fails does not take twice as long.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from compat_matrix.cells.plan import Cell
from compat_matrix.cells.results import Result
from compat_matrix.verdict import second_try
from savedmodel_common import interrupts, strict_json
from savedmodel_common.writing import write_text

MOST_CELLS = 50  # of a session, all its processes together, unless the user gives another number
MOST_SECONDS = 300.0  # of a process
KEPT_FILE = "first_try.json"


class SecondTries:
    """The second tries of one process of a run.

    Args:
      out: the output folder.
      fresh: a context in which cells are executed by new processes, whose logs are kept as
        evidence.
      processes: of the run; each may make its share of the second tries.
      most: cells of the session that are asked again.
    """

    def __init__(
        self,
        out: Path,
        fresh: Callable[[], AbstractContextManager[None]],
        processes: int = 1,
        most: int = MOST_CELLS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.out, self._fresh, self._clock = out, fresh, clock
        self._most, self._cells_left = most, max(1, most // max(1, processes))
        self._seconds_left = MOST_SECONDS

    def interrupted(self, cell: Cell, plan_id: str) -> Result | None:
        """Return the first try of a cell, if an earlier session on this folder was interrupted
        before it recorded the second.
        """
        try:
            kept = strict_json.loads((self._folder(cell) / KEPT_FILE).read_text(encoding="utf-8"))
            same = kept["question"] == _question(cell)
            return (
                replace(Result.from_line(json.dumps(kept["result"])), plan_id=plan_id)
                if same
                else None
            )
        except FileNotFoundError:
            return None
        except (
            KeyError,
            OSError,
            TypeError,
            ValueError,
        ):  # not written by a run: the cell is executed as usual
            return None

    def make(self, cell: Cell, first: Result, observe: Callable[[], Result]) -> Result:
        """Return the result of a cell from its unexpected first try and a second one.

        ``observe`` returns a judged result.
        """
        # a signal to the whole group of processes may have ended the first try's worker
        interrupts.check()
        limit = self._limit()
        if limit:
            return second_try.noted(first, limit)
        first = self._keep(cell, first)
        self._cells_left -= 1
        begun = self._clock()
        try:
            with self._fresh():
                second = observe()
        finally:
            self._seconds_left -= self._clock() - begun
        interrupts.check()
        return second_try.joined(cell, first, second)

    def _limit(self) -> str:
        """Return why no further cell gets a second try, "" if this one may."""
        if self._cells_left <= 0:
            return f"not asked again: a session asks at most {self._most} cells again"
        if self._seconds_left <= 0:
            return f"not asked again: a process spends at most {MOST_SECONDS:.0f} s on second tries"
        return ""

    def _keep(self, cell: Cell, first: Result) -> Result:
        """Move the evidence of the first try aside, and write the first try beside it; return it
        with the new paths.
        """
        folder, old = self._folder(cell), self.out / "evidence" / cell.id
        if (folder / KEPT_FILE).is_file():
            return first  # of an earlier session
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        if old.is_dir():
            old.rename(folder)
        folder.mkdir(exist_ok=True)
        there, here = (path.relative_to(self.out).as_posix() + "/" for path in (old, folder))
        moved = {
            name: here + path[len(there) :] if path.startswith(there) else path
            for name, path in first.evidence.items()
        }
        first = replace(first, evidence=moved)
        kept = {"question": _question(cell), "result": json.loads(first.to_line())}
        write_text(folder / KEPT_FILE, json.dumps(kept) + "\n")
        return first

    def _folder(self, cell: Cell) -> Path:
        """Return the folder of a first try: beside the evidence of the second, which removes what
        it finds in its own.
        """
        folder = self.out / "evidence" / cell.id
        return folder.with_name(f"{folder.name}.first")


def _question(cell: Cell) -> dict[str, object]:
    """Return what a cell asks; a changed case or artifact makes another question."""
    return replace(cell, artifact="", decided=None).to_json()
