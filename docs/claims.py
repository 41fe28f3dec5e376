"""The page of what each command claims, made of what the commands declare
(`savedmodel_common.command_line.claims`).
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from docs.markdown import table
from savedmodel_common.command_line.claims import OF_EVERY, Claim, claim_of
from savedmodel_common.exit_codes import MEANINGS
from savedmodel_compat.cli import main

HEAD = """# What green means

For each command: the meaning of exit code 0, the checks behind it, the checks that were left out (with the option that runs them), and the
other exit codes. The lists of checks, rules, loaders and sections are those that the commands use.

If you name something that then cannot be asked, such as `--consumer cpp` without a compiler, the exit code is 3. What is left
out by default does not change the exit code; the report names it.

These exit codes mean the same in every command:

{codes}

## Exit codes

"""  # noqa: E501


ASKED = "\n## What was asked for it\n\n"


def commands(
    command: click.Command, context: click.Context, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that is not a group, with its words."""
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        if inner is not None and not inner.hidden:
            yield from commands(
                inner, click.Context(inner, info_name=name, parent=context), (*path, name)
            )


def page() -> str:
    """Return the page. Raises LookupError for a command without a claim."""
    codes = "\n".join(f"- {code:d}: {MEANINGS[code]}" for code in OF_EVERY)
    found = rows(main)
    codes_of = table(
        ("command", "exit code 0", "other exit codes"), [(row[0], row[1], row[4]) for row in found]
    )
    asked = table(("command", "asked", "not asked"), [(row[0], row[2], row[3]) for row in found])
    return f"{HEAD.format(codes=codes)}{codes_of}{ASKED}{asked}"


def rows(program: click.Command) -> list[tuple[str, ...]]:
    """Return a row for each command of a program: its words, exit code 0, what was asked, what was
    not, the other exit codes.

    Raises LookupError for a command without a claim.
    """
    found = []
    for name, command in commands(program, click.Context(program, info_name="savedmodel-compat")):
        claim = claim_of(command)
        if claim is None:
            raise LookupError(
                f"the command {name!r} does not say what its exit code 0 means: give it @claims"
            )
        found.append(_row(name, claim))
    return found


def _row(name: str, claim: Claim) -> tuple[str, ...]:
    others = "; ".join(f"{code:d}: {meaning}" for code, meaning in sorted(claim.codes.items()))
    return (
        f"`{name}`",
        claim.green,
        claim.words(claim.asked),
        claim.words(claim.not_asked),
        others,
    )
