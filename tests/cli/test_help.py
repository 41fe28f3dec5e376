"""What ``--help`` of every command says: a sentence for each option, and examples that the command
takes.
"""

import re
import shlex

import click
import pytest
import shown_commands
from click.testing import CliRunner

from savedmodel_common.command_line.common import CommonOption
from savedmodel_compat.cli import main


def commands(command, context, path=()):
    """Every command that does something, with its context and words."""
    if not isinstance(command, click.Group):
        yield pytest.param(command, context, path, id=" ".join(path))
        return
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        if not inner.hidden:
            yield from commands(
                inner, click.Context(inner, info_name=name, parent=context), (*path, name)
            )


COMMANDS = list(commands(main, click.Context(main, info_name="savedmodel-compat")))


@pytest.mark.parametrize(("command", "context", "path"), COMMANDS)
def test_it_has_examples_that_the_command_takes(command, context, path):
    shown = command.get_help(context)
    examples = re.findall(
        r"^ +(savedmodel-compat .*)$",
        shown.partition("Examples:\n")[2].partition("\nOptions:")[0],
        re.MULTILINE,
    )
    assert examples
    assert all(tuple(shlex.split(example)[1 : len(path) + 1]) == path for example in examples)
    assert {example: why for example in examples if (why := shown_commands.refused(example))} == {}


@pytest.mark.parametrize(("command", "context", "path"), COMMANDS)
def test_each_option_has_a_sentence(command, context, path):
    options = [
        item for item in command.params if isinstance(item, click.Option) and not item.hidden
    ]
    sentence = re.compile(r"([A-Z`]|--to keras: [a-z]).*\.", re.DOTALL)
    assert [
        (item.opts, item.help) for item in options if not sentence.fullmatch(item.help or "")
    ] == []


# What only acts on the machine or on this project: the exit code says all of it.
ACTS = {
    "matrix expect update",
    "runtimes install",
    "runtimes remove",
}


@pytest.mark.parametrize(("command", "context", "path"), COMMANDS)
def test_a_command_that_reports_has_json(command, context, path):
    assert any("--json" in item.opts for item in command.params) is (" ".join(path) not in ACTS)


@pytest.mark.parametrize(
    "group",
    ["matrix", "matrix expect", "contract", "gate", "runtimes", "serving", "edit"],
)
def test_a_group_lists_its_commands_with_whole_sentences(group):
    shown = CliRunner().invoke(main, [*group.split(), "--help"], env={"COLUMNS": "80"}).output
    assert "Commands:\n" in shown and "..." not in shown.partition("Commands:\n")[2]


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version_is_shown(option):
    assert CliRunner().invoke(main, [option]).output.startswith("savedmodel-compat ")


def test_the_surface_stays_small():
    """A reader of the page of commands meets so many commands, and options to learn."""
    options = [
        item
        for command, _, _ in (found.values for found in COMMANDS)
        for item in command.params
        if isinstance(item, click.Option) and not isinstance(item, CommonOption)
    ]
    assert (len(COMMANDS) < 32, len(options) < 200) == (True, True), (len(COMMANDS), len(options))
