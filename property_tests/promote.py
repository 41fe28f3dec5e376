"""Makes a regression of a failure: ``python -m property_tests.promote NAME "What went wrong." <
output of pytest``.

The last script in the output, with the property that failed and its arguments, becomes
property_tests/regressions/NAME.py; `ruff format` it.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from pathlib import Path
from typing import Optional

from property_tests.strategies.prelude import END

REGRESSIONS = Path(__file__).parent / "regressions"
BEGIN = "import collections"


class NoScriptError(Exception):
    """The text holds no failure of a property here."""


def find(text: str) -> tuple[str, str, dict[str, str]]:
    """The last script of an output, the property that it failed, and the property's arguments.

    Raises:
      NoScriptError: there is none.
    """
    lines = text.splitlines()
    ends = [index for index, line in enumerate(lines) if line.endswith(END)]
    begins = [
        index
        for index, line in enumerate(lines)
        if line.endswith(BEGIN) and ends and index < ends[-1]
    ]
    if not begins:
        raise NoScriptError(
            "no script is shown: run pytest on property_tests, and give all it prints"
        )
    first, last = begins[-1], ends[-1]
    margin = len(lines[first]) - len(BEGIN)
    script = "\n".join([line[margin:].rstrip() for line in lines[first : last + 1]]) + "\n"
    ast.parse(script)
    before = "\n".join(lines[:first])
    called = list(re.finditer(r"(?:Failing test case|Falsifying example): (test_\w+)\(", before))
    if not called:
        raise NoScriptError("the output does not say which property failed")
    arguments = re.findall(r"^[ |E]*(\w+)='([^'\n]*)',$", before[called[-1].end() :], re.MULTILINE)
    return (
        script,
        called[-1].group(1),
        {name: value for name, value in arguments if name in ("writer", "reader", "first")},
    )


def promote(name: str, reason: str, text: str, folder: Path = REGRESSIONS) -> Path:
    """Writes the regression of a failure that a text shows.

    Raises:
      NoScriptError: the text shows none.
      FileExistsError: there is a regression of that name.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise NoScriptError(f"{name!r} is no name: lower-case letters, digits and _")
    script, check, arguments = find(text)
    path = folder / f"{name}.py"
    with path.open("x") as stream:
        stream.write(
            f'"""{reason}"""\n\n{script}\nPROPERTY = "{check}"\nARGUMENTS = {arguments!r}\n'
        )
    return path


def main(arguments: Optional[list[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m property_tests.promote")
    parser.add_argument("name", help="name of the regression, as of a Python module")
    parser.add_argument("reason", help="what went wrong, a sentence")
    chosen = parser.parse_args(arguments)
    try:
        print(promote(chosen.name, chosen.reason, sys.stdin.read()))
    except (NoScriptError, FileExistsError) as error:
        print(f"promote: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
