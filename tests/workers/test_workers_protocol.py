"""The worker host against a worker that crashes, hangs, floods and lies. Needs no TensorFlow."""

from __future__ import annotations

import ast
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from fake_runtime import fake_runtime

from compat_matrix.hosts.host import Host
from compat_matrix.runtimes.process import TAIL_BYTES, Process, TimedOut
from compat_matrix.runtimes.runtime import Runtime
from compat_matrix.runtimes.worker import NotStarted, ReplyError, Worker, WorkerDied, environment

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60.0  # for what must answer
SHORT = 1.0  # for what never does


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with Host(tmp_path / "out", {"fake": fake_runtime(tmp_path)}) as host:
        yield host


@pytest.fixture
def worker(host: Host) -> Worker:
    return host.worker("fake", "any")


Model = Callable[[str], Path]


@pytest.fixture
def model(tmp_path: Path) -> Model:
    """``model("load=abort")``: a directory that makes the worker misbehave so."""

    def make(words: str) -> Path:
        directory = tmp_path / f"model-{abs(hash(words))}"
        directory.mkdir(exist_ok=True)
        (directory / "misbehave").write_text(words)
        return directory

    return make


def load(worker: Worker, directory: Path, limit: float = LIMIT) -> int:
    handle: int = worker.request("load", limit, dir=str(directory), tags=["serve"])["handle"]
    return handle


def ended(pid: int) -> bool:
    """Whether a process is gone (or a zombie nobody has reaped yet)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + LIMIT
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def test_a_worker_says_what_it_is_and_answers(worker: Worker, model: Model) -> None:
    hello = worker.hello()
    assert hello["versions"]["fake"] == "1.0"
    assert hello["imported"] == []
    handle = load(worker, model(""))
    assert worker.request("signatures", LIMIT, handle=handle)["signatures"]["serving_default"][
        "inputs"
    ]


@pytest.mark.parametrize(
    ("word", "error_class", "message"),
    [
        ("abort", "SIGABRT", "was killed by SIGABRT while it was asked to 'load'"),
        ("exit", "exit 3", "ended with status 3"),
        ("garbage", "garbage", "this is no reply"),
        ("other_id", "garbage", "12345"),
        ("close", "closed", "closed its channel"),
        ("half", "garbage", "half a line"),
        ("twice", "garbage", "not a reply to request 2"),
        ("fork", "exit 4", "ended with status 4"),
    ],
)
def test_a_crash_is_named_and_costs_one_request(
    worker: Worker, model: Model, word: str, error_class: str, message: str
) -> None:
    with pytest.raises(WorkerDied) as caught:
        load(worker, model(f"load={word}"))
    assert caught.value.error_class == error_class
    assert message in str(caught.value)
    assert not caught.value.timed_out
    assert load(worker, model("")) == 1  # a new process: its first handle
    assert worker.generation == 2


@pytest.mark.parametrize(
    ("word", "last_words"),
    [("abort", "about to abort"), ("abort", "in misbehave"), ("hang", "in misbehave")],
)
def test_the_last_words_of_a_worker_are_kept(
    worker: Worker, model: Model, word: str, last_words: str
) -> None:
    """Its own, and the stack of a crash or a hang."""
    worker.hello()
    with pytest.raises(WorkerDied) as caught:
        load(worker, model(f"load={word}"), SHORT)
    assert last_words in caught.value.tail


@pytest.mark.parametrize("word", ["hang", "stop"])
def test_a_worker_that_never_answers_is_killed(worker: Worker, model: Model, word: str) -> None:
    worker.hello()
    with pytest.raises(WorkerDied) as caught:
        load(worker, model(f"load={word}"), SHORT)
    assert caught.value.timed_out
    stopped = ": it is stopped by a signal" if word == "stop" else ""
    assert str(caught.value) == f"no reply to 'load' within 1 s{stopped}"
    assert load(worker, model("")) == 1


def test_a_worker_that_reads_nothing_cannot_block_the_harness(worker: Worker) -> None:
    """The request is larger than a pipe holds, so that writing it must have a limit as well."""
    worker.hello()
    assert worker._process is not None
    os.kill(worker._process.pid, signal.SIGSTOP)
    with pytest.raises(TimedOut):
        worker._process.request({"op": "load", "dir": "x" * (4 << 20), "tags": []}, SHORT)


def test_a_flood_of_output_blocks_nobody(worker: Worker, model: Model) -> None:
    position = worker.log_position()
    assert load(worker, model("load=flood"))
    tail = worker.log_since(position)
    assert "line 4095" in tail
    assert len(tail) <= TAIL_BYTES


def test_children_of_a_worker_die_with_it(worker: Worker, model: Model, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    worker.hello()
    with pytest.raises(WorkerDied):
        load(worker, model(f"load=child:{pid_file}"), SHORT * 3)
    assert wait_until(lambda: ended(int(pid_file.read_text())))


def test_a_busy_worker_ends_when_the_harness_is_killed(model: Model, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    program = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "tests" / "support")!r}, {str(Path(__file__).parent)!r}]
from pathlib import Path
from compat_matrix.hosts.host import Host
from fake_runtime import fake_runtime
from test_workers_protocol import load
host = Host(Path({str(tmp_path / "out")!r}), {{"fake": fake_runtime(Path({str(tmp_path)!r}))}})
load(host.worker("fake", "any"), Path({str(model(f"load=pid:{pid_file}"))!r}))
"""
    harness = subprocess.Popen([sys.executable, "-c", program])
    try:
        assert wait_until(lambda: pid_file.exists() and bool(pid_file.read_text()))
        assert not ended(int(pid_file.read_text()))
    finally:
        harness.kill()
        harness.wait()
    assert wait_until(lambda: ended(int(pid_file.read_text())))


