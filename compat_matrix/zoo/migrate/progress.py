"""What a person sees of a long migration, on stderr: a bar with rate and remaining time; plain lines elsewhere."""

from __future__ import annotations

import time

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from compat_matrix.cli import printable
from compat_matrix.zoo.migrate.records import Record

PLAIN_STEPS = 20  # plain lines: about as many in a run


class Progress:
    """Counts models as they are done; those that are not in the output are told at once."""

    def __init__(self, total: int, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self.total, self.done, self.bad = total, 0, 0
        self.begun = time.monotonic()
        self.bar: Bar | None = None
        if self.console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            self.bar = Bar(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=self.console, transient=True)
            self.bar.add_task("models", total=total)
            self.bar.start()

    def advance(self, record: Record) -> None:
        """One more."""
        self.done += 1
        if not record.status.good:
            self.bad += 1
            reason = (record.reason.splitlines() or [""])[0]
            self.console.print(escape(printable(f"{record.status.value}: {record.name}: {reason}"[:300], newlines=False)))
        rate = self.done / max(time.monotonic() - self.begun, 1e-9)
        if self.bar:
            self.bar.update(self.bar.task_ids[0], advance=1, description=f"models, {rate:.1f}/s, {self.bad} not migrated")
        elif self.done % max(1, self.total // PLAIN_STEPS) == 0 or self.done == self.total:
            left = (self.total - self.done) / rate
            self.console.print(f"{self.done}/{self.total} models, {rate:.1f}/s, {left:.0f} s left, {self.bad} not migrated")

    def stop(self) -> None:
        """Clear the bar."""
        if self.bar:
            self.bar.stop()
