"""The hooks for contributors run what `tox -e lint` runs."""

import configparser
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_each_hook_is_a_command_of_lint():
    read = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    lint = [line.split() for line in tox["testenv:lint"]["commands"].splitlines() if line]
    hooks = [hook["entry"].split() for repo in read["repos"] for hook in repo["hooks"]]
    assert len(hooks) >= 4
    # ruff gets the changed files in place of `.`, and pre-commit wants it to write
    commands = [command[:3] if command[0] == "python" else command[:2] for command in lint]
    assert [hook for hook in hooks if hook[:3] not in commands and hook[:2] not in commands] == []
