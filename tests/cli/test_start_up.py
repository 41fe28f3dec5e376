"""What the commands that read a model import: each module costs start-up time, which is most of
their time for a small model.
"""

import json
import subprocess
import sys

import pytest
from model_edits import fixture

# Of writing, of worker processes, of folders of models, of errors: nothing that one model needs.
UNNEEDED = (
    "concurrent.futures",
    "logging",
    "savedmodel_tools.diff.trees",
    "savedmodel_common.extras",
    "tensorflow",
)
PROGRAM = """
import json, sys
from savedmodel_compat.cli import main
try:
    main(sys.argv[2:], standalone_mode=False)
except SystemExit as error:
    assert not error.code, error
open(sys.argv[1], "w").write(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.parametrize("command", ["inspect", "verify", "diff"])
def test_a_command_for_one_model_imports_nothing_for_other_tasks(command, tmp_path):
    models = [str(fixture("module_functions"))] * (2 if command == "diff" else 1)
    subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "modules"), command, *models],
        check=True,
        capture_output=True,
    )
    imported = json.loads((tmp_path / "modules").read_text())
    assert f"savedmodel_tools.commands.{command}" in imported
    assert sorted(set(UNNEEDED) & set(imported)) == []
