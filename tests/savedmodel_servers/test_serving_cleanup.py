"""Who lives: harnesses, and the processes that they left."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from serving_drivers_fixtures import cleanup, home, no_engine

from savedmodel_servers.drivers import binary, harness

__all__ = ["home", "no_engine"]  # fixtures, imported by name


def test_harness_is_told_from_a_later_process_of_its_number():
    me = harness.me()
    assert harness.alive(me) is True
    assert harness.Harness.from_labels(me.labels()) == me
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    for changes, lives in [
        ({"pid": child.pid}, False),
        ({"started": "1"}, False),
        ({"boot": "another"}, False),
        ({"host": "another"}, None),
        ({"space": "pid:[1]"}, None),
    ]:
        assert harness.alive(harness.Harness(**{**vars(me), **changes})) is lives, changes
    assert harness.Harness.from_labels({}) is None


def test_zombie_is_not_alive():
    child = subprocess.Popen([sys.executable, "-c", ""])
    deadline = time.monotonic() + 20
    while harness.started(child.pid) is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert harness.started(child.pid) is None
    child.wait()


def record(name, **changes):
    """A server process, and the record of it whose harness is another."""
    child = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True
    )
    owner = {**vars(harness.me()), **changes}
    told = {
        "pid": child.pid,
        "started": harness.started(child.pid),
        "command": ["/x/server"],
        "harness": owner,
    }
    binary.records().mkdir(parents=True, exist_ok=True)
    (binary.records() / f"{name}.json").write_text(json.dumps(told))
    return child


def test_cleanup_ends_processes_of_dead_harnesses_only(no_engine):
    dead, living, foreign = (
        record("dead", started="1"),
        record("living"),
        record("foreign", host="elsewhere"),
    )
    try:
        assert "gone: would be removed" in cleanup("--dry-run")
        assert dead.poll() is None
        (found,) = [
            one
            for one in json.loads(cleanup("--dry-run", "--json"))["found"]
            if one["state"] == "its harness is gone"
        ]
        assert (found["what"], found["removed"]) == (f"process {dead.pid} (server)", False)
        output = cleanup()
        assert f"process {dead.pid} (server): " in output and "gone" in output
        assert f"process {living.pid} (server): its harness lives" in output
        assert "containers: not looked for: no engine" in output and "1 removed" in output
        assert dead.wait(20) == -9
        assert living.poll() is None and foreign.poll() is None
        assert sorted(path.stem for path in binary.records().glob("*")) == ["foreign", "living"]
        assert "harness lives: removed" in cleanup("--all")
        assert living.wait(20) == -9
        assert foreign.poll() is None
    finally:
        for child in (dead, living, foreign):
            child.kill()
            child.wait()


def test_without_an_engine_only_processes_are_said_to_be_gone(no_engine):
    output = cleanup("--dry-run")
    assert "no process" in output and "nothing" not in output


def test_cleanup_never_ends_a_process_that_got_the_number_later(no_engine):
    child = record("old", started="1")
    try:
        place = binary.records() / "old.json"
        place.write_text(json.dumps({**json.loads(place.read_text()), "started": "1"}))
        (binary.records() / "broken.json").write_text("{")
        assert "0 removed" in cleanup("--all")
        assert child.poll() is None
        assert list(binary.records().glob("*")) == []
    finally:
        child.kill()
        child.wait()
