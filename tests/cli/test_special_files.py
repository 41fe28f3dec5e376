"""Pipes, sockets, devices and circles of links in a model: named by every command, opened by
none.
"""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import fresh_tensorflow
import pytest
from model_edits import fixture

from reference_impl.errors import FileAccessError
from reference_impl.format.container import layout
from reference_impl.views.model import inspect
from savedmodel_tools.verify.rules import all_rules
from savedmodel_tools.verify.run import verify

PLACES = (
    "assets/vocabulary.txt",
    "variables/variables.data-00000-of-00001",
    "assets/other",
    "assets.extra/other",
    "fingerprint.pb",
)
LIMIT = 60  # seconds in which a command must be done: it waits for nobody
LOAD = """
import sys
import tensorflow as tf
import reference_impl
from reference_impl.errors import SavedModelError
try:
    if sys.argv[2] == "graph":  # where TensorFlow opens the shards, when a session runs
        tf.compat.v1.disable_eager_execution()
    reference_impl.load(sys.argv[1])
except SavedModelError as error:
    print(error)
    sys.exit(1)
"""


def bound(path):
    with socket.socket(socket.AF_UNIX) as server:
        folder = Path.cwd()
        os.chdir(path.parent)  # the name of a socket must be short
        try:
            server.bind(path.name)
        finally:
            os.chdir(folder)


KINDS = {
    "a named pipe": os.mkfifo,
    "a socket": bound,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a circle of symbolic links": lambda path: path.symlink_to(path.name),
}


def planted(folder, place, kind):
    model = shutil.copytree(fixture("module_functions"), folder / "model")
    path = model / place
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    KINDS[kind](path)
    return model


def run(*command):
    return subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_verify_names_it(place, kind, tmp_path):
    model = planted(tmp_path, place, kind)
    report = verify(model, follow_links=True)
    assert report.error is None
    found = {item.rule: item for item in report.findings}
    assert (
        found["SMC108"].message == f"{place} is {kind}" and found["SMC108"].severity.word == "error"
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_inspect_names_it(place, kind, tmp_path):
    problems = inspect(planted(tmp_path, place, kind), follow_links=True).problems
    assert f"{place} is {kind}, not a regular file" in problems


@pytest.mark.parametrize("file", layout.FILES)
def test_a_directory_in_place_of_a_file_is_named_by_verify_and_inspect(file, tmp_path):
    model = shutil.copytree(fixture("module_functions"), tmp_path / "model")
    (model / file).unlink(missing_ok=True)
    (model / file).mkdir(parents=True)
    if file == "saved_model.pb":  # or there is no model
        shutil.copy(fixture("pbtxt") / "saved_model.pbtxt", model)
    assert f"{file} is a directory" in [
        item.message for item in verify(model).findings if item.rule == "SMC108"
    ]
    assert f"{file} is a directory, not a regular file" in inspect(model).problems


@pytest.mark.tensorflow
def test_a_run_over_artifacts_does_not_wait_for_a_pipe(tmp_path):
    shutil.copytree("fixtures_v1/half_plus_two", tmp_path / "zoo" / "half_plus_two")
    os.mkfifo(tmp_path / "zoo" / "half_plus_two" / "model" / "pipe")
    command = [
        sys.executable,
        "-m",
        "savedmodel_compat",
        "matrix",
        "run",
        "--fixtures",
        str(tmp_path / "zoo"),
        "--out",
        str(tmp_path / "out"),
    ]
    done = subprocess.run(
        [*command, "--consumer", "c_api", "--check", "load", "-n", "1"],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.returncode, "model/pipe is not listed" in done.stdout) == (1, True), (
        done.stdout + done.stderr
    )


def test_a_pipe_somewhere_does_not_hide_damage_elsewhere(tmp_path):
    model = planted(tmp_path, "assets.extra/other", "a named pipe")
    os.truncate(model / "variables" / "variables.data-00000-of-00001", 1)
    assert {"SMC108", "SMC202"} <= {item.rule for item in verify(model).findings}


@pytest.mark.parametrize("rules", [["SMC202"], ["SMC203"], ["SMC211"], ["SMC212"]])
def test_a_checkpoint_that_the_machine_does_not_give_passes_no_rule(rules, tmp_path, monkeypatch):
    model = shutil.copytree(fixture("module_functions"), tmp_path / "model")

    def refuse(path):
        raise FileAccessError("cannot be opened: [Errno 13] Permission denied", file=path)

    monkeypatch.setattr(
        "reference_impl.format.bundle.reader.map_file", refuse
    )  # root may read everything, so no mode refuses it
    report = verify(model, [rule for rule in all_rules() if rule.id in rules])
    assert "Permission denied" in (report.error or "")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", (*PLACES[:2], "variables/variables.index"))
@pytest.mark.parametrize("command", ["diff", "edit slim"])
def test_a_command_that_would_read_it_ends_with_a_verdict_on_the_model(
    command, place, kind, tmp_path
):
    """Not with 4, which tells of the machine."""
    model = planted(tmp_path, place, kind)
    more = ["--follow-links"] if kind == "a device" and command == "diff" else []
    to = [fixture("module_functions")] if command == "diff" else ["--out", tmp_path / "out"]
    done = run("-m", "savedmodel_compat", *command.split(), model, *to, *more)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stdout + done.stderr
    assert Path(place).name in done.stderr + done.stdout


@pytest.mark.tensorflow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "place", ["assets/vocabulary.txt", "variables/variables.data-00000-of-00001"]
)
@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_load_refuses_it_and_does_not_wait(place, kind, mode, tmp_path):
    done = fresh_tensorflow.run(LOAD, planted(tmp_path, place, kind), mode)
    assert done.returncode == 1, done.stderr
    assert place in done.stdout and (
        f"{kind}, not a regular file" in done.stdout or "symbolic link out" in done.stdout
    )
