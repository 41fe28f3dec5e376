"""A disk that is full at any page or file of a writer: a named error and what was there before, nothing left over."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OWN_MOUNTS = ("unshare", "--map-root-user", "--mount")  # namespaces: nothing of it is seen outside


@pytest.fixture(scope="module")
def attempts(tmp_path_factory):
    """``attempts(what)``: the attempts of a writer, each with more room than the one before."""
    if not sys.platform.startswith("linux") or not shutil.which("unshare"):
        pytest.skip("no mount namespaces here: full disks were not tried")
    place = tmp_path_factory.mktemp("mount")
    probe = subprocess.run([*OWN_MOUNTS, "mount", "-t", "tmpfs", "tmpfs", place], stderr=subprocess.PIPE, text=True, check=False)
    if probe.returncode:
        pytest.skip(f"this machine lets nobody mount a file system of their own, full disks were not tried: {probe.stderr}")

    def attempts_(what):
        folder = tmp_path_factory.mktemp(what) / "disk"
        folder.mkdir()
        command = [*OWN_MOUNTS, sys.executable, "-m", "property_tests.faults.full_disk", str(folder), what]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    return attempts_


def judge(found, old, new):
    """By pages and by files: no room, the old state; enough of it, the new one."""
    for kind in ("pages", "files"):
        tried = [attempt for attempt in found if attempt["room"].endswith(kind)]
        assert len(tried) > 1, kind
        *failed, last = tried
        for attempt in failed:
            assert (attempt["error"], attempt["told"], attempt["left"]) == ("ENOSPC", old, 0), attempt["room"]
        assert (last["error"], last["told"], last["left"]) == ("", new, 0), last["room"]


def test_a_save_on_a_disk_that_is_full(attempts):
    judge(attempts("save"), "old", "new")


@pytest.mark.tensorflow
def test_a_whole_save_on_a_disk_that_is_full(attempts):
    pytest.importorskip("tensorflow")
    judge(attempts("tensorflow"), "1.0", "2.0")


@pytest.mark.parametrize("what", ["report", "update"])
def test_the_harness_on_a_disk_that_is_full(attempts, what):
    found = attempts(what)
    old, new = found[0]["told"], found[-1]["told"]
    assert set(old) == set(new) and all(old[name] != new[name] for name in old if name != "expectations.toml" or what == "update")
    judge(found, old, new)
