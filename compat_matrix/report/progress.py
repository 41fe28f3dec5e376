"""The progress display of a long run, on stderr: a bar with rate and remaining time on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from compat_matrix.cells.results import Result, one_line
from compat_matrix.common.gist import of_graph_error
from compat_matrix.common.printable import counted

PLAIN_SECONDS = 10  # between two plain lines


class Progress:
    """Count what is done ("cells", "models"), and print each problem at once; ``bad`` is the word for a thing with one."""

    def __init__(self, things: str, bad: str, console: Console | None = None) -> None:
        self.things, self.bad = things, bad
        self.console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self.done = self.kept = self.wrong = self.total = 0
        self.begun = self.said = time.monotonic()
        self.bar: Bar | None = None

    def start(self, total: int) -> None:
        """Start the display; ``total``: the number of things."""
        self.total = total
        self.begun = self.said = time.monotonic()
        if self.console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self.bar = Bar(*columns, console=self.console, transient=True)
            self.bar.add_task(self.things, total=total)
            self.bar.start()
        else:
            self.console.print(f"{counted(total, self.things[:-1])} to run")

    def advance(self, problem: str = "", kept: bool = False) -> None:
        """Count one more.

        ``problem``: what is wrong with it (untrusted text), or "". ``kept``: an earlier run did it, so its time says nothing.
        """
        self.done += 1
        self.kept += kept
        if problem:
            self.wrong += 1
            self.console.print(escape(one_line(problem, 300)), style="bold red")
        now = time.monotonic()
        says = f"{self.things}, {self.wrong} {self.bad}{self._pace(now - self.begun)}"
        if self.bar:
            self.bar.update(self.bar.task_ids[0], advance=1, description=says)
        elif now - self.said >= PLAIN_SECONDS or self.done == self.total:
            self.said = now
            self.console.print(f"{self.done}/{self.total} {says}")

    def _pace(self, seconds: float) -> str:
        """Return how many were kept, the rate of the others, and the time that is left; "" for what is not known yet."""
        kept = f", {self.kept} kept" if self.kept else ""
        made = self.done - self.kept
        if not made:
            return kept
        rate = made / max(seconds, 1e-9)
        return f"{kept}, {rate:.1f}/s, {_duration((self.total - self.done) / rate)} left"

    def stop(self) -> None:
        """Clear the bar."""
        if self.bar:
            self.bar.stop()


def _duration(seconds: float) -> str:
    """Return ``40 s``, ``12 min`` or ``2.5 h``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def unexpected(result: Result) -> str:
    """Return the problem of a cell, "" if it is as expected."""
    if result.expected is not False:
        return ""
    what = one_line(f"{result.error_class or ''} {of_graph_error(result.message) or result.message_normalised}", 160)
    return f"unexpected {result.outcome} {result.cell} {what}"
