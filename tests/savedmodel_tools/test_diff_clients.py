"""`diff --clients`: only what a client of the signatures notices."""

from __future__ import annotations

import json
import shutil

import model_edits as edits
import pytest
from click.testing import CliRunner

from property_tests.faults import losses
from savedmodel_compat.cli import main


def run(*words):
    return CliRunner().invoke(main, ["diff", *map(str, words)])


@pytest.mark.tensorflow
def test_a_migrated_model_is_the_same_for_clients(tmp_path):
    source = edits.fixture("half_plus_two")
    done = CliRunner().invoke(main, ["migrate", str(source), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    (new,) = (tmp_path / "out" / "models").iterdir()
    assert run(source, new).exit_code == 1
    done = run(source, new, "--clients")
    assert done.exit_code == 0, done.output
    assert "1 model: 1 alike (compared: MetaGraphs" in done.stdout.splitlines()[-1]


def test_another_weight_is_no_matter_of_signatures(tmp_path):
    source = edits.fixture("half_plus_two")
    other = shutil.copytree(source, tmp_path / "other")
    assert losses.apply("last_bit", other)
    assert run(source, other).exit_code == 1
    assert run(source, other, "--clients").exit_code == 0


def test_a_lost_signature_breaks_clients_and_a_new_one_does_not(tmp_path):
    source = edits.fixture("half_plus_two")

    def lose(message):
        del message.meta_graphs[0].signature_def["regress_x_to_y"]

    other = edits.edited(source, tmp_path / "other", lose)
    done = run(source, other, "--clients")
    assert (done.exit_code, "breaking   SIGNATURE_REMOVED" in done.stdout) == (1, True), done.stdout
    assert "signature regress_x_to_y: is gone" in done.stdout
    done = run(other, source, "--clients", "--json")
    (one,) = json.loads(done.stdout)["clients"]
    assert (done.exit_code, one["status"], one["findings"][0]["rule"]) == (
        0,
        "alike",
        "SIGNATURE_ADDED",
    )


def test_folders_are_compared_by_places(tmp_path):
    for side, names in (("old", "ab"), ("new", "bc")):
        for name in names:
            shutil.copytree(edits.fixture("half_plus_two"), tmp_path / side / name)
    done = run(tmp_path / "old", tmp_path / "new", "--clients")
    assert [line.split()[:2] for line in done.stdout.splitlines()[:3]] == [
        ["gone", "a"],
        ["alike", "b"],
        ["new", "c"],
    ]
    assert done.exit_code == 1
    assert (
        run(
            tmp_path / "old" / "a", tmp_path / "new" / "b", "--clients", "--only", "weights"
        ).exit_code
        == 64
    )
