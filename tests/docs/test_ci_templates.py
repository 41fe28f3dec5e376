"""The shell commands of the GitHub actions and of the GitLab template, run as they stand; only the
installation is left out.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from compat_matrix.verdict import NO_ENTRIES

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "fixtures_v1" / "module_functions" / "model"


def run(script, folder, **variables):
    """Run a script with bash as CI does, with the programs of this environment; its exit status and
    output.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {
        **os.environ,
        "PATH": path,
        "PYTHONPATH": str(ROOT),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        **variables,
    }
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def action(name):
    """The steps of an action by name, and the defaults of its inputs."""
    read = yaml.safe_load((ROOT / "actions" / name / "action.yml").read_text(encoding="utf-8"))
    inputs = {
        f"${{{{ inputs.{key} }}}}": value.get("default") for key, value in read["inputs"].items()
    }
    return {step["name"]: step for step in read["runs"]["steps"]}, inputs


def variables(step, inputs, **given):
    """The environment of a step, from the inputs that are given and the defaults of the others."""
    return {name: given.get(name, inputs[value]) for name, value in step["env"].items()}


@pytest.mark.tensorflow
@pytest.mark.parametrize("damaged", [False, True], ids=["sound", "damaged"])
def test_the_action_check(tmp_path, damaged):
    steps, inputs = action("check")
    subprocess.run(["cp", "-r", str(MODEL), str(tmp_path / "model")], check=True)
    if damaged:
        (next((tmp_path / "model" / "variables").glob("*.data*"))).write_bytes(b"")
    summary = tmp_path / "summary.md"
    status, output = run(
        steps["Verify"]["run"], tmp_path, **variables(steps["Verify"], inputs, MODELS="model")
    )
    assert status == 0, output
    found = json.loads(
        (tmp_path / "savedmodel-compat-out" / "verify.sarif").read_text(encoding="utf-8")
    )
    assert bool(found["runs"][0]["results"]) == damaged
    given = variables(
        steps["Check"], inputs, MODELS="model", ARGUMENTS="--consumer tf2 --check load"
    )
    status, output = run(steps["Check"]["run"], tmp_path, GITHUB_STEP_SUMMARY=str(summary), **given)
    assert status == (1 if damaged else 0), output
    assert ("1 of 1 check failed" in summary.read_text(encoding="utf-8")) == damaged
    assert (tmp_path / "savedmodel-compat-out" / "junit.xml").is_file()


@pytest.mark.tensorflow
def test_the_action_gate(tmp_path):
    steps, inputs = action("gate")
    summary = tmp_path / "summary.md"
    shutil.copytree(ROOT / "fixtures_v1" / "half_plus_two", tmp_path / "fixtures" / "half_plus_two")
    arguments = (
        f"--fixtures fixtures --expectations {NO_ENTRIES} --consumer tf2 --check load -n 1 --same"
    )
    given = variables(
        steps["Gate"], inputs, BASELINE="local", CANDIDATE=sys.executable, ARGUMENTS=arguments
    )
    status, output = run(steps["Gate"]["run"], tmp_path, GITHUB_STEP_SUMMARY=str(summary), **given)
    assert status == 0, output
    assert "nothing blocks" in summary.read_text(encoding="utf-8")


@pytest.mark.tensorflow
def test_the_gitlab_template(tmp_path):
    jobs = yaml.safe_load((ROOT / "templates" / "gitlab.yml").read_text(encoding="utf-8"))
    job = jobs[".savedmodel-compat-check"]
    install, check = job["script"]
    assert "pip install" in install
    given = {**job["variables"], "MODELS": str(MODEL), "ARGUMENTS": "--consumer tf2 --check load"}
    status, output = run(check, tmp_path, **given)
    assert status == 0, output
    assert (tmp_path / job["artifacts"]["reports"]["junit"]).is_file()


@pytest.mark.parametrize("name", ["check", "gate"])
def test_the_page_lists_the_inputs(name):
    _, inputs = action(name)
    page = (ROOT / "docs/exporters/ci.md").read_text(encoding="utf-8")
    assert [key for key in inputs if f"`{key.split('.')[1].removesuffix(' }}')}`" not in page] == []
