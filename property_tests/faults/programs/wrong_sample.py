"""The sample consumer of docs/exporters/plugins.md, with the mistake that the file of the
environment variable PLANTED names, or none.
"""

import os
import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.argv[1:] = [Path(os.environ["PLANTED"]).read_text(encoding="utf-8")]
    runpy.run_path(
        str(Path(__file__).resolve().parents[3] / "tests" / "support" / "wrong_plugins.py"),
        run_name="__main__",
    )
