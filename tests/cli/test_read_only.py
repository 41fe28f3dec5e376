"""Read-only folders and an ordinary user: every command ends with a line that names the path and
leaves nothing half-written.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import ordinary_user
import pytest
from model_edits import fixture

from reference_impl.format.container.layout import read
from savedmodel_common.exit_codes import ExitCode

pytestmark = pytest.mark.skipif(bool(ordinary_user.missing()), reason=ordinary_user.missing())

REPO = Path(__file__).parents[2]
CLI = [sys.executable, "-m", "savedmodel_compat"]
TF2, TF1 = fixture("module_functions"), fixture("half_plus_two")
ONE = ["--case", "fn_literals", "--consumer", "reference"]
SAVE = """
import sys
import tensorflow as tf
import reference_impl
root = tf.Module()
root.v = tf.Variable(1.0)
try:
    reference_impl.save(root, sys.argv[1])
except reference_impl.errors.FileAccessError as error:
    print(error, file=sys.stderr)
    sys.exit(4)
"""

# What the argument is put behind. The second value: what is written is a file.
WRITING = {
    "slim": ([*CLI, "edit", "slim", TF2, "--out"], False),
    "signatures": ([*CLI, "edit", "signatures", TF2, "--rename", "lookup=looked", "--out"], False),
    "tags": ([*CLI, "edit", "tags", TF2, "other", "--out"], False),
    "downgrade": ([*CLI, "downgrade", "--target", "2.4", "--no-proof", TF2], False),
    "contract": ([*CLI, "contract", "write", TF2, "--out"], True),
    "sarif": ([*CLI, "verify", TF2, "--sarif"], True),
    "junit": ([*CLI, "verify", TF2, "--junit"], True),
    "migrate": ([*CLI, "migrate", TF1, "--out"], False),
    "check": ([*CLI, "check", TF1, "--consumer", "reference", "--out"], False),
    "check servers": (
        [*CLI, "check", "--servers-only", TF1, "--server", "standin", "--out"],
        False,
    ),
    "matrix run": ([*CLI, "matrix", "run", *ONE, "--out"], False),
    "grid": ([*CLI, "matrix", "run", "--grid", *ONE[:2], "--runtime", "local", "--out"], False),
    "gate": (
        [
            *CLI,
            "gate",
            "run",
            "--baseline",
            "local",
            "--candidate",
            "local",
            "--same",
            *ONE[:2],
            "--out",
        ],
        False,
    ),
    "matrix servers": (
        [*CLI, "matrix", "run", "--servers-only", "--server", "standin", *ONE[:2], "--out"],
        False,
    ),
    "save": ([SAVE], False),
}

NEEDS_TENSORFLOW = {"gate", "migrate", "matrix servers", "save"}


@pytest.fixture
def read_only(tmp_path):
    """A folder that may not be written."""
    folder = tmp_path / "read_only"
    folder.mkdir()
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)


def run(command, place):
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    start = ordinary_user.run_fresh if command[0] == SAVE else ordinary_user.run
    return start(*command, cwd=place, environment=environment)


@pytest.mark.parametrize(
    ("name", "where"),
    [
        pytest.param(name, where, marks=pytest.mark.tensorflow if name in NEEDS_TENSORFLOW else ())
        for name in WRITING
        for where in ("below it", "it")
        if where != "it" or not WRITING[name][1]
    ],
)
def test_a_command_that_may_not_write_says_where(name, where, read_only, tmp_path):
    command, _ = WRITING[name]
    target = read_only / "out" if where == "below it" else read_only
    done = run([*command, target], tmp_path)
    assert done.returncode == ExitCode.HARNESS_ERROR, done.stdout + done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    last = done.stderr.strip().splitlines()[-1]
    assert (
        read_only.name in last
        and ("Permission denied" in last or "read-only" in last)
        and ".tmp" not in last
    )
    assert list(read_only.iterdir()) == [] and [path.name for path in tmp_path.iterdir()] == [
        "read_only"
    ]


@pytest.mark.tensorflow
def test_an_export_that_somebody_has_made_read_only_is_not_replaced(tmp_path):
    """Exchanging two directories takes no right in either of them."""
    model = shutil.copytree(TF2, tmp_path / "model")
    before = (model / "saved_model.pb").read_bytes()
    model.chmod(0o555)
    done = run([SAVE, model], tmp_path)
    assert (
        done.returncode == ExitCode.HARNESS_ERROR
        and f"{model}: the directory is read-only" in done.stderr
    ), done.stderr
    assert (model / "saved_model.pb").read_bytes() == before and [
        path.name for path in tmp_path.iterdir()
    ] == ["model"]


LOAD = (
    "import sys, reference_impl; reference_impl.save(reference_impl.load(sys.argv[1]), sys.argv[2])"
)
READING = {
    "inspect": ([*CLI, "inspect", "MODEL"], 0),
    "verify": ([*CLI, "verify", "MODEL"], 0),
    "diff": ([*CLI, "diff", "MODEL", TF2], 0),
    "compat": ([*CLI, "compat", "MODEL"], 0),
    "contract": ([*CLI, "contract", "write", "MODEL", "--out", "OUT"], 0),
    "slim": ([*CLI, "edit", "slim", "MODEL", "--out", "OUT"], 0),
    "migrate": ([*CLI, "migrate", "MODEL", "--out", "OUT"], 0),
    "load and save": ([sys.executable, "-c", LOAD, "MODEL", "OUT"], 0),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A model and a home that may not be written, and no other place for caches."""
    folder = tmp_path_factory.mktemp("kept")
    shutil.copytree(TF2, folder / "model")
    (folder / "home").mkdir()
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755)


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", READING)
def test_a_read_only_model_is_read_and_what_is_made_of_it_is_whole(name, kept, tmp_path):
    command, code = READING[name]
    words = [{"MODEL": kept / "model", "OUT": tmp_path / "out"}.get(word, word) for word in command]
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPO),
        "HOME": str(kept / "home"),
        "XDG_CACHE_HOME": str(kept / "home" / "c"),
    }
    done = ordinary_user.run(*words, cwd=tmp_path, environment=environment)
    assert done.returncode == code and "Traceback" not in done.stdout + done.stderr, (
        done.stdout + done.stderr
    )
    made = [path.name for path in tmp_path.iterdir()]
    assert made == (["out"] if "OUT" in command else [])
    for model in (tmp_path / "out").rglob("saved_model.pb"):
        read(model.parent)
        assert os.stat(model.parent).st_mode & 0o200  # noqa: PTH116  it is its new owner's
