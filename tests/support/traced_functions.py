"""Run the program with `python traced_functions.py ARGUMENTS...`; the last line of stdout is a JSON list
of `[file, function]`: each function of the project in the order of its first call.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from savedmodel_compat.cli import main

ROOT = f"{Path(__file__).parents[2]}/"


def run(arguments: list[str]) -> list[tuple[str, str]]:
    """Run the program, and return what it called."""
    called: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            called[frame.f_code.co_filename[len(ROOT) :], frame.f_code.co_name] = None

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        main(arguments)
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.setprofile(None)
    return list(called)


if __name__ == "__main__":
    print("\n" + json.dumps(run(sys.argv[1:])))
