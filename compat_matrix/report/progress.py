"""The progress display of a long run, on stderr: a bar with rate and remaining time on a terminal,
plain lines elsewhere.

In its first minute a run says nothing about the time that is left: it starts TensorFlow then, and
few of its things are done.
"""

from __future__ import annotations

import time

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from compat_matrix.cells.plan import Cell
from compat_matrix.cells.results import Result, one_line
from compat_matrix.report.time_left import SILENT_SECONDS, TimeLeft
from savedmodel_common.gist import of_graph_error
from savedmodel_common.printable import counted

PLAIN_SECONDS = 10  # between two plain lines


class Progress:
    """Count what is done ("cells", "models"), and print each problem at once; ``bad`` is the word
    for a thing with one.

    ``tells`` False: problems are only counted, because the command prints them at its end.
    """

    def __init__(
        self, things: str, bad: str, console: Console | None = None, tells: bool = True
    ) -> None:
        self.things, self.bad, self.tells = things, bad, tells
        self.console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self.done = self.kept = self.wrong = self.total = 0
        self.begun = self.said = time.monotonic()
        self.bar: Bar | None = None
        self.time_left: TimeLeft | None = None

    def start(self, total: int, time_left: TimeLeft | None = None, recorded: int = 0) -> None:
        """Start the display; ``total``: the number of things.

        Without ``time_left``, all of them take the same time.

        ``recorded``: how many an earlier run has done; which of them have changed since is not
        known yet.
        """
        self.total, self.time_left = total, time_left
        self.begun = self.said = time.monotonic()
        if self.console.is_terminal:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
            )
            self.bar = Bar(*columns, console=self.console, transient=True)
            self.bar.add_task(self.things, total=total)
            self.bar.start()
        else:
            what = (
                f"{recorded} done by an earlier run unless changed since, {total - recorded} to run"
                if recorded
                else "to run"
            )
            self.console.print(
                f"{counted(total, self.things[:-1])}{': ' if recorded else ' '}{what}"
            )

    def advance(self, problem: str = "", kept: bool = False, cell: Cell | None = None) -> None:
        """Count one more.

        ``problem``: what is wrong with it (untrusted text), or "". ``kept``: an earlier run did it,
        so its time says nothing. ``cell``: the cell that ended, for ``time_left``.
        """
        self.done += 1
        if self.time_left and cell:
            self.time_left.finished(cell)
        self.kept += kept
        if problem:
            self.wrong += 1
            if self.tells:
                self.console.print(escape(one_line(problem, 300)), style="bold red")
        now = time.monotonic()
        says = f"{self.things}, {self.wrong} {self.bad}{self._pace(now - self.begun)}"
        if self.bar:
            self.bar.update(self.bar.task_ids[0], advance=1, description=says)
        elif now - self.said >= PLAIN_SECONDS or self.done == self.total:
            self.said = now
            self.console.print(f"{self.done}/{self.total} {says}")

    def _pace(self, seconds: float) -> str:
        """Return how many were kept, the rate of the others, and the time that is left; "" for what
        is not known yet.
        """
        kept = f", {self.kept} kept" if self.kept else ""
        made = self.done - self.kept
        if not made:
            return kept
        rate = made / max(seconds, 1e-9)
        left = self._left(seconds, rate)
        return f"{kept}, {rate:.1f}/s" + ("" if left is None else f", {_duration(left)} left")

    def _left(self, seconds: float, rate: float) -> float | None:
        """Return the seconds that are left after ``seconds``; None if nobody knows yet."""
        if self.time_left:
            return self.time_left.seconds(seconds)
        return (self.total - self.done) / rate if seconds >= SILENT_SECONDS else None

    def stop(self) -> None:
        """Clear the bar."""
        if self.bar:
            self.bar.stop()


def announce(what: str) -> None:
    """Say on stderr what is being done after the last thing that is counted: ``writing the report
    ...``.
    """
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"{what} ...", markup=False)


def _duration(seconds: float) -> str:
    """Return ``40 s``, ``12 min`` or ``2.5 h``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def unexpected(result: Result) -> str:
    """Return the problem of a cell, "" if it is as expected."""
    if result.expected is not False:
        return ""
    what = one_line(
        f"{result.error_class or ''} {of_graph_error(result.message) or result.message_normalised}",
        160,
    )
    return f"unexpected {result.outcome} {result.cell} {what}"
