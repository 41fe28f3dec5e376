"""Draws the report of a run, as a terminal shows it, into ``docs/report.svg``, the picture of the
README. Part of `tox -e docs`.

    python -m docs.picture

It runs the whole matrix of a few artifacts, with the expectations that concern them. It needs
TensorFlow (the extra `tf`).
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.ansi import AnsiDecoder
from rich.console import Console

from compat_matrix.cells.plan import LEDGER_FILE, PLAN_FILE, Plan
from compat_matrix.report import terminal
from compat_matrix.verdict import DEFAULT_PATH, Ledger
from compat_matrix.verdict.blocks import split_blocks

ROOT = Path(__file__).parents[1]
PICTURE = Path(__file__).with_name("report.svg")
CASES, FIXTURES = (
    ("tree_tuples",),
    ("contrib_op", "half_plus_two"),
)  # the second passes nowhere in a TensorFlow 2, as is known
OUT, WIDTH = "compat-out", terminal.WIDTH  # characters: of a report that is not on a terminal
_FONT = re.compile(
    r"\s*@font-face \{.*?\}", re.DOTALL
)  # of another site; a picture is drawn with the reader's own


def main() -> int:
    """Return 0 when the picture shows a run that ended as expected."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "cases").mkdir()
        for name in CASES:
            shutil.copyfile(
                ROOT / "compat_matrix" / "cases" / f"{name}.py", folder / "cases" / f"{name}.py"
            )
        for name in FIXTURES:
            shutil.copytree(ROOT / "fixtures_v1" / name, folder / "fixtures" / name)
        ran = _matrix(folder, "run", "--cases-dir", "cases", "--fixtures", "fixtures", "--out", OUT)
        if not (folder / OUT / PLAN_FILE).exists():
            print(ran.stdout, file=sys.stderr)
            return ran.returncode
        (folder / OUT / LEDGER_FILE).write_text(
            expectations(Plan.read(folder / OUT / PLAN_FILE)), encoding="utf-8"
        )
        told = _matrix(folder, "report", OUT)
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    for line in AnsiDecoder().decode(told.stdout):
        console.print(line, soft_wrap=True)
    drawn = console.export_svg(title=f"savedmodel-compat matrix report {OUT}", unique_id="report")
    PICTURE.write_text(_FONT.sub("", drawn), encoding="utf-8")
    print(f"{PICTURE}: exit {told.returncode} of the run")
    return told.returncode


def expectations(plan: Plan) -> str:
    """Return the entries of our ledger that select a cell of a plan."""
    text = DEFAULT_PATH.read_text(encoding="utf-8")
    ledger = Ledger.parse(text)
    used = {entry.index for cell in plan if (entry := ledger.entry_for(cell))}
    head, blocks = split_blocks(text)
    return head + "".join(block for index, (block, _) in enumerate(blocks) if index in used)


def _matrix(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": str(WIDTH), "PYTHONIOENCODING": "utf-8"}
    environment |= {"FORCE_COLOR": "1"} if arguments[0] == "report" else {}
    for name in ("COMPAT_RUNTIMES", "COMPAT_SERVERS"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "savedmodel_compat", "matrix", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, encoding="utf-8", check=False
    )


if __name__ == "__main__":
    sys.exit(main())
