"""A clock that is set by hours, many times while a command runs: no wait, limit, lock or sweep goes
by the time of day.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import fake_artifacts
import pytest
from matrix_world import small_world
from model_edits import fixture

from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.packages import OURS

HERE = Path(__file__).parents[1]
REPO = HERE.parent
HOUR = 3600
COMPILER = shutil.which("cc") or shutil.which("gcc")
preloaded = pytest.mark.skipif(
    not sys.platform.startswith("linux") or COMPILER is None,
    reason="no C compiler for the library that is preloaded (Linux)",
)


@pytest.fixture(scope="module")
def jumping(tmp_path_factory):
    """The environment of a process whose time of day jumps, tried on one that looks at it."""
    library = tmp_path_factory.mktemp("clock") / "jumping_clock.so"
    subprocess.run(
        [
            COMPILER,
            "-O1",
            "-shared",
            "-fPIC",
            "-o",
            library,
            HERE / "support/jumping_clock.c",
            "-ldl",
        ],
        check=True,
    )
    environment = {"LD_PRELOAD": os.fspath(library), "JUMPING_CLOCK": "1"}
    look = "import time\nfor _ in range(12): print(time.time(), time.monotonic()); time.sleep(0.1)"
    said = subprocess.run(
        [sys.executable, "-c", look],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    days, steady = zip(*[map(float, line.split()) for line in said.stdout.splitlines()])
    assert max(days) - min(days) > HOUR and any(
        later < earlier for earlier, later in zip(days, days[1:])
    )
    assert max(steady) - min(steady) < HOUR
    return environment


class Jumping:
    """A small world whose commands live with such a clock."""

    def __init__(self, world, environment):
        self.world = world
        plain = world.environment
        world.environment = lambda *arguments: {**plain(*arguments), **environment}


@preloaded
def test_a_run_and_its_resumption_observe_everything_and_take_no_hours(jumping, tmp_path):
    world = Jumping(small_world(tmp_path), jumping).world
    for arguments in ((), ("--resume",)):
        done = world.run(*arguments)
        assert done.returncode == ExitCode.AS_EXPECTED, done.stdout + done.stderr
        summary = world.summary()
        assert (summary["observed"], summary["not_run"]) == (summary["planned"], [])
        assert 0 <= summary["run"]["seconds"] < HOUR and all(
            0 <= r.get("seconds", 0) < HOUR for r in world.results().values()
        )
    cells = len(world.executed())
    assert (
        world.run("--resume").returncode == ExitCode.AS_EXPECTED and len(world.executed()) == cells
    )  # nothing is stale


@preloaded
def test_a_lock_is_held_as_long_as_its_process_runs(jumping, tmp_path):
    world = Jumping(small_world(tmp_path), jumping).world
    world.behave(["*", {"wait_for": "go"}])
    ours = (
        "--cases-dir",
        world.cases,
        "--fixtures",
        world.fixtures,
        "--expectations",
        world.ledger,
        "--out",
        world.out,
        "-n",
        "1",
    )
    command = [
        sys.executable,
        "-m",
        "savedmodel_compat",
        "matrix",
        "run",
        *map(str, ours),
        "--",
        "-p",
        "matrix_double",
    ]
    first = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=world.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        while not world.executed():
            assert first.poll() is None, first.communicate()
            time.sleep(0.02)
        for _ in range(3):
            second = world.run()
            assert second.returncode == ExitCode.HARNESS_ERROR and "another run" in second.stderr
        (tmp_path / "go").touch()
        first.communicate()
        assert first.returncode == ExitCode.AS_EXPECTED
    finally:
        first.kill()
        first.communicate()


def check(artifact, out, environment, limit):
    """What `check` observes of a model of tests/support/fake_worker.py, which needs no
    TensorFlow.
    """
    model = shutil.copytree(artifact / "model", out.with_suffix(".model"))
    worker = f"mine={sys.executable} {HERE / 'support/fake_worker.py'}"
    command = [
        sys.executable,
        "-m",
        "savedmodel_compat",
        "check",
        model,
        "--consumer",
        worker,
        "--check",
        "values",
    ]
    command += ["--requests", artifact / "io", "--limit", limit, "--out", out]
    done = subprocess.run(
        [*map(str, command)],
        cwd=REPO,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    lines = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    return done, [line["outcome"] for line in lines if "mine" in line["cell"]]


@preloaded
def test_a_limit_is_neither_reached_early_nor_never(jumping, tmp_path):
    for misbehave, limit, wanted in (("", 250, "PASS"), ("call=hang", 3, "TIMEOUT")):
        artifact = fake_artifacts.write_artifact(tmp_path / wanted, misbehave)
        done, outcomes = check(artifact, tmp_path / f"out{wanted}", jumping, limit)
        assert outcomes == [wanted], done.stdout + done.stderr


@preloaded
@pytest.mark.tensorflow
def test_a_migration_is_proved(jumping, tmp_path):
    command = [
        sys.executable,
        "-m",
        "savedmodel_compat",
        "migrate",
        fixture("half_plus_two"),
        "--out",
        tmp_path / "out",
    ]
    environment = {**os.environ, **jumping}
    for _ in range(2):  # the second time nothing is to be done
        done = subprocess.run(
            [*map(str, command)],
            cwd=REPO,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == ExitCode.AS_EXPECTED, done.stdout + done.stderr
    (record,) = (tmp_path / "out" / "records").rglob("*.json")
    assert json.loads(record.read_text())["status"] == "migrated"


# Tests of others that wait: for installations, for locks between them, for servers to start, load
# and answer (gRPC and REST).
WAITING = {
    "runtimes/test_runtimes_install.py": "two_installations or kept_unless or killed_installation",
    "savedmodel_servers/test_serving_drivers_binary.py": (
        "many_models or slow_start or each_batch or nothing_is_left"
    ),
    "savedmodel_standin/test_standin_lifecycle.py": "empty_list or new_version or warm_up",
}


@preloaded
@pytest.mark.tensorflow
@pytest.mark.parametrize("file", WAITING)
def test_installations_and_servers_are_waited_for(jumping, file, tmp_path):
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        HERE / file,
        "-k",
        WAITING[file],
    ]
    command += ["--basetemp", tmp_path / "tests"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    done = subprocess.run(
        [*map(str, command)],
        cwd=REPO,
        env={**environment, **jumping},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert " passed" in done.stdout and "skipped" not in done.stdout.splitlines()[-1]


# Who may ask for the time of day, and what for. What waits, limits, compares ages or measures asks
# the monotonic clock.
TIME_OF_DAY = {
    "compat_matrix/commands/parts/expect.py": "entries of the ledger expire on a day",
    "compat_matrix/cells/run_file.py": "a stamp for people",
    "savedmodel_migration/migrate/report.py": "a stamp for people",
    "compat_matrix/commands/matrix.py": "entries of the ledger expire on a day",
    "savedmodel_servers/drivers/guard.py": "a stamp for people",
    "compat_matrix/exports/session.py": "entries of the ledger expire on a day",
    "compat_matrix/engine/running.py": "entries of the ledger expire on a day",
    "savedmodel_standin/log.py": "a stamp for people",
}
_ASKING = {
    ("time", "time"),
    ("time", "time_ns"),
    ("time", "gmtime"),
    ("time", "localtime"),
    ("time", "ctime"),
}
_NOW = {"now", "utcnow", "today"}
_AGES = {"st_mtime", "st_ctime", "getmtime", "getctime"}  # with _ns: which file it is, not how old


def asks_for_the_time_of_day(node):
    if not isinstance(node, ast.Attribute):
        return False
    owner = (
        node.value.id
        if isinstance(node.value, ast.Name)
        else node.value.attr
        if isinstance(node.value, ast.Attribute)
        else ""
    )
    return (
        (owner, node.attr) in _ASKING
        or node.attr in _AGES
        or (node.attr in _NOW and owner in ("datetime", "date"))
    )


def test_nothing_else_asks_for_the_time_of_day():
    found = set()
    for package in OURS:
        for file in sorted((REPO / package).rglob("*.py")):
            if "cases" not in file.parts and any(
                map(asks_for_the_time_of_day, ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
            ):
                found.add(file.relative_to(REPO).as_posix())
            assert (
                "from time import" not in file.read_text(encoding="utf-8") or "cases" in file.parts
            ), file
    assert found == set(TIME_OF_DAY)
