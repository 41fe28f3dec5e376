"""SIGINT and SIGTERM at chosen moments: exit 130, no verdict, and a run goes on where it was.

The moments are audit events of Python (a file is opened, renamed, a process is started), so they do
not depend on how the harness is built. The signal goes to the harness alone, or to its whole
process group as a terminal sends it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import model_edits as edits
import pytest
from matrix_world import REPO, World, small_world

# Sends the signal when the event is seen for the n-th time with the text in its first or second
# argument.
AT = """
import os, signal, sys

def _interrupt_at(event, text, number, name):
    seen = 0
    me = os.getpid()

    def hook(what, arguments):
        nonlocal seen
        if what != event or os.getpid() != me or not any(text in str(argument) for argument in arguments[:2]):
            return
        seen += 1
        if seen == number:
            os.kill(me, getattr(signal, name))

    sys.addaudithook(hook)

if os.environ.get("INTERRUPT_AT") and "INTERRUPTED_ONCE" not in os.environ:
    os.environ["INTERRUPTED_ONCE"] = "1"  # not in the processes that this one starts
    event, text, number, name = os.environ["INTERRUPT_AT"].split("|")
    _interrupt_at(event, text, int(number), name)
"""


def interrupted_at(folder, command, moment, environment=None, signal="SIGINT"):
    """Run a command that gets a signal at ``moment``: (audit event, text in its arguments, how
    often).
    """
    site = folder / "at"
    site.mkdir(exist_ok=True)
    before = dict(environment or {**os.environ, "PYTHONPATH": str(REPO)})
    (site / "sitecustomize.py").write_text(AT + other_sitecustomize(before["PYTHONPATH"]))
    event, text, number = moment
    before |= {
        "PYTHONPATH": f"{site}{os.pathsep}{before['PYTHONPATH']}",
        "INTERRUPT_AT": f"{event}|{text}|{number}|{signal}",
    }
    return subprocess.run(
        command, cwd=folder, env=before, capture_output=True, text=True, timeout=300, check=False
    )


def other_sitecustomize(path):
    """Python reads one only; that of the world is behind ours on the path."""
    found = [Path(folder, "sitecustomize.py") for folder in path.split(os.pathsep)]
    return "".join(file.read_text() for file in found if file.is_file())


def no_verdict(done, resume=False):
    assert done.returncode == 130, done.stdout + done.stderr
    assert done.stdout == ""
    assert "interrupted" in done.stderr
    assert "Traceback" not in done.stderr and "KeyboardInterrupt" not in done.stderr
    assert ("--resume" in done.stderr) == resume


def gate_command(world, *more):
    ours = (
        "--cases-dir",
        world.cases,
        "--fixtures",
        world.fixtures,
        "--expectations",
        world.ledger,
        "--out",
        world.out,
    )
    names = [
        "gate",
        "run",
        "--baseline",
        "local",
        "--candidate",
        "local",
        "--same",
        *map(str, ours),
    ]
    return [sys.executable, "-m", "savedmodel_compat", *names, *more, "--", "-p", "matrix_double"]


def run_command(world, *more):
    ours = (
        "--cases-dir",
        world.cases,
        "--fixtures",
        world.fixtures,
        "--expectations",
        world.ledger,
        "--out",
        world.out,
    )
    return [
        sys.executable,
        "-m",
        "savedmodel_compat",
        "matrix",
        "run",
        *map(str, ours),
        *more,
        "--",
        "-p",
        "matrix_double",
    ]


@pytest.mark.parametrize(
    ("moment", "processes", "signal"),
    [
        (("open", "run.json", 1), "1", "SIGINT"),  # before anything is asked
        (
            ("open", "results.jsonl", 1),
            "1",
            "SIGTERM",
        ),  # in the first session, which makes the artifacts
        (("open", "results.jsonl", 1), "2", "SIGINT"),
        (
            ("subprocess.Popen", sys.executable, 2),
            "2",
            "SIGINT",
        ),  # its second process is being started
        (
            ("open", "plan.json", 2),
            "1",
            "SIGINT",
        ),  # between the phases: both have written, nobody has read
        (("open", "plan.json", 2), "1", "SIGTERM"),
        (("os.rename", "summary.json", 1), "1", "SIGINT"),  # the report of the run is being written
        (("os.rename", "gate.json", 1), "1", "SIGTERM"),
    ],
)
def test_an_interrupted_gate_gives_no_verdict_and_goes_on(tmp_path, moment, processes, signal):
    world = World(tmp_path)
    no_verdict(
        interrupted_at(
            tmp_path, gate_command(world, "-n", processes), moment, world.environment(), signal
        ),
        resume=True,
    )
    assert not (world.out / "gate.json").exists()
    results = world.out / "run" / "results.jsonl"
    if results.exists():  # what was not reached was not left out on purpose
        left = [json.loads(line) for line in results.read_text().splitlines()]
        assert "deselected" not in {
            record["message"]
            for record in left
            # A gate asks only the TensorFlows that it compares, and not the evaluator.
            if "fault_" not in record["cell"] and "/evaluator@" not in record["cell"]
        }
    again = world.process(gate_command(world, "-n", "1", "--resume"))
    assert again.returncode == 0, again.stdout + again.stderr
    verdict = json.loads((world.out / "gate.json").read_text())
    whole = World(new_folder(tmp_path))
    assert whole.process(gate_command(whole, "-n", "1")).returncode == 0
    assert verdict["counts"] == json.loads((whole.out / "gate.json").read_text())["counts"]


def new_folder(tmp_path):
    folder = tmp_path / "whole"
    folder.mkdir()
    return folder


def test_the_verdict_of_an_earlier_gate_does_not_survive_an_interrupted_one(tmp_path):
    world = World(tmp_path)
    assert world.process(gate_command(world, "-n", "1")).returncode == 0
    no_verdict(
        interrupted_at(
            tmp_path,
            gate_command(world, "-n", "1"),
            ("open", "results.jsonl", 1),
            world.environment(),
        ),
        resume=True,
    )
    assert {path.name for path in world.out.iterdir()} == {"run"}
    assert not {path.name for path in (world.out / "run").iterdir()} & {
        "summary.json",
        "junit.xml",
        "report.html",
    }


def test_a_signal_that_a_library_swallows_ends_the_run_all_the_same(tmp_path):
    """An exception in a destructor goes nowhere; the run would have gone on to a verdict."""
    world = small_world(tmp_path)
    (tmp_path / "swallowing.py").write_text(
        "import os, signal, pytest\n"
        "class Swallows:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_compat_run_cell(cell):\n"
        "    if cell.check == 'load':\n"
        "        Swallows()\n"
    )
    environment = {
        **world.environment(),
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{world.environment()['PYTHONPATH']}",
    }
    command = [*run_command(world, "-n", "1"), "-p", "swallowing"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert len(world.executed()) < 14


def test_the_exit_code_is_ours_when_the_signal_comes_while_python_runs_a_text(tmp_path):
    """As dataclasses and named tuples do while modules are imported: Python would end by SIGINT all
    the same.
    """
    world = small_world(tmp_path)
    (tmp_path / "executing.py").write_text(
        "import os, signal\ndef pytest_configure():\n    exec('import os, signal;"
        " os.kill(os.getpid(), signal.SIGTERM)')\n"
    )
    environment = {
        **world.environment(),
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{world.environment()['PYTHONPATH']}",
    }
    command = [*run_command(world, "-n", "1"), "-p", "executing"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    no_verdict(done, resume=True)


# Each writes what a run writes; "{gate}" is the folder in which a gate keeps its run.
WRITERS = {
    "matrix run": "matrix run --cases-dir {cases} --fixtures {fixtures} --out {out}",
    "matrix run --resume": (
        "matrix run --cases-dir {cases} --fixtures {fixtures} --out {out} --resume"
    ),
    "matrix report": "matrix report {out}",
    "matrix run --servers-only": (
        "matrix run --servers-only --cases-dir {cases} --fixtures {fixtures} --out {out}"
        " --server binary:/nowhere"
    ),
    "check --servers-only": (
        "check --servers-only {artifact} --server binary:/nowhere --out {out}"
    ),
    "check": "check {artifact} --consumer c_api --out {out}",
    "grid": "matrix run --grid --runtime local --case rfc_net2 --no-install --out {out}",
    "gate": (
        "gate run --baseline local --candidate local --same --cases-dir {cases} --fixtures {fixtures} --out"
        " {gate}"
    ),
}


def test_no_command_writes_to_the_folder_of_a_run_that_goes_on(tmp_path):
    world = small_world(tmp_path)
    out = world.out = tmp_path / "folder" / "run"
    world.behave(["*", {"wait_for": "go"}])
    first = subprocess.Popen(
        run_command(world, "-n", "1"),
        cwd=tmp_path,
        env=world.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not world.executed():
            assert first.poll() is None
            time.sleep(0.02)
        before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
        named = {"cases": world.cases, "fixtures": world.fixtures, "out": out, "gate": out.parent}
        named["artifact"] = edits.fixture("half_plus_two").parent
        for what, words in WRITERS.items():
            done = world.command(*(word.format(**named) for word in words.split()))
            assert (done.returncode, done.stdout) == (4, ""), f"{what}: {done.stdout}{done.stderr}"
            assert f"another run is writing to {out}" in done.stderr, what
        assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
        (tmp_path / "go").touch()
        assert first.wait() == 0
    finally:
        first.kill()
        first.wait()
    summary = world.summary(out)
    assert (summary["observed"], summary["not_run"]) == (summary["planned"], [])


@pytest.mark.parametrize("what", ["matrix run", "matrix report", "check", "grid"])
def test_a_folder_of_somebody_else_is_refused_and_left_as_it_is(tmp_path, what):
    world = small_world(tmp_path)
    out = tmp_path / "photographs"
    out.mkdir()
    (out / "1.jpg").touch()
    named = {
        "cases": world.cases,
        "fixtures": world.fixtures,
        "out": out,
        "artifact": edits.fixture("half_plus_two").parent,
    }
    done = world.command(*(word.format(**named) for word in WRITERS[what].split()))
    assert (done.returncode, done.stdout) == (64, ""), done.stderr
    assert [path.name for path in out.iterdir()] == ["1.jpg"]


def test_workers_that_are_busy_do_not_hold_up_the_end(tmp_path):
    """Two processes of pytest-xdist, each in the middle of a cell of a minute; a signal to the
    harness alone.
    """
    world = small_world(tmp_path)
    (tmp_path / "sleepy.py").write_text(
        "import os, pathlib, time, pytest\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_compat_run_cell(cell, out):\n"
        "    (out.parent / f'asleep-{os.getpid()}').touch()\n"
        "    try:\n"
        "        time.sleep(600)\n"
        "    except KeyboardInterrupt:\n"
        "        (out.parent / f'woken-{os.getpid()}').touch()\n"
        "        raise\n"
    )
    environment = {
        **world.environment(),
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{world.environment()['PYTHONPATH']}",
    }
    process = subprocess.Popen(
        [*run_command(world, "-n", "2"), "-p", "sleepy"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while len(list(tmp_path.glob("asleep-*"))) < 2:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.terminate()
    out, err = process.communicate()
    no_verdict(subprocess.CompletedProcess([], process.returncode, out, err), resume=True)
    # Each was told so, and did not have to be waited for until somebody killed it.
    assert {path.name.partition("-")[2] for path in tmp_path.glob("woken-*")} == {
        path.name.partition("-")[2] for path in tmp_path.glob("asleep-*")
    }


def command_line(*arguments):
    return [sys.executable, "-m", "savedmodel_compat", *map(str, arguments)]


def three(folder):
    for name in ("a", "b", "c"):
        shutil.copytree(edits.fixture("half_plus_two"), folder / name)
    return folder


# What is run -> the moment at which it is in the middle of its work.
COMMANDS = {
    "verify": ("verify {models}", ("open", "saved_model.pb", 2)),
    "verify, before its processes": (
        "verify {models} --jobs 2",
        ("import", "multiprocessing.resource_tracker", 1),
    ),
    "verify, in its processes": ("verify {models} --jobs 2", ("pickle.find_class", "verify", 1)),
    "diff": ("diff {models} {others}", ("open", "saved_model.pb", 3)),
    "compat": ("compat {models}", ("open", "saved_model.pb", 1)),
    "contract": ("contract check {models}", ("open", "saved_model.pb", 2)),
    "slim": ("edit slim {models} --out {out}", ("open", "saved_model.pb", 1)),
    "downgrade": (
        "downgrade {models} {out} --target 2.12 --no-proof",
        ("open", "saved_model.pb", 1),
    ),
    "plugin-check": ("plugin-check {consumer}", ("subprocess.Popen", "numpy_consumer", 1)),
    "migrate": ("migrate {models} --out {out}", ("os.rename", "records", 1)),
    "check": ("check {models} --consumer reference --out {out}", ("subprocess.Popen", "worker", 1)),
}


NEEDS_TENSORFLOW = {"check", "migrate"}


@pytest.mark.parametrize(
    "what",
    [
        pytest.param(what, marks=pytest.mark.tensorflow if what in NEEDS_TENSORFLOW else ())
        for what in COMMANDS
    ],
)
def test_every_command_that_takes_long_gives_no_verdict(tmp_path, what):
    words, moment = COMMANDS[what]
    models, others = three(tmp_path / "models"), three(tmp_path / "others")
    out = tmp_path / "out"
    consumer = (
        f"{sys.executable} {REPO / 'compat_matrix' / 'plugins' / 'samples' / 'numpy_consumer.py'}"
    )
    if what == "contract":
        assert (
            subprocess.run(
                command_line("contract", "write", models, "--no-answers"), check=False
            ).returncode
            == 0
        )
    named = {"models": models, "others": others, "out": out, "consumer": consumer}
    command = command_line(*(word.format(**named) for word in words.split()))
    signal = "SIGTERM" if what == "diff" else "SIGINT"
    no_verdict(interrupted_at(tmp_path, command, moment, signal=signal))
    assert not {path.name for path in out.glob("*")} & {
        "report.json",
        "report.html",
        "summary.json",
        "junit.xml",
    }


@pytest.mark.tensorflow
def test_an_interrupted_migration_goes_on_and_reports_all(tmp_path):
    models, out = three(tmp_path / "models"), tmp_path / "out"
    command = command_line("migrate", models, "--out", out)
    done = interrupted_at(tmp_path, command, ("os.rename", "records", 1))
    assert (done.returncode, done.stdout) == (130, "")
    assert "the same command" in done.stderr
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stdout + again.stderr
    assert json.loads((out / "report.json").read_text())["totals"]["migrated"] == 3
