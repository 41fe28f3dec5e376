"""The tests of `test_faults.py` once more where files are slow: writes in two parts, pauses around
everything else.

What is killed or read in the middle of a write, a sync, a rename or a removal is then the rule and
no accident.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from property_tests import profiles

ROOT = Path(__file__).parents[1]
SOURCE = Path(__file__).parent / "faults" / "programs" / "slow_files.c"
CHOSEN = ["a_save_killed_at_any_time", "while_it_is_read", "while_they_are_read"]
if profiles.NAME == profiles.NIGHTLY:
    CHOSEN += [
        "harness_killed_at_any_time",
        "two_writers",
        "killed_a_hundred_times",
        "killed_at_every_moment",
    ]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a library is preloaded")
def test_writers_and_readers_where_files_are_slow(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler here: slow files were not tried")
    library = tmp_path / "slow_files.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "property_tests/test_faults.py",
    ]
    command += ["-k", " or ".join(CHOSEN), "--basetemp", tmp_path / "slow"]
    slow = {"LD_PRELOAD": os.fspath(library), "SLOW_FILES": "400"}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **slow},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert " passed" in done.stdout and "skipped" not in done.stdout.splitlines()[-1]
