"""No command exits 0 when it compared nothing: nobody was there to ask, or there was nothing to
ask.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import model_edits as edits
from gate_folders import NEW, OLD, cell, run
from matrix_world import REPO

from compat_matrix.gate.compare import compare
from compat_matrix.gate.pairs import pairs_of_folders

NO_SERVER = "binary:/nowhere/tensorflow_model_server"
SAMPLE = REPO / "savedmodel_plugin_kit" / "samples" / "numpy_consumer.py"


def command(*arguments, code):
    done = subprocess.run(
        [sys.executable, "-m", "savedmodel_compat", *map(str, arguments)],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_check_without_a_server(tmp_path):
    artifact = edits.fixture("half_plus_two").parent
    said = command(
        *("check", "--servers-only", artifact, "--server", NO_SERVER, "--out", tmp_path / "out"),
        code=3,
    )
    assert (
        "nothing was compared" in said
        and "as expected" not in said
        and "nothing unexpected" not in said
    )
    assert "Nothing was compared" in (tmp_path / "out" / "report.html").read_text()
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["answered"] == 0


def test_a_run_of_servers_only_without_a_server_that_only_makes_artifacts(tmp_path):
    (tmp_path / "fixtures").mkdir()
    shutil.copytree(edits.fixture("half_plus_two").parent, tmp_path / "fixtures" / "half_plus_two")
    places = (
        "--fixtures",
        tmp_path / "fixtures",
        "--out",
        tmp_path / "out",
        "-n",
        "1",
        "--server",
        NO_SERVER,
    )
    assert "nothing was compared" in command("matrix", "run", "--servers-only", *places, code=3)


def test_check_of_a_model_that_no_request_can_be_made_for(tmp_path):
    message, _ = edits.new_model()
    model = edits.write(message, tmp_path / "model")
    said = command(
        *("check", "--servers-only", model, "--server", NO_SERVER, "--out", tmp_path / "out"),
        code=3,
    )
    assert "--requests" in said


def test_golden_answers_that_nobody_recorded(tmp_path):
    model = shutil.copytree(edits.fixture("half_plus_two"), tmp_path / "model")
    command("contract", "write", model, "--no-answers", code=0)
    command("contract", "check", model, code=0)
    assert "none on record" in command("contract", "check", model, "--answers", code=3)


def test_plugin_check_of_what_a_consumer_does_not_claim(tmp_path):
    source = SAMPLE.read_text()
    assert '("fetch", "tags")' in source
    consumer = tmp_path / "consumer.py"
    consumer.write_text(source.replace('("fetch", "tags")', '("fetch",)'))
    for program, code, said in (
        (SAMPLE, 0, "the rules are kept"),
        (consumer, 3, "nothing was tried"),
    ):
        assert said in command(
            "plugin-check", f"{sys.executable} {program}", "--check", "wrong-tags", code=code
        )


def test_a_gate_whose_sides_have_no_answer_in_common(tmp_path):
    sides = [{"label": "a", "spec": "a"}, {"label": "b", "spec": "b"}]
    baseline = run(tmp_path / "a", (cell(written=OLD, read=OLD), "RULED_OUT"))
    candidate = run(tmp_path / "b", (cell(written=NEW, read=NEW), "PASS"))
    verdict = compare(pairs_of_folders(baseline, candidate), sides)[1]
    assert verdict["exit_code"] == 3
