"""The wheel, installed alone into an empty environment, as a user does who wants to look at
models.
"""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from uv import find_uv_bin

from savedmodel_common.packages import FIXTURES, OURS

PROJECT = Path(__file__).resolve().parents[2]
MODEL = PROJECT / "fixtures_v1" / "half_plus_two" / "model"
LISTED = """
import click
from savedmodel_compat.cli import main

def walk(command, path):
    print(*path)
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            walk(command.get_command(click.Context(command), name), [*path, name])

walk(main, [])
"""
HELP = """
import sys
from click.testing import CliRunner
from savedmodel_compat.cli import main
from savedmodel_common.packages import FIXTURES, OURS

for line in sys.stdin.read().splitlines():
    result = CliRunner().invoke(main, [*line.split(), "--help"])
    assert result.exit_code == 0, (line, result.output)
    assert "Usage:" in result.output, line
"""


def run(*command, folder, **more):
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ""},
        **more,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the wheel and the source distribution."""
    out = tmp_path_factory.mktemp("dist")
    done = run(find_uv_bin(), "build", "--quiet", "--out-dir", str(out), str(PROJECT), folder=out)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """The folder of programs of an environment that has the wheel and what it requires, nothing
    else.
    """
    folder = tmp_path_factory.mktemp("base")
    (wheel,) = built.glob("*.whl")
    for step in (
        ("venv", "--quiet", "--python", sys.executable, "env"),
        ("pip", "install", "--quiet", "--python", "env/bin/python", str(wheel)),
    ):
        done = run(find_uv_bin(), *step, folder=folder)
        assert done.returncode == 0, done.stderr
    return folder / "env" / "bin"


def test_twine_accepts_the_distributions(built):
    done = run(
        sys.executable,
        "-m",
        "twine",
        "check",
        "--strict",
        *map(str, sorted(built.glob("savedmodel*"))),
        folder=built,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_holds_the_packages_of_users_and_no_locks_of_third_parties(built):
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    packages = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert packages == {*OURS, *FIXTURES}
    assert not [name for name in names if "third_party" in name]


def test_every_help_works_without_the_extras(installed, tmp_path):
    commands = run(installed / "python", "-c", LISTED, folder=tmp_path)
    assert commands.returncode == 0, commands.stderr
    assert len(commands.stdout.splitlines()) > 30
    done = run(installed / "python", "-c", HELP, folder=tmp_path, input=commands.stdout)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("inspect", MODEL),
        ("verify", MODEL),
        ("diff", MODEL, MODEL),
        ("compat", MODEL),
        ("edit", "slim", MODEL, "--out", "slim"),
        ("contract", "write", MODEL, "--out", "contract"),
        ("migrate", MODEL, "--out", "out", "--dry-run"),
        ("downgrade", MODEL, "--out", "older", "--target", "2.4", "--no-proof"),
    ],
    ids=lambda command: command[0],
)
def test_models_are_looked_at_and_edited_without_the_extras(installed, tmp_path, command):
    done = run(installed / "savedmodel-compat", *map(str, command), folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        ((), 0, "optional"),
        (("--serving",), 1, "missing"),
        (("local",), 1, "missing"),
        (("--json",), 0, '"ok": true'),
    ],
)
def test_the_doctor_runs_without_the_extras_that_it_looks_for(
    installed, tmp_path, options, code, word
):
    done = run(installed / "savedmodel-compat", "runtimes", "doctor", *options, folder=tmp_path)
    assert (done.returncode, done.stderr) == (code, "")
    assert (
        word in done.stdout.splitlines()[0] and "savedmodel-compat[" in done.stdout.splitlines()[0]
    )


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (("matrix", "run", "--case", "half_plus_two", "--out", "out"), "matrix"),
        (("check", MODEL), "matrix"),
        (("migrate", MODEL, "--out", "out"), "tf"),
        (("runtimes", "list"), "matrix"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else value,
)
def test_a_missing_extra_is_named(installed, tmp_path, command, extra):
    done = run(installed / "savedmodel-compat", *map(str, command), folder=tmp_path)
    assert done.returncode == 4
    assert f'pip install "savedmodel-compat[{extra}]"' in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