@pytest.mark.parametrize(
    ("word", "status", "error_class"),
    [
        ("error", "error", "OSError"),
        ("sys_exit", "error", "SystemExit"),
        ("refuse", "rejected", "__main__.Refusal"),
        ("unsupported", "unsupported", None),
    ],
)
def test_errors_are_replies(
    worker: Worker, model: Model, word: str, status: str, error_class: str | None
) -> None:
    with pytest.raises(ReplyError) as caught:
        load(worker, model(f"load={word}"))
    assert caught.value.status == status
    assert error_class in (None, caught.value.error_class)
    assert "misbehave" in caught.value.traceback
    assert worker.generation == 1


def test_an_operation_nobody_knows_is_unsupported(worker: Worker) -> None:
    with pytest.raises(ReplyError) as caught:
        worker.request("dance", LIMIT)
    assert caught.value.status == "unsupported"


def test_a_runtime_that_does_not_start_is_tried_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = tmp_path / "starts"
    monkeypatch.setenv("FAKE_STARTS", str(starts))
    monkeypatch.setenv("FAKE_BROKEN", "1")
    with Host(tmp_path / "out", {"fake": fake_runtime(tmp_path)}) as host:
        for _ in range(2):
            with pytest.raises(NotStarted, match="ImportError: "):
                host.worker("fake", "any").hello()
    assert starts.read_text().count("started") == 1


def test_a_worker_that_dies_while_it_starts_is_started_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = tmp_path / "starts"
    monkeypatch.setenv("FAKE_STARTS", str(starts))
    for deaths, text in ((1, ""), (2, "killed by SIGKILL")):
        starts.write_text("")
        monkeypatch.setenv("FAKE_KILLED", str(deaths))
        with Host(tmp_path / "out", {"fake": fake_runtime(tmp_path)}) as host:
            worker = host.worker("fake", "any")
            for _ in range(2):
                with pytest.raises(NotStarted, match=text) if text else nullcontext():
                    worker.hello()
        assert starts.read_text().count("started") == 2


def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path) -> None:
    with (
        Host(tmp_path, {"none": Runtime("none", tmp_path / "no-python", None)}) as host,
        pytest.raises(NotStarted, match="no-python"),
    ):
        host.worker("none", "any").hello()


