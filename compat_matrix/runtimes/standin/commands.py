"""``executable`` and ``build`` on the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from compat_matrix.runtimes import resolve
from compat_matrix.runtimes.places import RuntimeTrouble
from compat_matrix.runtimes.runtime import LOCAL
from compat_matrix.runtimes.standin import executable as launcher

PROGRAM = "python -m compat_matrix.runtimes.standin"


def executable(arguments: Sequence[str]) -> int:
    """Write a ``tensorflow_model_server`` that starts the stand-in in a runtime."""
    parser = argparse.ArgumentParser(prog=f"{PROGRAM} executable", description=executable.__doc__)
    parser.add_argument("path", type=Path, help="the file to write")
    parser.add_argument("--runtime", default=LOCAL, help="whose TensorFlow serves: a version, a requirement, an interpreter")
    options = parser.parse_args(arguments)
    try:
        python = resolve.resolve(options.runtime).python
    except RuntimeTrouble as error:
        sys.stderr.write(f"{error}\n")
        return 1
    launcher.write(options.path, str(python))
    print(options.path)
    return 0
