"""`--jobs`: as in one process, in order; a process that dies costs its model; an interruption ends
all of them.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from savedmodel_compat.cli import main
from savedmodel_tools.jobs import Died, ordered

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"


def fate(folder, ending, item):
    """Item 1 ends its process; item 0 waits until that has happened, so that others are done before
    it.
    """
    if item == 1:
        (folder / "seen").touch()
        os.kill(os.getpid(), ending)
    while item == 0 and not (folder / "seen").exists():
        pass
    return item * 10, os.getpid()


@pytest.mark.parametrize(
    ("ending", "name"),
    [(signal.SIGKILL, "SIGKILL"), (40, "signal 40")]  # Python has no name for 40
    if sys.platform.startswith("linux")
    else [(signal.SIGTERM, "")],
)
def test_a_process_that_dies_costs_its_item(tmp_path, ending, name):
    found = list(ordered(partial(fate, tmp_path, ending), range(6), 2))
    assert [item if isinstance(item, Died) else item[0] for item in found] == [
        0,
        found[1],
        20,
        30,
        40,
        50,
    ]
    assert isinstance(found[1], Died) and name in found[1].reason
    others = {item[1] for item in found if not isinstance(item, Died)}
    assert os.getpid() not in others and len(others) <= 2
    assert list(ordered(partial(fate, tmp_path, ending), [3], 8)) == [(30, os.getpid())]


@pytest.fixture
def tree(tmp_path):
    for number, name in enumerate(("half_plus_two", "hash_table_v2", "queue_leftovers")):
        shutil.copytree(FIXTURES / name / "model", tmp_path / "zoo" / f"{number}")
    (tmp_path / "zoo" / "1b").mkdir()
    (tmp_path / "zoo" / "1b" / "saved_model.pb").write_bytes(b"\xff" * 100)
    return tmp_path / "zoo"


def test_verify_and_diff_say_the_same_of_a_tree(tree):
    shutil.copytree(tree, tree.parent / "other")
    shutil.rmtree(tree.parent / "other" / "0")
    (tree.parent / "other" / "2" / "variables" / "variables.index").unlink()
    for arguments in (
        ["verify", str(tree)],
        ["verify", "--json", str(tree)],
        ["diff", str(tree), str(tree.parent / "other")],
    ):
        one, several = [
            CliRunner().invoke(main, [*arguments, "--jobs", jobs]) for jobs in ("1", "3")
        ]
        assert (several.output, several.exit_code) == (one.output, one.exit_code), arguments
        assert one.exit_code == 1
    assert (
        len(
            json.loads(
                CliRunner().invoke(main, ["verify", "--json", "--jobs", "2", str(tree)]).stdout
            )["models"]
        )
        == 4
    )


def stay(folder, item):
    (folder / str(os.getpid())).touch()
    while True:
        signal.pause()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
def test_an_interruption_ends_all(tmp_path):
    lines = [
        "from functools import partial",
        "from pathlib import Path",
        "import test_jobs",
        "from savedmodel_tools.jobs import ordered",
        "if __name__ == '__main__':",
        f"    list(ordered(partial(test_jobs.stay, Path({os.fspath(tmp_path)!r})), range(5), 2))",
    ]
    script = tmp_path.parent / "interrupted.py"
    script.write_text("\n".join(lines))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([os.fspath(Path(__file__).parent), *filter(None, sys.path)]),
    }
    process = subprocess.Popen(
        [sys.executable, script], env=environment, stderr=subprocess.PIPE, text=True
    )
    while len(list(tmp_path.iterdir())) < 2:
        assert process.poll() is None, process.stderr.read()
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate()[1]
    assert not [path.name for path in tmp_path.iterdir() if Path("/proc", path.name).exists()]


def test_a_model_named_by_a_file_url_is_a_model():
    model = FIXTURES / "half_plus_two" / "model"
    result = CliRunner().invoke(main, ["diff", model.as_uri(), os.fspath(model)])
    assert (result.exit_code, "equal" in result.output) == (0, True)