def test_checks_share_a_load_until_the_files_change(
    host: Host, worker: Worker, model: Model, tmp_path: Path
) -> None:
    directory = model("")
    handles = []
    for _ in range(2):
        with host.model(worker, directory, ["serve"], LIMIT, shared=True) as loaded:
            handles.append(loaded.handle)
    assert handles[0] == handles[1]
    (directory / "misbehave").write_text("output=z ")
    with host.model(worker, directory, ["serve"], LIMIT, shared=True) as loaded:
        assert "z" in loaded.ask("signatures", LIMIT)["signatures"]["serving_default"]["outputs"]
    with host.model(worker, directory, ["serve"], LIMIT, shared=False) as fresh:
        assert fresh.handle != loaded.handle
    with pytest.raises(ReplyError, match="the handle"):
        fresh.ask("signatures", LIMIT)  # it was freed


@pytest.mark.parametrize(("word", "asked"), [("error", 1), ("abort", 2)])
def test_a_shared_load_that_failed_is_not_repeated(
    host: Host, worker: Worker, model: Model, word: str, asked: int
) -> None:
    """A death once: somebody else may have killed the process."""
    directory = model(f"load={word}")
    for _ in range(3):
        with (
            pytest.raises((ReplyError, WorkerDied)),
            host.model(worker, directory, ["serve"], LIMIT, shared=True),
        ):
            pass
    assert worker.generation == asked


@pytest.mark.parametrize("how", ["SIGKILL", "SIGSTOP", "noise"])
def test_what_happens_between_two_questions_is_told_and_costs_none(
    host: Host, worker: Worker, model: Model, how: str
) -> None:
    """It is in the log; a model that was loaded before is not asked as if it were the same."""
    good = model("load=late" if how == "noise" else "")
    with host.model(worker, good, ["serve"], LIMIT, shared=True) as loaded:
        assert worker._process is not None
        log = worker._process.stderr
        if how == "noise":
            assert wait_until(lambda: bool(select.select([worker._process._read], [], [], 0)[0]))
        else:
            os.kill(worker._process.pid, signal.Signals[how])
            waited = os.WSTOPPED if how == "SIGSTOP" else os.WEXITED
            os.waitid(os.P_PID, worker._process.pid, waited | os.WNOWAIT)
        with pytest.raises(WorkerDied, match=r"asked nothing|reply to request 2"):
            loaded.ask("signatures", LIMIT)
        load(worker, model("call=wrong"))  # has the same handle, in another process
        with pytest.raises(WorkerDied, match="is gone"):
            loaded.ask("signatures", LIMIT)
    assert "savedmodel-compat: the worker" in log.read_text()
    with host.model(worker, good, ["serve"], LIMIT, shared=True) as loaded:
        assert loaded.ask("signatures", LIMIT)["signatures"]
    assert worker.generation == 2


def test_a_shared_model_of_a_dead_worker_is_loaded_again(
    host: Host, worker: Worker, model: Model
) -> None:
    good, bad = model(""), model("load=exit")
    with host.model(worker, good, ["serve"], LIMIT, shared=True):
        pass
    with pytest.raises(WorkerDied):
        load(worker, bad)
    with host.model(worker, good, ["serve"], LIMIT, shared=True) as loaded:
        assert loaded.ask("signatures", LIMIT)["signatures"]
    assert worker.generation == 2


def test_leaving_the_host_ends_its_workers_and_removes_scratch_files(tmp_path: Path) -> None:
    with Host(tmp_path / "out", {"fake": fake_runtime(tmp_path)}) as host:
        worker = host.worker("fake", "any")
        worker.hello()
        assert worker._process is not None
        pid = worker._process.pid
        assert host.scratch.exists()
    assert ended(pid)
    assert not host.scratch.exists()


