"""Every program in ``examples`` runs, with the arguments that its docstring shows."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEED_NO_TENSORFLOW = {"list_signatures.py"}


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(
            path,
            id=path.name,
            marks=[] if path.name in NEED_NO_TENSORFLOW else [pytest.mark.tensorflow],
        )
        for path in sorted((ROOT / "examples").glob("*.py"))
    ],
)
def test_an_example_runs_as_it_says(example, tmp_path):
    (command,) = re.findall(
        r"^ *python (examples/.*)$", example.read_text(encoding="utf-8"), re.MULTILINE
    )
    for name in ("examples", "fixtures_v1"):
        (tmp_path / name).symlink_to(ROOT / name)
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", *shlex.split(command)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout or len(list(tmp_path.iterdir())) > 2, "it prints or writes something"
