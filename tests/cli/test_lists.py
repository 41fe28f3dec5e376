"""Options that take several values take them repeated and by commas, in every command."""

import click
import pytest
from click.testing import CliRunner

from compat_matrix.commands.parts.matrix_run import run
from compat_matrix.commands.parts.planned import CELL_ID
from compat_matrix.runtimes.resolve import split
from savedmodel_compat.cli import main

# What may hold a comma that separates nothing, and what is cut where it is read.
NOT_CUT = {
    "--from-file": "a path",
    "--input": "a name of a signature, which may hold anything",
    "--output": "the same",
    "--runtime": "a requirement, cut by compat_matrix.runtimes.resolve.split",
    "--select": "cut by savedmodel_tools.verify.rules",
    "--ignore": "the same; in `diff` by its option",
}


def commands(command=main, context=None, path=()):
    """Every command that does something, with its words."""
    context = context or click.Context(command, info_name="savedmodel-compat")
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        yield from commands(
            inner, click.Context(inner, info_name=name, parent=context), (*path, name)
        )


def given(command, option, *values):
    """What a command gets for an option with these values."""
    (parameter,) = (one for one in command.params if option in one.opts)
    return tuple(parameter.type_cast_value(click.Context(command), values))


@pytest.mark.parametrize(
    ("command", "parameter"),
    [
        pytest.param(command, item, id=" ".join([*path, item.opts[0]]))
        for path, command in commands()
        for item in command.params
        if isinstance(item, click.Option) and item.multiple and item.opts[0] not in NOT_CUT
    ],
)
def test_a_value_is_cut_at_its_commas(command, parameter):
    cells = ("a/tf2@2.4/tf2@2.4/load", "b/tf2@2.4/tf2@2.4/load")
    names = (
        cells
        if parameter.type is CELL_ID
        else tuple(getattr(parameter.type, "choices", ("one", "two"))[:2])
    )
    assert (
        given(command, parameter.opts[0], ",".join(names))
        == given(command, parameter.opts[0], *names)
        == names
    )


@pytest.mark.parametrize(
    ("option", "value", "parts"),
    [
        ("--case", "a, b,", ("a", "b")),
        ("--case", "tree_*", ("tree_*",)),
        ("--consumer", "mine=python mine.py --of a,b", ("mine=python mine.py --of a,b",)),
        ("--server", "remote:here:8500,8501", ("remote:here:8500,8501",)),
        (
            "--server",
            "remote:here:8500,8501/model,standin",
            ("remote:here:8500,8501/model", "standin"),
        ),
        (
            "--server",
            "old=tensorflow/serving:2.15.1,new=standin@2.15",
            ("old=tensorflow/serving:2.15.1", "new=standin@2.15"),
        ),
    ],
)
def test_a_comma_inside_of_a_value_separates_nothing(option, value, parts):
    assert given(run, option, value) == parts


def test_a_requirement_with_two_bounds_is_one_runtime():
    assert split("tensorflow>=2.20,<2.21, 2.15") == ["tensorflow>=2.20,<2.21", "2.15"]


@pytest.mark.parametrize(
    "words",
    ["gate run --baseline local --candidate local --case ,", "matrix run --out out --check ,"],
)
def test_a_value_that_names_nothing_is_wrong_usage(words):
    done = CliRunner().invoke(main, words.split())
    assert done.exit_code == 64 and "it names nothing" in done.output