def test_the_environment_of_a_worker_is_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONPATH",
        "PYTHONWARNINGS",
        "TF_USE_LEGACY_KERAS",
        "SAVEDMODEL_COMPAT_FD",
    ):
        monkeypatch.setenv(name, "user's")
    monkeypatch.setenv("HOME", "/somewhere")
    pinned = environment("tf2_worker")
    assert not {
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONPATH",
        "PYTHONWARNINGS",
        "TF_USE_LEGACY_KERAS",
        "SAVEDMODEL_COMPAT_FD",
    } & set(pinned)
    assert pinned["HOME"] == "/somewhere"
    assert pinned["TF_ENABLE_ONEDNN_OPTS"] == "0"
    assert environment("reference_worker")["SAVEDMODEL_COMPAT_REFERENCE"] == str(
        ROOT / "reference_impl"
    )


def test_a_program_sees_reference_impl_without_what_is_installed_beside_it(tmp_path: Path) -> None:
    """Where the project is installed, the harness's own NumPy lies there, made for another Python
    than the runtime's.
    """
    site = tmp_path / "site"
    programs = site / "compat_matrix" / "workers"
    shutil.copytree(ROOT / "compat_matrix" / "workers", programs)
    shutil.copytree(ROOT / "savedmodel_common", site / "savedmodel_common")
    (programs / "probe.py").write_text(
        "import numpy, reference_impl\ndef main(): print(reference_impl.__file__)\n"
    )
    (site / "reference_impl").mkdir()
    (site / "reference_impl" / "__init__.py").write_text("from reference_impl import other\n")
    (site / "reference_impl" / "other.py").write_text("")
    (site / "numpy.py").write_text("raise ImportError('of another Python')\n")
    variables = {
        **environment("reference_worker"),
        "SAVEDMODEL_COMPAT_REFERENCE": str(site / "reference_impl"),
    }
    command = [sys.executable, str(programs), "probe"]
    done = subprocess.run(
        command, env=variables, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(site / "reference_impl" / "__init__.py")


OLD_SYNTAX = sorted(
    path
    for pattern in ("compat_matrix/workers/*.py", "compat_matrix/cases/*.py", "fixtures_v1/*/*.py")
    for path in ROOT.glob(pattern)
    # The package of the cases is also the module that finds them, and that runs in the harness.
    if path != ROOT / "compat_matrix" / "cases" / "__init__.py"
)


def test_programs_of_old_runtimes_are_python_3_6() -> None:
    assert len(OLD_SYNTAX) > 100
    for path in OLD_SYNTAX:
        ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 6))


def old_interpreters() -> list[str]:
    """Python 3.6 and 3.7 where they can be found: on PATH, or beside the versions pyenv manages."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return [
        str(path)
        for pattern in ("3.6.*", "3.7.*")
        for path in sorted(root.glob(f"{pattern}/bin/python"))
    ]


@pytest.mark.skipif(
    not old_interpreters(),
    reason="no Python 3.6 or 3.7 on this machine: only the grammar was checked",
)
def test_old_interpreters_compile_the_programs() -> None:
    program = (
        "import sys\nfor path in sys.stdin.read().split('\\n'):\n    compile(open(path,"
        " encoding='utf-8').read(), path, 'exec')"
    )
    interpreters = old_interpreters()
    assert interpreters
    for python in interpreters:
        subprocess.run(
            [python, "-c", program], input="\n".join(map(str, OLD_SYNTAX)), text=True, check=True
        )


@pytest.mark.parametrize(
    ("given", "seen"), [({}, "{folder}"), ({"TMPDIR": "elsewhere"}, "elsewhere")]
)
def test_temporary_files_lie_in_the_folder_of_the_worker_unless_its_program_says_where(
    tmp_path, given, seen
):
    command = [sys.executable, "-c", "import os; print(os.environ['TMPDIR'])"]
    process = Process(command, given, tmp_path / "cwd", tmp_path / "log")
    process._child.reap(60)
    process.close()
    assert process.stdout.read_text().strip() == seen.format(folder=tmp_path / "cwd")


def test_programs_of_other_environments_import_nothing_of_the_harness_by_its_name():
    """An environment of another TensorFlow sees the folder of the workers and savedmodel_common."""
    found = []
    for path in sorted((ROOT / "compat_matrix" / "workers").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            found += [f"{path.name}: {name}" for name in names if name.startswith("compat_matrix")]
    assert found == []
