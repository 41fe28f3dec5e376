"""Shells complete commands, options and their values, as README.md and docs/commands.md say."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from savedmodel_compat.cli import main

ROOT = Path(__file__).parents[2]
COMMANDS = main.list_commands(click.Context(main))


def completed(line):
    """What bash is offered for a line, in a process: the values, and standard error."""
    variables = {
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
        "_SAVEDMODEL_COMPAT_COMPLETE": "bash_complete",
    }
    program = "from savedmodel_compat.cli import main; main(prog_name='savedmodel-compat')"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return [value.partition(",")[2] for value in done.stdout.splitlines()], done.stderr


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("savedmodel-compat insp", ["inspect"]),
        ("savedmodel-compat edit ta", ["tags"]),
        ("savedmodel-compat inspect --fo", ["--follow-links"]),
        ("savedmodel-compat inspect --only coll", ["collections"]),
        ("savedmodel-compat compat --targ", ["--target"]),
        ("savedmodel-compat verify fixtures_v1/ha", ["fixtures_v1/ha"]),  # a folder: the shell's
        ("savedmodel-compat matrix run --case tree_emp", ["tree_empty"]),
        ("savedmodel-compat gate run --case tree_empty,half_plus_t", ["tree_empty,half_plus_two"]),
        ("savedmodel-compat matrix run --consumer v1_", ["v1_session"]),
        ("savedmodel-compat check model --check reex", ["reexport"]),
        ("savedmodel-compat check model --check fing", ["fingerprint"]),
        ("savedmodel-compat gate run --baseline lo", ["local"]),
        ("savedmodel-compat gate run --baseline 2.20", ["2.20"]),
        ("savedmodel-compat check model --runtime 1.12", ["1.12"]),
        ("savedmodel-compat runtimes install tf1.15", ["tf1.15"]),
        ("savedmodel-compat gate bisect CELL --from 2.20", ["2.20"]),
        ("savedmodel-compat downgrade model --target 1.15", ["1.15"]),
        ("savedmodel-compat runtimes doctor inst", ["installed"]),
        ("savedmodel-compat serving upgrade --case rfc_net", ["rfc_net2"]),
        ("savedmodel-compat contract check --allow SIGNATURE_REM", ["SIGNATURE_REMOVED"]),
        ("savedmodel-compat verify --rule SMC413", ["SMC413"]),
        ("savedmodel-compat plugin-check tf2 --check hell", ["hello"]),
    ],
)
def test_a_line_is_completed_and_nothing_is_printed_beside_it(line, values):
    assert completed(line) == (values, "")


def test_folders_of_models_are_left_to_the_shell():
    (found,) = ShellComplete(main, {}, "savedmodel-compat", "_X").get_completions(["inspect"], "mo")
    assert (found.type, found.value) == ("dir", "mo")


def test_cases_are_those_of_the_folder_in_the_line(tmp_path):
    (tmp_path / "mine.py").touch()
    words = ["matrix", "run", "--cases-dir", str(tmp_path), "--case"]
    found = ShellComplete(main, {}, "savedmodel-compat", "_X").get_completions(words, "")
    assert [item.value for item in found] == ["mine"]


def test_the_help_says_how_to_switch_it_on():
    text = main.get_help(click.Context(main, info_name="savedmodel-compat"))
    assert 'eval "$(_SAVEDMODEL_COMPAT_COMPLETE=bash_source savedmodel-compat)"' in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_offers_its_options(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = main.get_command(click.Context(main), name)
    words, offered = ["missing"] if not isinstance(command, click.Group) else [], set()
    for item in ShellComplete(main, {}, "savedmodel-compat", "_X").get_completions(
        [name, *words], "-"
    ):
        offered.add(item.value)
    assert "--help" in offered
    assert (capsys.readouterr(), list(tmp_path.iterdir())) == (("", ""), [])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_line_of_the_pages_prints_a_script(shell):
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert f"{shell}_source" in page
    (variable,) = set(re.findall(r"_\w+_COMPLETE", page))
    program = "from savedmodel_compat.cli import main; main(prog_name='savedmodel-compat')"
    environment = {**os.environ, variable: f"{shell}_source"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "savedmodel-compat" in done.stdout and f"{shell}_complete" in done.stdout, done.stderr


SHELLS = {
    "bash": (
        ["bash", "--norc"],
        "COMP_WORDS=(savedmodel-compat insp); COMP_CWORD=1; _savedmodel_compat_completion"
        " savedmodel-compat insp; echo found ${COMPREPLY[@]}",
    ),
    # No pseudo-terminal, so zsh completes nothing: that it knows the function is what can fail.
    "zsh": (["zsh", "-f"], "echo found $_comps[savedmodel-compat]"),
    "fish": (["fish", "--no-config"], "echo found (complete -C 'savedmodel-compat insp')"),
}
FOUND = {"bash": "inspect", "zsh": "_savedmodel_compat_completion", "fish": "inspect"}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_real_shell_completes_after_the_line_of_the_pages(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    program = tmp_path / "savedmodel-compat"
    text = "from savedmodel_compat.cli import main; main(prog_name='savedmodel-compat')"
    program.write_text(f"#!{sys.executable}\n{text}\n")
    program.chmod(0o755)
    start, ask = SHELLS[shell]
    line = f'eval "$(_SAVEDMODEL_COMPAT_COMPLETE={shell}_source savedmodel-compat)"'
    path = f"{tmp_path}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*start, "-c", f"{line}\n{ask}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"found {FOUND[shell]}" in done.stdout, done.stderr
