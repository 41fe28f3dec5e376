"""``python -m savedmodel_standin serve|executable ...``: see the package."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


def _serve(arguments: Sequence[str]) -> int:
    from savedmodel_standin import server

    return server.main(arguments)


def _executable(arguments: Sequence[str]) -> int:
    """Write a ``tensorflow_model_server`` that starts the stand-in in a runtime."""
    from compat_matrix.runtimes import resolve
    from compat_matrix.runtimes.places import RuntimeTrouble
    from compat_matrix.runtimes.runtime import LOCAL
    from savedmodel_standin import executable

    parser = argparse.ArgumentParser(
        prog="python -m savedmodel_standin executable", description=_executable.__doc__
    )
    parser.add_argument("path", type=Path, help="the file to write")
    parser.add_argument(
        "--runtime",
        default=LOCAL,
        help="whose TensorFlow serves: a version, a requirement, an interpreter",
    )
    options = parser.parse_args(arguments)
    try:
        executable.write(options.path, str(resolve.resolve(options.runtime).python))
    except RuntimeTrouble as error:
        sys.stderr.write(f"{error}\n")
        return 1
    print(options.path)
    return 0


COMMANDS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "serve": _serve,
    "executable": _executable,
}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.stderr.write(f"usage: python -m savedmodel_standin {'|'.join(COMMANDS)} ...\n")
        sys.exit(64)
    sys.exit(COMMANDS[sys.argv[1]](sys.argv[2:]))
