"""The fixture ``savedmodel_compat`` as its users have it: a project of their own, a real pytest,
our entry point.

Every consumer is tests/support/fake_worker.py; test_exporter_plugin_tf.py does it with real
exporters and TensorFlow.
"""

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import tomlkit
from fake_artifacts import saved_model
from fake_runtime import fake_runtime

ROOT = Path(__file__).resolve().parents[2]
CONFTEST = """
import os
from pathlib import Path
import numpy as np
import pytest

@pytest.fixture(autouse=True)
def fake_tensorflow(monkeypatch):
    from compat_matrix.exports import session
    from compat_matrix.runtimes.runtime import Runtime
    monkeypatch.setattr(session, "local_runtime", lambda: Runtime("local", Path(os.environ["FAKE_PYTHON"]), "1.0"))

@pytest.fixture
def export(tmp_path):
    def write(misbehave=""):
        (tmp_path / "export").mkdir()
        (tmp_path / "export" / "saved_model.pb").write_bytes(Path(os.environ["FAKE_MODEL"]).read_bytes())
        (tmp_path / "export" / "misbehave").write_text(misbehave)
        return tmp_path / "export"
    return write
"""
RIGHT = '{"serving_default": [([1, 2], [2.5, 3])]}'


def installed(folder):
    """The metadata that pip would leave beside our packages: a folder for ``sys.path``, made of
    pyproject.toml.
    """
    project = tomlkit.parse((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = folder / f"savedmodel_compat-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = [
        line
        for group, points in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {target}" for name, target in points.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


class Project:
    """Somebody's project with a test suite."""

    def __init__(self, folder):
        self.folder = folder / "project"
        self.folder.mkdir()
        (self.folder / "conftest.py").write_text(CONFTEST)
        (folder / "model.pb").write_bytes(saved_model())
        path = os.pathsep.join(
            map(
                str,
                (ROOT, installed(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])),
            )
        )
        fake = fake_runtime(folder).python
        self.environment = {
            **os.environ,
            "PYTHONPATH": path,
            "FAKE_PYTHON": str(fake),
            "FAKE_MODEL": str(folder / "model.pb"),
        }
        self.environment.pop("PYTEST_DISABLE_PLUGIN_AUTOLOAD", None)
        self.base = folder / "base"

    def write(self, *tests, ini=""):
        (self.folder / "test_it.py").write_text(
            "\n\n".join(["import numpy as np, pytest, sys", *tests])
        )
        (self.folder / "pytest.ini").write_text(f"[pytest]\n{ini}\n")

    def command(self, *arguments):
        return [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            f"--basetemp={self.base}",
            *arguments,
        ]

    def run(self, *arguments):
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def test_a_suite_that_does_not_use_it_imports_nothing_of_ours_but_the_plugin(project):
    (project.folder / "conftest.py").unlink()
    project.write(
        "def test_it(pytestconfig):\n    assert"
        " pytestconfig.pluginmanager.has_plugin('savedmodel_compat')\n    ours = {n for n in"
        " sys.modules if n.split('.')[0] in ('compat_matrix', 'reference_impl') or n.startswith('savedmodel_')}\n    assert ours"
        " == {'savedmodel_compat', 'savedmodel_compat.exporter_plugin'}, ours\n    assert not"
        " {'tensorflow', 'google.protobuf', 'rich', 'jinja2', 'psutil'} & set(sys.modules)\n"
    )
    done = project.run("-q")
    assert done.returncode == 0, done.stdout
    assert "savedmodel-compat" not in done.stdout


def test_it_passes_fails_and_says_at_the_end_what_was_not_run(project):
    project.write(
        "def test_right(savedmodel_compat, export):\n    assert savedmodel_compat.check(export(),"
        f" {RIGHT}).ok",
        "def test_wrong(savedmodel_compat, export):\n   "
        f" savedmodel_compat.check(export('c_api_worker/call=wrong'), {RIGHT})",
        "def test_lost(savedmodel_compat, export):\n    savedmodel_compat.check(export(), {'score':"
        " [[1, 2]]})",
        "def test_dies(savedmodel_compat, export):\n   "
        f" savedmodel_compat.check(export('tf2_worker/call=abort'), {RIGHT})",
        "def test_after(savedmodel_compat, export):\n    savedmodel_compat.check(export(),"
        f" {RIGHT})",
        "def test_none(savedmodel_compat, tmp_path):\n    savedmodel_compat.check(tmp_path)",
        "def test_chance(savedmodel_compat, export):\n   "
        " savedmodel_compat.check(export('call=chance'))",
    )
    done = project.run("-W", "error", "--junitxml=junit.xml", "--strict-markers", "--strict-config")
    assert done.returncode == 1
    text = done.stdout
    assert "5 failed, 2 passed" in text, text
    assert "element [1] is 4.0, recorded 3.0" in text
    assert "no signature 'score'" in text
    assert "CRASH  tf2@1.0 / values" in text
    assert "SavedModelError" in text or "MissingFileError" in text
    assert "test_it.py::test_chance: NOT_RUN  all / asked, compared: " in text
    assert text.count("savedmodel_compat.check(") == 5  # the line of the test, and none of ours
    # The evidence of what failed stays, that of what passed goes; workers are gone.
    kept = {path.name for path in next(project.base.glob("savedmodel_compat*")).iterdir()}
    assert kept == {
        "workers",
        *(f"test_it.py_test_{name}" for name in ("wrong", "lost", "dies", "chance")),
    }
    properties = ElementTree.parse(project.folder / "junit.xml").iter("property")
    told = [
        json.loads(item.get("value"))
        for item in properties
        if item.get("name") == "savedmodel_compat"
    ]
    assert len(told) == 6
    assert told[0]["counts"]["PASS"] > 20


def test_options_come_from_the_ini_file_the_marker_and_the_call_the_closest_first(project):
    project.write(
        "def consumers(report):\n    return {c.consumer for c in report.plan} - {'format', 'all'}",
        "def test_ini(savedmodel_compat, export):\n    report = savedmodel_compat.check(export(),"
        f" {RIGHT})\n    assert consumers(report) == {{'c_api', 'tf2'}}\n    assert"
        " report.prepared[0].directory.is_relative_to(r'%s')" % (project.folder / "kept"),
        "@pytest.mark.savedmodel_compat(consumer='reference')\ndef test_marker(savedmodel_compat,"
        f" export):\n    assert consumers(savedmodel_compat.check(export(), {RIGHT})) =="
        " {'reference'}",
        "@pytest.mark.savedmodel_compat(consumer='reference')\ndef test_call(savedmodel_compat,"
        f" export):\n    assert consumers(savedmodel_compat.check(export(), {RIGHT},"
        " consumer=['v1_session'])) == {'v1_session'}",
        "def test_tolerance(savedmodel_compat, export):\n"
        "    savedmodel_compat.check(export(), {'serving_default': [([1, 2], [2.5, 3.01])]})",
        "def test_unknown(savedmodel_compat, export):\n"
        "    with pytest.raises(ValueError, match='no option .consumers.; there are'):\n"
        f"        savedmodel_compat.check(export(), {RIGHT}, consumers='tf2')",
        "def test_run_does_not_fail(savedmodel_compat, export):\n"
        f"    report = savedmodel_compat.run(export('call=wrong'), {RIGHT})\n"
        "    assert not report.ok and report.failures[0].outcome == 'FAIL_VALUE'",
        ini=(
            "savedmodel_compat_consumer = c_api tf2\nsavedmodel_compat_check ="
            " values\nsavedmodel_compat_out = kept\nsavedmodel_compat_tolerance = 0.1 0 rounded by"
            " hand\nsavedmodel_compat_limit = 30"
        ),
    )
    done = project.run("-q", "--strict-markers")
    assert done.returncode == 0, done.stdout
    assert (project.folder / "kept" / "test_it.py_test_ini" / "report.html").is_file()


def test_it_works_in_the_processes_of_xdist_and_beside_the_plugin_of_the_matrix(project):
    pytest.importorskip("xdist")
    project.write(
        *[
            f"def test_{n}(savedmodel_compat, export):\n    savedmodel_compat.check(export(),"
            f" {RIGHT})"
            for n in range(2)
        ],
        "def test_chance(savedmodel_compat, export):\n   "
        " savedmodel_compat.check(export('call=chance'))",
    )
    done = project.run("-q", "-n", "2", "-p", "compat_matrix.pytest_plugin")
    assert "1 failed, 2 passed" in done.stdout, done.stdout
    assert "3 exports checked:" in done.stdout
    assert "test_chance: NOT_RUN" in done.stdout


def test_without_pytests_temporary_folders_evidence_goes_to_one_of_the_system(project, tmp_path):
    project.write(
        "def test_it(savedmodel_compat):\n    import os, pathlib, tempfile\n    folder ="
        " pathlib.Path(tempfile.mkdtemp())\n    (folder /"
        " 'saved_model.pb').write_bytes(pathlib.Path(os.environ['FAKE_MODEL']).read_bytes())\n   "
        f" savedmodel_compat.check(folder, {RIGHT}, check=['values'], consumer='c_api')"
    )
    command = [
        argument
        for argument in project.command("-q", "-p", "no:tmpdir")
        if "basetemp" not in argument
    ]
    environment = {**project.environment, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        command, cwd=project.folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [path.name for path in tmp_path.glob("savedmodel_compat-*/*")] == ["workers"]


def test_an_interrupted_session_leaves_no_worker(project):
    pid = project.folder / "pid"
    project.write(
        "def test_it(savedmodel_compat, export):\n   "
        f" savedmodel_compat.check(export('call=pid:{pid}'), {RIGHT})"
    )
    running = subprocess.Popen(
        project.command("-q"), cwd=project.folder, env=project.environment, stdout=subprocess.PIPE
    )
    while not (pid.exists() and pid.read_text()):
        assert running.poll() is None, "ended before the worker was asked"
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    running.communicate()
    assert running.returncode == 2
    worker = int(pid.read_text())
    while alive(worker):  # ended with the session, or it would sleep for ten minutes
        time.sleep(0.05)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_no_two_tests_share_a_folder():
    from savedmodel_compat.exporter_plugin import _folder_name

    long = [f"tests/test_it.py::test_it[{first}{'x' * 200}]" for first in "ab"]
    assert len({_folder_name(nodeid) for nodeid in long}) == 2
    assert all(
        len(_folder_name(nodeid)) < 120 and "/" not in _folder_name(nodeid) for nodeid in long
    )
    assert _folder_name("tests/test_it.py::test_it[a/b]") == "tests_test_it.py_test_it_a_b"


@pytest.mark.parametrize(
    ("name", "helpful"), [("consumers", "consumer?"), ("chekc", "check?"), ("out", "ini")]
)
def test_an_option_that_a_check_lacks_is_named_with_the_one_that_was_meant(name, helpful):
    from savedmodel_compat.exporter_plugin import _unknown_option

    assert helpful in _unknown_option(name)
