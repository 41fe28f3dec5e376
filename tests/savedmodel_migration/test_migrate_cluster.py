"""``migrate --cluster``: a real scheduler, two worker processes, one killed half way.

Every model once, none lost.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from savedmodel_common.exit_codes import ExitCode
from savedmodel_compat import cli

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"
COPIES = 5


def port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture
def cluster(tmp_path):
    """(address, worker processes)."""
    pytest.importorskip("distributed")
    address = f"tcp://127.0.0.1:{port()}"
    options = {
        "cwd": tmp_path,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "start_new_session": True,
    }
    environment = {**os.environ, "PYTHONPATH": str(FIXTURES.parent)}
    scheduler = [
        sys.executable,
        "-m",
        "distributed.cli.dask_scheduler",
        "--host",
        address,
        "--no-dashboard",
    ]
    worker = [
        sys.executable,
        "-m",
        "distributed.cli.dask_worker",
        address,
        "--nthreads",
        "1",
        "--no-nanny",
        "--no-dashboard",
    ]
    started = [
        subprocess.Popen(command, env=environment, **options)
        for command in (scheduler, worker, worker)
    ]
    yield address, started[1:]
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.tensorflow
def test_a_worker_killed_half_way_loses_no_model(cluster, tmp_path):
    address, workers = cluster
    zoo, out = tmp_path / "zoo", tmp_path / "out"
    for number in range(COPIES):
        shutil.copytree(FIXTURES / "half_plus_two", zoo / f"m{number}")
    shutil.copytree(FIXTURES / "contrib_op", zoo / "refused")
    killed = threading.Event()

    def kill():
        while not list((out / "records").rglob("*.json")):
            time.sleep(0.02)
        os.killpg(workers[0].pid, signal.SIGKILL)
        killed.set()

    threading.Thread(target=kill, daemon=True).start()
    result = CliRunner().invoke(
        cli.main, ["migrate", str(zoo), "--out", str(out), "--cluster", address, "--json"]
    )
    assert killed.is_set()
    found = json.loads(result.stdout)["models"]
    assert [(model["relative"], model["status"]) for model in found] == [
        *((f"m{number}/model", "migrated") for number in range(COPIES)),
        ("refused/model", "refused"),
    ]
    assert all(
        (out / "models" / f"m{number}/model/saved_model.pb").exists() for number in range(COPIES)
    )
    assert not (out / ".work").exists()
    assert result.exit_code == ExitCode.UNEXPECTED


def test_where_nobody_answers_it_is_wrong_usage(tmp_path):
    pytest.importorskip("distributed")
    command = [
        "migrate",
        str(FIXTURES / "half_plus_two"),
        "--out",
        str(tmp_path),
        "--cluster",
        f"tcp://127.0.0.1:{port()}",
    ]
    result = CliRunner().invoke(
        cli.main, command, env={"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"}
    )
    assert result.exit_code == ExitCode.USAGE
    assert "no scheduler answers" in result.output
