"""The workflow of docs/exporters/check_exports.md: its shell steps are found, and call what exists.

`python -m docs.actions` runs them.
"""

import shlex

import click
from plugin_world import ROOT

from savedmodel_compat.cli import main


def test_the_steps_of_the_workflow_call_what_exists(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT))
    from docs import actions

    install, tests, check = (shlex.split(step) for step in actions.steps())
    assert (install[:2], tests[:3], check[0]) == (
        ["pip", "install"],
        ["python", "-m", "pytest"],
        "savedmodel-compat",
    )
    command = main.get_command(click.Context(main), check[1])
    (tmp_path / "exports").mkdir()
    monkeypatch.chdir(tmp_path)
    given = command.make_context(check[1], check[2:]).params
    assert [str(given[name]) for name in ("out", "junit")] == ["compat-exports", "exports.xml"]
