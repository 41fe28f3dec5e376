"""Regenerate fixtures inside the TensorFlow 1.x that made them, or check that the committed ones
still come out.

    python -m fixtures_v1.regenerate [CASE...]            # make them anew, in place
    python -m fixtures_v1.regenerate --check [CASE...]    # make them elsewhere and compare by
                                                          meaning
    python -m fixtures_v1.regenerate --verify [CASE...]   # only the hashes; no environment is
                                                          needed

Exit status: 0 all well, 1 a case differs or its generator failed, 4 no environment (interpreter,
uv, network), 64 usage.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from compat_matrix.runtimes.places import RuntimeTrouble
from compat_matrix.runtimes.resolve import provide
from fixtures_v1 import ROOT, cases, verify

PARTS = ("model", "io", "provenance.json")
TAIL = 15  # lines of a failed generator that are shown
TIME_LIMIT = 600  # seconds for one generator; the slowest needs some ten


def runtime_of(case: str) -> str:
    """The RUNTIME constant of a generator, read without running it: it is written for another
    Python.
    """
    tree = ast.parse((Path(ROOT) / case / "generate.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "RUNTIME":
            return str(ast.literal_eval(node.value))
    raise LookupError(f"{case}/generate.py has no RUNTIME")


def generate(case: str, python: Path, out: Path) -> list[str]:
    """Run one generator into the new folder ``out``. Returns what went wrong, one line each."""
    # Without the caller's settings, PYTHONDONTWRITEBYTECODE among them: a compiled TensorFlow
    # imports in a quarter of the time. TF2_BEHAVIOR is what a TensorFlow 2 that the caller has
    # imported leaves behind; it would turn TF 1.x into something else.
    clean = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "TF_", "TF2_"))
    }
    environment = {
        **clean,
        "PYTHONPATH": str(Path(ROOT).parent),
        "PYTHONHASHSEED": "0",
        "PYTHONWARNINGS": "ignore",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    command = [str(python), "-m", "fixtures_v1.recorder", case, str(out)]
    log = out.with_suffix(".log")
    with log.open("wb") as stream:
        try:
            status = subprocess.run(
                command,
                env=environment,
                cwd=out.parent,
                stdout=stream,
                stderr=stream,
                stdin=subprocess.DEVNULL,
                timeout=TIME_LIMIT,
            ).returncode
        except subprocess.TimeoutExpired:
            return [f"generator still running after {TIME_LIMIT} s"]
    if status == 0:
        return []
    tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL:]
    return [f"generator ended with status {status}", *tail]


def replace(case: str, fresh: Path) -> None:
    """Put a fresh artifact in the place of the committed one."""
    target = Path(ROOT) / case
    for part in PARTS:
        old = target / part
        if old.is_dir():
            shutil.rmtree(old)
        elif old.exists():
            old.unlink()
        shutil.move(str(fresh / part), str(old))


def run_case(case: str, python: Path, scratch: Path, check: bool) -> list[str]:
    """Generate one case, then compare it with the committed one or put it in its place.

    Returns problems.
    """
    fresh = scratch / case
    problems = generate(case, python, fresh)
    if problems:
        return problems
    if not check:
        replace(case, fresh)
        return []
    from fixtures_v1.compare import differences  # late: --verify needs none of this

    return [*verify(Path(ROOT) / case), *differences(Path(ROOT) / case, fresh)]


def run_cases(
    selected: Sequence[str], check: bool, jobs: int, console: Console
) -> dict[str, list[str]]:
    """Run cases in parallel subprocesses.

    Returns ``{case: problems}`` in the order given; raises RuntimeTrouble.
    """
    pythons = {}
    for runtime in sorted({runtime_of(case) for case in selected}):
        pythons[runtime] = provide(
            runtime, lambda what, name=runtime: console.print(f"{name}: {what}", markup=False)
        ).python
    results: dict[str, list[str]] = {}
    with (
        tempfile.TemporaryDirectory() as scratch,
        ThreadPoolExecutor(jobs) as pool,
        Progress(console=console) as progress,
    ):
        task = progress.add_task("generating", total=len(selected))
        futures = {
            pool.submit(run_case, case, pythons[runtime_of(case)], Path(scratch), check): case
            for case in selected
        }
        for future in as_completed(futures):
            results[futures[future]] = future.result()
            progress.advance(task)
    return {case: results[case] for case in selected}


@click.command(help=__doc__)
@click.argument("names", metavar="[CASE]...", nargs=-1)
@click.option(
    "--check",
    is_flag=True,
    help="Compare fresh artifacts with the committed ones instead of replacing them.",
)
@click.option(
    "--verify",
    "only_verify",
    is_flag=True,
    help="Only compare the committed files with their recorded hashes.",
)
@click.option(
    "--jobs", default=2, show_default=True, type=click.IntRange(1), help="Generators at a time."
)
def main(names: tuple[str, ...], check: bool, only_verify: bool, jobs: int) -> None:
    console = Console(highlight=False, soft_wrap=True)
    unknown = sorted(set(names) - set(cases()))
    if unknown:
        console.print(f"no such case: {', '.join(unknown)}", markup=False)
        sys.exit(64)
    selected = list(names) or cases()
    try:
        results = (
            {case: verify(Path(ROOT) / case) for case in selected}
            if only_verify
            else run_cases(selected, check, jobs, console)
        )
    except RuntimeTrouble as error:
        console.print(f"environment: {error}", markup=False)
        sys.exit(4)
    for case, problems in results.items():
        for line in problems:
            console.print(f"{case}: {line}", markup=False)
    failed = sum(bool(problems) for problems in results.values())
    console.print(
        f"{len(results) - failed} of {len(results)} cases are as they should be"
        + (f", {failed} are not" if failed else "")
    )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
