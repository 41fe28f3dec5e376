"""What the README shows is run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.tensorflow
def test_the_python_example_runs(tmp_path):
    (tmp_path / "fixtures_v1").symlink_to(ROOT / "fixtures_v1")
    (program,) = (part.split("```")[0] for part in TEXT.split("```python\n")[1:])
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-W", "error::UserWarning", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "fine_tuned" / "saved_model.pb").is_file()


def test_the_command_without_tensorflow_prints_what_is_shown():
    command, shown = (part.split("```")[0] for part in TEXT.split("## Without TensorFlow")[1].split("```\n")[1:4:2])
    name, _, rest = command.partition(" ")
    assert name == "savedmodel-compat"
    arguments, tail = rest.strip().split(" | ")
    assert tail == "tail -n +4"
    run = [sys.executable, "-m", "compat_matrix", *arguments.split()]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "200"})
    lines = shown.rstrip().split("\n")
    assert lines.pop() == "..."
    assert done.stdout.split("\n")[3 : 3 + len(lines)] == lines


def test_the_needs_of_a_model_are_those_shown():
    command, shown = (part.split("```")[0] for part in TEXT.split("## Every TensorFlow")[1].split("```\n")[1:4:2])
    run = [sys.executable, "-m", "compat_matrix", *command.split()[1:]]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(shown)
