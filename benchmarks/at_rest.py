"""``savedmodel-compat inspect``, ``verify``, ``diff`` against ``saved_model_cli show --all``:
programs, on models of 2 MB.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import Comparison, Usage, attempt, environment, measured
from benchmarks.models import small

GOALS = {"inspect": 0.05, "verify": 0.10, "diff": 0.08}  # by command
THEIRS = "saved_model_cli show --all"


def run(repeats: int) -> list[Comparison]:
    """Every model: what one program of ours takes, alone, for one that theirs takes for its
    text.
    """
    cli = Path(sys.executable).with_name("saved_model_cli")
    if not cli.exists():
        raise FileNotFoundError(f"{cli}: TensorFlow is not installed in this environment")
    folder = Path(tempfile.mkdtemp(prefix="benchmark-"))
    try:
        # In a process of its own: this one must not have imported TensorFlow when it starts others.
        subprocess.run(
            [sys.executable, small.__file__, str(folder)],
            env=environment(),
            check=True,
            stdout=subprocess.DEVNULL,
        )
        rows = []
        for kind in small.KINDS:
            rows += attempt(kind, _compared, folder / kind, str(cli), repeats)
        return rows
    finally:
        shutil.rmtree(folder)


def _compared(pair: Path, cli: str, repeats: int) -> list[Comparison]:
    first, second = str(pair / "1"), str(pair / "2")
    ours = [
        ["inspect", first],
        ["inspect", "--json", first],
        ["verify", first],
        ["diff", first, second],
    ]
    program = [sys.executable, "-m", "savedmodel_compat"]
    commands = [
        *[[*program, *arguments] for arguments in ours],
        [cli, "show", "--dir", first, "--all"],
    ]
    times: list[list[Usage]] = [[] for _ in commands]
    for turn in range(repeats + 1):
        for command, found in zip(commands, times):
            usage = measured(
                command, environment(), accepted=(0, 1)
            )  # a difference is not a failure; a printed error is
            if turn:  # the first fills caches
                found.append(usage)
    wall, cpu = [], []
    for found in times:
        wall.append(tuple([usage.seconds for usage in found]))
        cpu.append(tuple([usage.cpu for usage in found]))
    graph = (pair / "1" / "saved_model.pb").stat().st_size
    size = sum(file.stat().st_size for file in (pair / "1").rglob("*") if file.is_file())
    name = f"{small.KINDS[pair.name]} ({size / 1e6:.1f} MB, saved_model.pb {graph / 1e6:.1f} MB)"
    rows = []
    for arguments, seconds, cpu_seconds in zip(ours, wall, cpu):
        command = arguments[0]
        shown = " ".join(word for word in arguments if word[0] != "/")
        rows.append(
            Comparison(
                command,
                shown,
                THEIRS,
                seconds,
                wall[-1],
                GOALS[command],
                name,
                cpu_seconds,
                cpu[-1],
            )
        )
    return rows
