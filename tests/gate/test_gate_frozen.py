"""A candidate that mishandles one old field of the object graph: the gate names the releases whose
models break.
"""

from __future__ import annotations

import json

import faulty_tensorflow
import pytest
from click.testing import CliRunner

from savedmodel_compat.cli import main

pytestmark = pytest.mark.tensorflow


def forget(text):
    """A loader that no longer restores objects whose save and restore functions have no name.

    TensorFlow 2.9 alone wrote tables in that way.
    """
    loop = "        for name, saveable_object_proto in proto.saveable_objects.items():\n"
    return text.replace(loop, f"{loop}          if not name:\n            continue\n")


def test_the_releases_are_named_whose_models_the_candidate_misreads(tmp_path):
    candidate = faulty_tensorflow.copy(
        tmp_path / "candidate", {"python/saved_model/load.py": forget}
    )
    command = ["gate", "run", "--baseline", "local", "--candidate", str(candidate), "--no-install"]
    command += ["--out", str(tmp_path / "out"), "-n", "1", "--case", "tf2_dense_table"]
    command += ["--producer", "fixture", "--consumer", "tf2", "--check", "values"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 1, done.output
    verdict = json.loads((tmp_path / "out" / "gate.json").read_text())
    assert verdict["counts"]["reads"]["same"] == 17
    (fact,) = verdict["facts"]
    assert (fact["kind"], fact["role"], fact["case"]) == ("regressed", "reads", "tf2_dense_table")
    assert "tf2_dense_table/fixture@2.9.3/" in fact["candidate"]["cell"]
    assert "fixture@2.9.3" in done.output
