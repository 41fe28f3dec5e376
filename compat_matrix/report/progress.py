"""The progress display of a long run, on stderr: a bar with rate and remaining time on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from compat_matrix.cells.results import Result, one_line
from compat_matrix.common.printable import counted

PLAIN_SECONDS = 10  # between two plain lines


class Progress:
    """Count what is done, and print each problem at once.

    Args:
      things: "cells", "models".
      bad: the word for things with a problem: "unexpected".
    """

    def __init__(self, things: str, bad: str, console: Console | None = None) -> None:
        self.things, self.bad = things, bad
        self.console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self.done = self.wrong = self.total = 0
        self.begun = self.said = time.monotonic()
        self.bar: Bar | None = None

    def start(self, total: int) -> None:
        """Start the display; ``total``: the number of things."""
        self.total = total
        self.begun = self.said = time.monotonic()
        if self.console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            self.bar = Bar(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=self.console, transient=True)
            self.bar.add_task(self.things, total=total)
            self.bar.start()
        else:
            self.console.print(f"{counted(total, self.things[:-1])} to run")

    def advance(self, problem: str = "") -> None:
        """Count one more; ``problem``: what is wrong with it (untrusted text), or ""."""
        self.done += 1
        if problem:
            self.wrong += 1
            self.console.print(escape(one_line(problem, 300)), style="bold red")
        now = time.monotonic()
        rate = self.done / max(now - self.begun, 1e-9)
        if self.bar:
            self.bar.update(self.bar.task_ids[0], advance=1, description=f"{self.things}, {self.wrong} {self.bad}, {rate:.1f}/s")
        elif now - self.said >= PLAIN_SECONDS or self.done == self.total:
            self.said = now
            says = f"{self.done}/{self.total} {self.things}, {self.wrong} {self.bad}"
            self.console.print(f"{says}, {rate:.1f}/s, {(self.total - self.done) / rate:.0f} s left")

    def stop(self) -> None:
        """Clear the bar."""
        if self.bar:
            self.bar.stop()


def unexpected(result: Result) -> str:
    """Return the problem of a cell, "" if it is as expected."""
    if result.expected is not False:
        return ""
    what = one_line(f"{result.error_class or ''} {result.message_normalised}", 160)
    return f"unexpected {result.outcome} {result.cell} {what}"
