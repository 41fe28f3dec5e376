"""What a person sees while the matrix runs: a bar on a terminal, plain lines elsewhere. Everything goes to stderr."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from compat_matrix.results import Result, one_line

PLAIN_STEPS = 20  # plain lines: about as many in a run


class Progress:
    """Counts results as they arrive; unexpected ones are printed at once."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self.done = self.unexpected = self.total = 0
        self.bar: Bar | None = None

    def start(self, total: int) -> None:
        self.total = total
        if self.console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            self.bar = Bar(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=self.console, transient=True)
            self.bar.add_task("cells", total=total)
            self.bar.start()
        else:
            self.console.print(f"{total} cells to run")

    def advance(self, result: Result) -> None:
        self.done += 1
        if result.expected is False:
            self.unexpected += 1
            what = one_line(f"{result.error_class or ''} {result.message_normalised}", 160)
            self.console.print(escape(f"unexpected {result.outcome} {result.cell} {what}"), style="bold red")
        if self.bar:
            self.bar.update(self.bar.task_ids[0], advance=1, description=f"cells, {self.unexpected} unexpected")
        elif self.done % max(1, self.total // PLAIN_STEPS) == 0 or self.done == self.total:
            self.console.print(f"{self.done}/{self.total} cells, {self.unexpected} unexpected")

    def stop(self) -> None:
        if self.bar:
            self.bar.stop()
