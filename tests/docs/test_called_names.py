"""The committed names that TensorFlow calls are those of the TensorFlow that runs."""

from __future__ import annotations

import sys

import pytest

from docs import called_names as generator
from reference_impl.graph import called_names

pytestmark = pytest.mark.tensorflow


def test_the_running_tensorflow_does_what_the_table_says(tmp_path):
    generator.model(tmp_path / "model")
    answer = generator.asked(sys.executable, tmp_path / "model")
    release = answer["version"].rpartition(".")[0]
    if release not in called_names.RELEASES:
        pytest.skip(f"the table has no TensorFlow {release}: python -m docs.called_names adds it")
    for outcome, table in (("run", called_names.RUN), ("broken", called_names.BROKEN)):
        found = {name for name, what in answer["names"].items() if what == outcome}
        assert found == {name for name, releases in table.items() if release in releases}
    assert set(answer["looked_up"]) <= called_names.LOOKED_UP
