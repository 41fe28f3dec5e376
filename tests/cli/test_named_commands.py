"""Commands that messages, rules, help texts and pages name exist under that name."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from savedmodel_compat import cli

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"savedmodel-compat(?:`?\s+)([a-z][a-z-]*)(?:\s+([a-z][a-z-]*))?")
# Pages that tell of other names: what was renamed, and what former sessions noted.
TELL_OF_OLD_NAMES = {"CHANGELOG.md", "docs/contribute/renamed.md"}
# Words of sentences about the program, and the command that CONTRIBUTING.md shows how to add.
NO_COMMANDS = {"answers", "beside", "count-nodes", "file", "finds", "in", "path", "site"}


def files():
    for pattern in ("*.py", "*.md", "*.toml", "*.yml", "*.ini", "*.yaml"):
        for path in ROOT.rglob(pattern):
            place = path.relative_to(ROOT)
            if place.parts[0] not in ("tests", "site") and not place.parts[0].startswith("."):
                yield place, path


def unknown(text: str) -> list[str]:
    """Return the commands in a text that the program does not have."""
    found = []
    context = click.Context(cli.main)
    for first, second in NAMED.findall(text):
        command = cli.main.get_command(context, first)
        if command is None and first not in NO_COMMANDS:
            found.append(first)
        in_group = isinstance(command, click.Group) and second and second not in NO_COMMANDS
        if in_group and command.get_command(context, second) is None:
            found.append(f"{first} {second}")
    return found


def test_each_named_command_exists():
    wrong = [
        f"{place}: {name}"
        for place, path in sorted(files())
        if place.as_posix() not in TELL_OF_OLD_NAMES
        for name in unknown(path.read_text(encoding="utf-8"))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("run `savedmodel-compat signatures`", ["signatures"]),
        ("savedmodel-compat edit signature add", ["edit signature"]),
        ("savedmodel-compat edit signatures add; savedmodel-compat verify model", []),
        ("`savedmodel-compat gate`", []),
    ],
)
def test_an_unknown_command_is_found(text, names):
    assert unknown(text) == names
