"""``savedmodel-compat runtimes install``: several at a time, each with a line that says what is
going on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from compat_matrix.runtimes import provision, registry, wanted
from compat_matrix.runtimes.places import RuntimeTrouble, UnknownRuntime
from compat_matrix.runtimes.resolve import of_record
from savedmodel_common.exit_codes import ExitCode


def install_all(
    specs: Sequence[str],
    known: registry.Registry,
    jobs: int,
    again: bool,
    steps: Sequence[provision.Step],
) -> int:
    """Install all, go on after a failure, and return the exit code.

    ``steps`` are done in each, also where it was there.
    """
    targets = {}
    for spec in specs:
        target = wanted.parse(spec, known)
        if isinstance(target, Path):
            raise UnknownRuntime(f"{spec} exists already; nothing is to be installed")
        targets[target.folder] = target
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    failed = 0
    with (
        Progress(*columns, console=console, transient=True) as progress,
        ThreadPoolExecutor(jobs) as pool,
    ):

        def one(target: wanted.Wanted) -> bool:
            task = progress.add_task(target.name)

            def report(what: str) -> None:
                progress.update(task, description=escape(f"{target.name}: {what}"))

            try:
                line = _install(target, known, again, steps, report)
            except RuntimeTrouble as error:
                console.print(f"{target.name}: FAILED: {error}", markup=False)
                return False
            finally:
                progress.remove_task(task)
            console.print(line, markup=False)
            return True

        failed = sum(not done for done in pool.map(one, targets.values()))
    return int(ExitCode.HARNESS_ERROR if failed else ExitCode.AS_EXPECTED)


def _install(
    target: wanted.Wanted,
    known: registry.Registry,
    again: bool,
    steps: Sequence[provision.Step],
    report: Callable[[str], None],
) -> str:
    """One installation; the line that tells what came of it."""
    began = time.monotonic()
    record = provision.install(target, known, report, again)
    runtime = of_record(target, record, known)
    for step in steps:
        step(runtime, report)
    note = "" if record.locked else ", not locked"
    return (
        f"{target.name}: TensorFlow {record.tensorflow}, Python {record.python}{note}"
        f" ({time.monotonic() - began:.1f} s)"
    )
