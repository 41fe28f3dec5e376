"""A disk that is full at any page or file of a writer: a named error and what was there before,
nothing left over.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from property_tests import profiles

ROOT = Path(__file__).parents[1]
OWN_MOUNTS = ("unshare", "--map-root-user", "--mount")  # namespaces: nothing of it is seen outside


@pytest.fixture(scope="module")
def attempts(tmp_path_factory):
    """``attempts(what)``: the attempts of a writer, each with more room than the one before."""
    if not sys.platform.startswith("linux") or not shutil.which("unshare"):
        pytest.skip("no mount namespaces here: full disks were not tried")
    place = tmp_path_factory.mktemp("mount")
    probe = subprocess.run(
        [*OWN_MOUNTS, "mount", "-t", "tmpfs", "tmpfs", place],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if probe.returncode:
        pytest.skip(
            "this machine lets nobody mount a file system of their own, full disks were not tried:"
            f" {probe.stderr}"
        )

    def attempts_(what, program="full_disk"):
        folder = tmp_path_factory.mktemp("full") / "disk"
        folder.mkdir()
        command = [
            *OWN_MOUNTS,
            sys.executable,
            "-m",
            f"property_tests.faults.{program}",
            str(folder),
            *what.split(),
        ]
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
            assert (attempt["error"], attempt["told"], attempt["left"]) == (
                "ENOSPC",
                old,
                0,
            ), attempt["room"]
        assert (last["error"], last["told"], last["left"]) == ("", new, 0), last["room"]


def test_a_save_on_a_disk_that_is_full(attempts):
    judge(attempts("save"), "old", "new")


@pytest.mark.tensorflow
@pytest.mark.skipif(
    profiles.NAME != profiles.NIGHTLY, reason="TensorFlow once more: of the nightly profile"
)
def test_a_whole_save_on_a_disk_that_is_full(attempts):
    pytest.importorskip("tensorflow")
    judge(attempts("tensorflow"), "1.0", "2.0")


@pytest.mark.parametrize("what", ["report", "update"])
def test_the_harness_on_a_disk_that_is_full(attempts, what):
    found = attempts(what)
    old, new = found[0]["told"], found[-1]["told"]
    assert set(old) == set(new) and all(
        old[name] != new[name] for name in old if name != "expectations.toml" or what == "update"
    )
    judge(found, old, new)


@pytest.mark.parametrize("options", ["", "-n2"])
def test_a_run_on_a_full_disk_says_so_in_one_line(attempts, options):
    """Also where pytest notices it in the middle of the run, in one process or several."""
    full, resumed = attempts(f"14 {options}", "full_run")
    assert full["code"] == 4 and resumed["code"] == 0
    assert not [line for line in full["said"] if "INTERNALERROR" in line or "Traceback" in line]
    (line,) = [line for line in full["said"] if line.startswith("OSError")]
    assert re.fullmatch(r"OSError: /.*/disk/out/[a-z]+\.[a-z0-9]+: No space left on device", line)


@pytest.mark.skipif(profiles.NAME != profiles.NIGHTLY, reason="a minute: of the nightly profile")
def test_a_run_on_a_disk_that_fills_up_is_resumed(attempts):
    """Exit code 4, which is the machine's; what was observed before stays, and nothing is told of a
    cell that was not asked.
    """
    found = attempts("10 14 16 18 20 22", "full_run")
    *failed, last = found
    assert (last["code"], list(last["told"]), last["left"]) == (0, ["PASS"], [])
    assert all((attempt["code"], attempt["left"]) in ((0, []), (4, [])) for attempt in failed)
    assert any(attempt["code"] == 4 and attempt["told"] for attempt in failed)
    passed = [attempt["told"].get("PASS", 0) for attempt in found]
    assert passed == sorted(passed) and all(
        set(attempt["told"]) <= {"PASS", "ENV_ERROR", "NOT_RUN"} for attempt in found
    )
