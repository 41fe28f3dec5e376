"""Environments are really made, by uv, from a registry of one tiny runtime; no network is
needed.
"""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tiny_runtime
from click.testing import CliRunner

from compat_matrix.cells import consumers
from compat_matrix.runtimes import (
    interpreters,
    locking,
    places,
    provision,
    records,
    registry,
    resolve,
    uv,
    wanted,
)
from compat_matrix.runtimes.programs import importing
from savedmodel_compat.cli import main

pytestmark = pytest.mark.skipif(
    (platform.system(), platform.machine()) != provision.LOCKED_FOR,
    reason="locked runtimes are for Linux on x86_64",
)
ROOT = Path(__file__).resolve().parents[2]
INSTALL = """
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from compat_matrix.runtimes import provision, registry, wanted
known = registry.read(Path(sys.argv[1]))
print(provision.install(wanted.parse("9.9", known), known, lambda what: print(what, flush=True)).tensorflow)
"""


@pytest.fixture(scope="module", autouse=True)
def offline(tmp_path_factory):
    """uv sees our wheel and nothing else, with a cache of its own."""
    with pytest.MonkeyPatch.context() as patch:
        wheels = tmp_path_factory.mktemp("wheels")
        patch.setenv("UV_FIND_LINKS", str(wheels))
        patch.setenv("UV_NO_INDEX", "1")
        patch.setenv("UV_OFFLINE", "1")
        patch.setenv("UV_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield wheels


@pytest.fixture
def world(tmp_path, monkeypatch, offline):
    """A home, a wheel and a registry with its lock; the registry is also that of the command."""
    monkeypatch.setenv("SAVEDMODEL_COMPAT_HOME", str(tmp_path / "home"))
    for old in offline.iterdir():
        old.unlink()
    tiny_runtime.wheel(offline)
    path = tiny_runtime.registry(tmp_path / "registry")
    monkeypatch.setattr(registry, "REGISTRY", path)
    known = registry.read(path)
    locking.lock(known.stanzas["tf9.9"], known)
    return known


def quiet(what: str) -> None:
    pass


def run(*arguments: str):
    return CliRunner().invoke(main, ["runtimes", *arguments])


def doctor(*arguments: str):
    return CliRunner().invoke(main, ["runtimes", "doctor", *arguments])


def folders() -> list[str]:
    return sorted(path.name for path in places.environments().iterdir())


def test_lock_then_install_then_use(world):
    stanza = world.stanzas["tf9.9"]
    text = stanza.lock.read_text(encoding="utf-8")
    assert text.startswith("tensorflow==9.9.9 \\\n    --hash=sha256:") and str(ROOT) not in text
    assert not locking.lock(stanza, world)
    done = run("install", "9.9")
    assert (done.exit_code, "tf9.9: TensorFlow 9.9.9, Python" in done.output) == (
        0,
        True,
    ), done.output
    assert folders() == [wanted.of_stanza(stanza).folder]
    found = resolve.resolve("9.9", world)
    assert (found.name, found.tensorflow_version) == ("tf9.9", "9.9.9")
    record = provision.installed(wanted.of_stanza(stanza))
    assert set(record.seconds) == {"venv", "install", "start"} and record.bytes["own"] > 0
    assert (
        f"tf9.9      TensorFlow 9.9.9    Python {platform.python_version():<8} installed"
        in run("list").output
    )


@pytest.mark.parametrize(
    "words",
    [
        "gate run --baseline 9.9 --candidate 2.99",
        "gate run --baseline 9.9 --candidate tensorflow==2.99",
        "matrix run --grid --runtime 9.9 --runtime tensorflow>=99",
    ],
)
def test_all_names_are_resolved_before_anything_is_made(world, tmp_path, words):
    done = CliRunner().invoke(
        main, [*words.split(), "--out", str(tmp_path / "out"), "--case", "tree_tuples"]
    )
    assert done.exit_code in (4, 64) and words.split()[-1] in done.output, done.output
    assert not places.environments().exists() or folders() == []


def test_what_is_installed_is_kept_unless_asked_for_again(world):
    target = wanted.parse("9.9", world)
    provision.install(target, world, quiet)
    (target.place / "mark").touch()
    provision.install(target, world, quiet)
    assert (target.place / "mark").exists()
    provision.install(target, world, quiet, again=True)
    assert not (target.place / "mark").exists()
    assert folders() == [target.folder]


@pytest.mark.parametrize("phase", ["installing", "starting it"])
def test_a_killed_installation_leaves_nothing_that_counts(world, offline, phase):
    if phase == "starting it":
        (offline / "hold").touch()
    target = wanted.parse("9.9", world)
    command = [sys.executable, "-c", INSTALL, str(world.path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=os.environ
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == phase:
                break
        process.send_signal(signal.SIGKILL)
    assert [name.startswith(f".{target.folder}.") for name in folders()] == [True]
    with pytest.raises(places.NotInstalled):
        resolve.resolve("9.9", world)
    (offline / "hold").unlink(missing_ok=True)
    assert provision.install(target, world, quiet).tensorflow == "9.9.9"
    assert folders() == [target.folder]


def test_two_installations_at_once_make_one_environment(world):
    command = [sys.executable, "-c", INSTALL, str(world.path)]
    both = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=os.environ)
        for _ in range(2)
    ]
    said = [process.communicate()[0] for process in both]
    assert [text.splitlines()[-1] for text in said] == ["9.9.9", "9.9.9"]
    assert sum("installing" in text for text in said) == 1
    assert folders() == [wanted.parse("9.9", world).folder]


def test_a_tensorflow_that_says_another_version_is_not_installed(world, offline):
    tiny_runtime.wheel(offline, said="9.9.8")
    locking.lock(world.stanzas["tf9.9"], world, upgrade=True)
    done = run("install", "9.9")
    assert done.exit_code == 4 and "9.9.9" in done.output and "9.9.8" in done.output, done.output
    assert folders() == []


def test_a_wheel_that_is_not_the_locked_one_is_refused(world):
    lock = world.stanzas["tf9.9"].lock
    lock.write_text(
        re.sub("sha256:[0-9a-f]{8}", "sha256:01234567", lock.read_text(encoding="utf-8")),
        encoding="utf-8",
    )
    done = run("install", "9.9")
    assert done.exit_code == 4 and "hash" in done.output.lower(), done.output
    assert folders() == []


def test_a_requirement_gets_an_environment_of_its_own(world, offline):
    tiny_runtime.wheel(offline, "9.8.0rc1", said="9.8.0-rc1")
    done = run("install", "tensorflow==9.8.0rc1")
    assert (done.exit_code, "not locked" in done.output) == (0, True), done.output
    found = resolve.resolve("tensorflow==9.8.0rc1", world)
    assert (found.tensorflow_version, found.spec, set(found.lacks)) == (
        "9.8.0rc1",
        "tensorflow==9.8.0rc1",
        {*importing("reference_impl")},
    )
    record = json.loads((found.python.parent.parent / records.NAME).read_text(encoding="utf-8"))
    assert record["locked"] is None
    assert run("remove", "tensorflow==9.8.0rc1").exit_code == 0
    assert folders() == []


def test_a_wheel_file_is_a_runtime_and_another_one_when_built_anew(world, offline, tmp_path):
    built = tmp_path / "dist"
    built.mkdir()
    path = tiny_runtime.wheel(built, "9.7.0")
    assert run("install", str(path)).exit_code == 0  # for the Python of its tag
    assert resolve.resolve(str(path), world).tensorflow_version == "9.7.0"
    tiny_runtime.wheel(built, "9.7.0", said="9.7.0+rebuilt")
    with pytest.raises(places.NotInstalled):
        resolve.resolve(str(path), world)


def test_a_requirement_that_nothing_fulfils_says_what_was_tried(world):
    done = run("install", "tensorflow==9.1.0")
    assert done.exit_code == 4
    assert "tensorflow==9.1.0: " in done.output and "version of tensorflow" in done.output


def test_the_doctor_finds_a_consumer_that_does_not_start(world, monkeypatch):
    assert run("install", "9.9").exit_code == 0
    only = {name: consumers.CONSUMERS[name] for name in ("v1_session", "reference")}
    monkeypatch.setattr("compat_matrix.commands.parts.runtimes_doctor.CONSUMERS", only)
    done = doctor("9.9")
    assert done.exit_code == 0, done.output
    assert "  v1_session: " in done.output and "  reference: none" in done.output
    assert "uv: uv " in done.output and "disk: " in done.output
    only["c_api"] = consumers.CONSUMERS["c_api"]  # there is no such library in the tiny wheel
    done = doctor("9.9")
    assert done.exit_code == 1 and "  c_api: c_api_worker " in done.output, done.output
    assert done.stdout.startswith("missing: c_api in tf9.9: ")
    done = doctor("9.9", "--json")
    told = json.loads(done.stdout)
    bad = [
        (one["runtime"], one["name"]) for one in told["found"] if one["needed"] and not one["ok"]
    ]
    assert (done.exit_code, told["ok"], bad) == (1, False, [("tf9.9", "c_api")])


def test_the_doctor_notices_that_uv_is_missing(world, monkeypatch):
    def none() -> str:
        raise uv.UvTrouble("uv makes the environments and is not here: pip install uv")

    monkeypatch.setattr(uv, "find", none)
    monkeypatch.setattr("compat_matrix.commands.parts.runtimes_doctor.CONSUMERS", {})
    done = doctor("local")
    assert (done.exit_code, "pip install uv" in done.output) == (1, True)
    assert run("install", "9.9").exit_code == 4


def test_steps_after_the_installation_are_done_also_where_it_was_there(world, capsys):
    from compat_matrix.commands.parts.runtimes_install import install_all

    done = []

    def step(runtime, report):
        done.append(runtime.name)
        if len(done) == 3:
            raise places.RuntimeTrouble("no compiler")

    for _ in range(2):
        assert install_all(["9.9"], world, jobs=1, again=False, steps=[step]) == 0
    assert install_all(["9.9"], world, jobs=1, again=False, steps=[step]) == 4
    assert done == ["tf9.9"] * 3 and "tf9.9: FAILED: no compiler" in capsys.readouterr().err


def test_no_space_or_no_right_is_one_line(world, monkeypatch, tmp_path):
    (tmp_path / "home").write_text("a file", encoding="utf-8")
    done = run("install", "9.9")
    assert (done.exit_code, "Traceback" in done.output, "tf9.9: FAILED: " in done.output) == (
        4,
        False,
        True,
    ), done.output


def test_an_option_counts_whatever_the_environment_says(monkeypatch):
    """uv 0.13.9 refuses an option that contradicts a variable, as tox.ini sets it."""
    monkeypatch.setenv("UV_COMPILE_BYTECODE", "1")
    uv.run(
        [
            "pip",
            "install",
            "--no-compile-bytecode",
            "--dry-run",
            "--python",
            sys.executable,
            "-r",
            "-",
        ],
        "",
    )
    asked: list[list[str]] = []
    monkeypatch.setattr(uv, "run", lambda arguments, given=None: asked.append(arguments))
    for python in ("3.7", "3.8.18", "3.13", None):
        uv.install(Path("place"), python, [])
    assert ["--compile-bytecode" in arguments for arguments in asked] == [False, True, True, True]


def test_pythons_are_found_whatever_the_environment_says(monkeypatch):
    found = interpreters.here()
    assert found
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    assert interpreters.here() == found


def test_threads_look_for_uv_one_after_the_other(monkeypatch):
    """Two installations at a time: the first use of sysconfig is not safe in two threads."""
    at_a_time = []

    def slow():
        at_a_time.append(len(inside))
        inside.append(True)
        time.sleep(0.05)
        inside.pop()
        return "uv"

    inside = []
    monkeypatch.setattr("uv.find_uv_bin", slow)
    monkeypatch.setattr(uv, "_found", uv._found.__wrapped__)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: uv.find(), range(4)))
    assert (found, at_a_time) == (["uv"] * 4, [0] * 4)
