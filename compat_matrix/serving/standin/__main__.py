"""``python -m compat_matrix.serving.standin serve|executable|build ...``: see the package."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence


def _serve(arguments: Sequence[str]) -> int:
    from compat_matrix.serving.standin import server

    return server.main(arguments)


def _executable(arguments: Sequence[str]) -> int:
    from compat_matrix.serving.standin import commands

    return commands.executable(arguments)


def _build(arguments: Sequence[str]) -> int:
    from compat_matrix.serving.standin import commands

    return commands.build(arguments)


COMMANDS: Mapping[str, Callable[[Sequence[str]], int]] = {"serve": _serve, "executable": _executable, "build": _build}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.stderr.write(f"usage: python -m compat_matrix.serving.standin {'|'.join(COMMANDS)} ...\n")
        sys.exit(64)
    sys.exit(COMMANDS[sys.argv[1]](sys.argv[2:]))
