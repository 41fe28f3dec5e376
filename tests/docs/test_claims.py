"""docs/claims.md: what each command says when it is green.

A command that does not say it fails here.
"""

import ast
import inspect
import sys

import click
import pytest
from click.testing import CliRunner

from compat_matrix.checks import CHECKS, READING
from docs import claims
from savedmodel_common.command_line.claims import OF_EVERY, claim_of
from savedmodel_common.exit_codes import ExitCode
from savedmodel_compat.cli import main

COMMANDS = dict(claims.commands(main, click.Context(main, info_name="savedmodel-compat")))
STALE = "STALE"  # how some modules call ExitCode.STALE_EXPECTATION


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_says_what_green_means(name):
    claim = claim_of(COMMANDS[name])
    assert claim is not None, f"give {name} a claim (savedmodel_common/command_line/claims.py)"
    assert all([claim.green, claim.words(claim.asked), claim.words(claim.not_asked)])
    assert not set(claim.codes) & {ExitCode.AS_EXPECTED, *OF_EVERY}
    help_text = " ".join(CliRunner().invoke(main, [*name.split(), "--help"]).output.split())
    assert f"Exit code 0 means: {claim.green}." in help_text


def test_a_command_without_a_claim_fails_the_page():
    @click.command()
    def silent():
        """Say nothing."""

    program = click.Group(commands={"silent": silent})
    with pytest.raises(LookupError, match="'silent' "):
        claims.rows(program)


@pytest.mark.parametrize(
    "module", sorted({command.callback.__module__ for command in COMMANDS.values()})
)
def test_the_exit_codes_of_a_module_are_claimed(module):
    """Each code that the source of the commands ends with has a meaning in the claim of one of
    them.
    """
    mine = [command for command in COMMANDS.values() if command.callback.__module__ == module]
    claimed = {code for command in mine for code in claim_of(command).codes}
    assert _codes_of(module) - {ExitCode.AS_EXPECTED, *OF_EVERY} <= claimed


def _codes_of(module):
    """The exit codes that a module names, outside of the claims themselves."""
    found = set()
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        for returned in [node.value] if isinstance(node, ast.Return) and node.value else []:
            for part in ast.walk(returned):
                if isinstance(part, ast.Attribute) and getattr(part.value, "id", "") == "ExitCode":
                    found.add(ExitCode[part.attr])
                if isinstance(part, ast.Name) and part.id == STALE:
                    found.add(ExitCode.STALE_EXPECTATION)
    return found


def test_the_lists_are_those_that_the_commands_use():
    gate, check = (claim_of(COMMANDS[name]) for name in ("gate run", "check"))
    assert ", ".join(READING) in gate.words(gate.asked)
    left_out = [name for name in CHECKS if name not in READING]
    assert ", ".join(left_out) in gate.words(gate.not_asked)
    assert all(name in check.words(check.asked) for name in CHECKS)
