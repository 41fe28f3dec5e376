"""A name or a value that nothing has is wrong usage, and the message names what it is like."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner
from test_lists import commands

from savedmodel_compat.cli import main

MODEL = "fixtures_v1/half_plus_two/model"
CELL = "half_plus_two/fixture@1.15.5/tf2@2.21.0/{}"
CHOICES = [
    pytest.param(path, option, id=" ".join([*path, option.opts[-1]]))
    for path, command in commands()
    for option in command.params
    if isinstance(option.type, click.Choice)
]


def refused(*arguments):
    """The message for a command line that is wrong usage."""
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 64, done.output
    return done.output.strip().splitlines()[-1]


@pytest.mark.parametrize(("path", "option"), CHOICES)
def test_a_choice(path, option):
    """Every option with a choice of values, of every command: `Choice` of commands/parts/lists.py,
    not click's own.
    """
    right = option.type.choices[0]
    assert f"Did you mean {right}" in refused(*path, option.opts[-1], f"{right}x")


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("chekc model", "check"),
        ("check {model} --consumer tf3", "tf2"),
        ("check {model} --check vaules", "values"),
        ("check {model} --runtime lcoal", "local"),
        ("check {model} --runtime 2.201", "tf2.21 or tf2.20"),
        ("check {model} --server stanin", "standin"),
        ("check {model} --server binray:/bin/true", "binary"),
        ("runtimes doctor --server stndin@2.15", "standin"),
        ("matrix run --out out --server standn", "standin"),
        ("matrix run --out out --consumer tf3", "tf2"),
        ("matrix run --out out --case half_plus_tow", "half_plus_two"),
        ("matrix run --dry-run --consumer tf3", "tf2"),
        ("matrix run --dry-run --producer fixtur", "fixture"),
        pytest.param(
            f"matrix expect check {CELL.format('laod')}",
            CELL.format("load"),
            marks=pytest.mark.tensorflow,
        ),
        (f"gate bisect {CELL.format('laod')} --from 2.15 --to 2.21", "load"),
        (f"gate bisect {CELL.format('load')} --from 2.151 --to 2.21", "2.15"),
        ("gate run --baseline local --candidate local --check vaules", "values"),
        ("compat {model} --target 2.211", "2.21"),
        ("downgrade {model} --out out --target 2.44", "2.4"),
        ("contract check {model} --allow signature_remved", "SIGNATURE_REMOVED"),
        ("plugin-check tff2", "tf2"),
        ("plugin-check tf2 --check helo", "hello"),
        ("runtimes install 2.201", "tf2.21"),
    ],
)
def test_a_name(line, meant):
    assert f"Did you mean {meant}" in refused(*line.format(model=MODEL).split())


@pytest.mark.parametrize(
    "change", ["--rename {}=x", "--copy {}=x", "--drop {}", "--default {}", "--input {}:x=y"]
)
def test_a_signature(change, tmp_path):
    words = change.format("servng_default").split()
    done = CliRunner().invoke(
        main, ["edit", "signatures", MODEL, *words, "--out", str(tmp_path / "out")]
    )
    assert (
        done.exit_code,
        "there are: " in done.output,
        "Did you mean serving_default?" in done.output,
    ) == (1, True, True)


@pytest.mark.parametrize(
    "line",
    [
        "inspect {0} --tags serv",
        "edit tags {0} new --tags Serv --out {1}",
        "edit signatures {0} --drop x --tags serv --out {1}",
    ],
)
def test_a_set_of_tags(line, tmp_path):
    done = CliRunner().invoke(main, line.format(MODEL, tmp_path / "out").split())
    assert done.exit_code == 1 and "serve?" in done.output, done.output


@pytest.mark.parametrize(
    ("line", "meant", "code"),
    [
        ("ops show MatMull", "MatMul", 1),
        ("ops diff 2.51 2.21", "2.5", 64),
        ("ops update tf2.211", "tf2.21", 64),
        ("lock tf2.211", "tf2.21", 64),
    ],
)
def test_a_name_of_a_program_for_maintainers(line, meant, code):
    name, *words = line.split()
    command = [sys.executable, "-m", f"compat_matrix.commands.{name}", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, f"Did you mean {meant}" in done.stderr) == (code, True), done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "matrix run --out out --cell {}",
        "matrix expect check {}",
        "gate bisect {} --from 2.4 --to 2.21",
    ],
)
def test_what_is_not_the_id_of_a_cell(line):
    assert "not a cell id (case/producer@version/consumer@version/check)" in refused(
        *line.format("half_plus_two/load").split()
    )


def test_without_a_name_like_it_all_are_listed():
    assert "There are: hello, " in refused("plugin-check", "tf2", "--check", "x1y")


def test_an_image_may_be_called_like_a_kind_of_server(tmp_path):
    done = CliRunner().invoke(main, ["runtimes", "doctor", "--server", "docker:standins"])
    assert (done.exit_code, "Did you mean" in done.output) == (1, False), done.output
