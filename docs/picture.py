"""Draws the report of a run, as a terminal shows it, into ``docs/report.svg``, the picture of the README.

python -m docs.picture compat-out
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

from rich.ansi import AnsiDecoder
from rich.console import Console

PICTURE = Path(__file__).with_name("report.svg")
WIDTH, FIRST, LAST = 130, 24, 20  # characters; lines of the table and of the closing counts that are shown


def main() -> int:
    folder = sys.argv[1]
    command = [sys.executable, "-m", "compat_matrix", "matrix", "report", folder]
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, encoding="utf-8", check=False)
    lines = done.stdout.replace(f"{Path(folder).resolve().parent}/", "").splitlines()
    if len(lines) > FIRST + LAST:
        lines = [*lines[:FIRST], "...", *lines[-LAST:]]
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in AnsiDecoder().decode("\n".join(lines)):
        console.print(line, soft_wrap=True)
    PICTURE.write_text(console.export_svg(title="savedmodel-compat matrix report", unique_id="report"), encoding="utf-8")
    print(f"{PICTURE}: exit {done.returncode} of the run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
