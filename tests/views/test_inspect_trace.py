"""``savedmodel-compat inspect --trace``: the steps of a load."""

from __future__ import annotations

import os
import shutil
import subprocess

import model_edits as edits
import pytest
from bare_python import without_tensorflow
from click.testing import CliRunner
from matrix_world import REPO

from savedmodel_compat.cli import main

MODEL = edits.fixture("half_plus_two")


def invoke(*arguments):
    return CliRunner().invoke(main, ["inspect", "--trace", *map(str, arguments)])


@pytest.fixture
def tf():
    return pytest.importorskip("tensorflow")


@pytest.mark.tensorflow
def test_the_steps_are_printed(tf):
    done = invoke(MODEL)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("file          saved_model.pb  read in ")
    assert lines[-1].startswith("signature     saved_model.pb  serving_default  (x: float32[?,1])")


@pytest.mark.tensorflow
def test_several_models_stand_below_their_names(tf, tmp_path):
    for name in ("a", "b"):
        shutil.copytree(MODEL, tmp_path / name)
    done = invoke(tmp_path)
    assert done.exit_code == 0
    heads = [line for line in done.stdout.splitlines() if "  " not in line]
    assert [head.rpartition("/")[2] for head in heads] == ["a", "b"]


@pytest.mark.tensorflow
def test_a_load_that_fails_is_exit_code_1_and_its_last_step(tf, tmp_path):
    shutil.copytree(MODEL, tmp_path / "m")
    (tmp_path / "m" / "saved_model.pb").write_bytes(b"\x08\x01\x12")
    done = invoke(tmp_path / "m")
    assert done.exit_code == 1
    assert done.stdout.splitlines()[-1].startswith("error         saved_model.pb  ")
    done = invoke(MODEL, "--tags", "other")
    assert done.exit_code == 1
    assert "MetaGraphChoiceError" in done.stdout.splitlines()[-1]


@pytest.mark.tensorflow
def test_initialisers_that_act_on_the_machine_do_not_run(tf, tmp_path):
    class Writer(tf.Module):
        def __init__(self):
            super().__init__()
            self.table = Table()

    class Table(tf.saved_model.experimental.TrackableResource):
        @tf.function(input_signature=[])
        def _create_resource(self):
            return tf.raw_ops.MutableHashTableV2(key_dtype=tf.string, value_dtype=tf.int64)

        def _initialize(self):
            tf.io.write_file(str(tmp_path / "written"), "x")

    root = Writer()
    root.table.resource_handle  # noqa: B018  made, so that it is saved
    tf.saved_model.save(root, str(tmp_path / "m"))
    (tmp_path / "written").unlink(missing_ok=True)
    done = invoke(tmp_path / "m")
    assert done.exit_code == 1, done.output
    assert "MachineOpError" in done.stdout.splitlines()[-1]
    assert not (tmp_path / "written").exists()


@pytest.mark.parametrize("option", [["--json"], ["--full"], ["--only", "ops"], ["--follow-links"]])
def test_options_that_would_have_no_effect_are_wrong_usage(option):
    done = invoke(MODEL, *option)
    assert done.exit_code == 64
    assert "--trace takes no" in done.stderr


def test_without_TensorFlow_one_line_says_what_to_install(tmp_path):
    bare = without_tensorflow(tmp_path / "environment")
    done = subprocess.run(
        [str(bare), "-m", "savedmodel_compat", "inspect", "--trace", str(MODEL)],
        env={**os.environ, "PYTHONPATH": str(REPO)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4
    (line,) = done.stderr.splitlines()
    assert "tensorflow" in line and 'pip install "savedmodel-compat[tf]"' in line
    assert not done.stdout
