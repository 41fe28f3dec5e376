"""Workers as forks of one process that has imported TensorFlow: each is a process of its own, and
dies its own death.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from compat_matrix.hosts.host import Host
from compat_matrix.runtimes.worker import Worker, WorkerDied

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks workers"),
]

HALF = Path(__file__).parents[2] / "fixtures_v1/half_plus_two/model"
LIMIT = 60.0
DRAWS = """
CLAUSES, FEATURES = (), ()


def build(tf, work):
    import random, numpy
    print(random.random(), numpy.random.rand(), float(tf.random.uniform([])))
    root = tf.Module()
    root.f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([])])
    return root, {"serving_default": root.f}


def requests(np):
    return []
"""


def parent(worker: Worker) -> psutil.Process:
    """The process that made the worker's."""
    return psutil.Process(process_id(worker)).parent()


def process_id(worker: Worker) -> int:
    worker.hello()
    return worker._process.pid


def load(worker: Worker) -> int:
    return int(worker.request("load", LIMIT, dir=str(HALF), tags=["serve"])["handle"])


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)


@pytest.fixture
def worker(warm_host: Host, request: pytest.FixtureRequest) -> Worker:
    return warm_host.worker("local", "tf2_worker", f"-{request.node.name[:40]}")


def test_programs_that_import_tensorflow_share_the_import(warm_host: Host, worker: Worker) -> None:
    others = [
        warm_host.worker("local", name, "-shared")
        for name in ("v1_session_worker", "reference_worker")
    ]
    assert {parent(one).pid for one in (worker, *others)} == {parent(worker).pid}
    assert parent(worker).pid != os.getpid() and parent(worker).ppid() == os.getpid()
    assert len({process_id(one) for one in (worker, *others)}) == 3


def test_the_c_loader_has_a_process_without_pythons_tensorflow(warm_host: Host) -> None:
    worker = warm_host.worker("local", "c_api_worker", "-alone")
    assert parent(worker).pid == os.getpid()
    assert "tensorflow" not in worker.last_hello["imported"]


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGSEGV, "SIGSEGV"), (signal.SIGKILL, "SIGKILL")]
)
def test_the_death_of_a_fork_is_named_and_costs_nobody_else(
    warm_host: Host, worker: Worker, number: int, name: str
) -> None:
    other = warm_host.worker("local", "tf2_worker", "-other")
    handle = load(other)
    pid, forker = process_id(worker), parent(worker).pid
    os.kill(pid, number)
    wait_for(worker._process._child.exited)
    with pytest.raises(WorkerDied) as caught:
        worker.check("load")
    assert caught.value.error_class == name
    assert not psutil.pid_exists(pid), "it is reaped"
    assert parent(worker).pid == forker
    assert other.request("signatures", LIMIT, handle=handle)["signatures"]


def test_a_stopped_fork_is_told_and_killed(worker: Worker) -> None:
    pid = process_id(worker)
    os.kill(pid, signal.SIGSTOP)
    wait_for(worker._process._child.stopped)
    with pytest.raises(WorkerDied) as caught:
        worker.check("load")
    assert caught.value.error_class == "stopped"
    assert not psutil.pid_exists(pid)


def test_forks_draw_different_numbers(warm_host: Host, tmp_path: Path) -> None:
    (tmp_path / "draws.py").write_text(DRAWS)
    drawn = []
    for name in ("one", "two"):
        worker = warm_host.worker("local", "tf2_worker", f"-draws-{name}")
        (tmp_path / f"scratch-{name}").mkdir()
        folders = {"dir": str(tmp_path / name), "scratch": str(tmp_path / f"scratch-{name}")}
        worker.request("produce", LIMIT, case=str(tmp_path / "draws.py"), **folders)
        drawn.append(worker._process.stdout.read_text().split()[:3])
    assert len(drawn[0]) == 3
    assert all(one != other for one, other in zip(*drawn)), drawn


def test_a_command_leaves_no_temporary_files(tmp_path: Path) -> None:
    """TensorFlow deletes the Python that AutoGraph writes when a process ends of its own accord,
    which no worker does.
    """
    (tmp_path / "temporary").mkdir()
    command = [
        sys.executable,
        "-m",
        "savedmodel_compat",
        "matrix",
        "run",
        "--case",
        "flow_autograph",
        "--consumer",
        "tf2",
        "-n",
        "1",
    ]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    done = subprocess.run(
        [*command, "--out", tmp_path / "out"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list((tmp_path / "temporary").iterdir())


def test_without_the_process_that_forks_workers_go_on_and_the_next_but_one_has_a_new_one(
    tmp_path: Path,
) -> None:
    with Host(tmp_path) as host:
        first = host.worker("local", "tf2_worker", "-first")
        handle, forker = load(first), parent(first)
        forker.kill()
        forker.wait(LIMIT)
        assert first.request("signatures", LIMIT, handle=handle)["signatures"]
        second = host.worker("local", "tf2_worker", "-second")
        assert load(second)
        third = host.worker("local", "tf2_worker", "-third")
        assert load(third)
        assert parent(third).pid != os.getpid(), "it is a fork again"
        os.kill(process_id(first), signal.SIGKILL)  # nobody tells its status
        wait_for(first._process._child.exited)
        with pytest.raises(WorkerDied) as caught:
            first.check("load")
        assert caught.value.error_class == "lost"


def test_all_end_with_the_harness(tmp_path: Path) -> None:
    program = f"""
import os, psutil, signal
from pathlib import Path
from compat_matrix.hosts.host import Host
host = Host(Path({str(tmp_path)!r}))
worker = host.worker("local", "tf2_worker")
worker.hello()
pid = worker._process.pid
print(pid, psutil.Process(pid).ppid(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    _, alive = psutil.wait_procs(
        [psutil.Process(int(pid)) for pid in done.stdout.split() if psutil.pid_exists(int(pid))],
        LIMIT,
    )
    assert not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]
