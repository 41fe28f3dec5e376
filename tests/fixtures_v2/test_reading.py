"""TensorFlow and `reference_impl` read what every TensorFlow 2 release wrote, and give its answers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from compat_matrix.workers import tensors
from fixtures_v2 import collection

pytestmark = pytest.mark.tensorflow

RELEASES = list(collection.releases())
# Its class is registered by Keras 2 alone, and the answer is the same for every reader of TensorFlow 2.16 and later.
KERAS_2 = "tf2_optimizer_slots"


def requests(folder: Path) -> list[dict]:
    asked = json.loads((folder / "io" / "io.json").read_text(encoding="utf-8"))["requests"]
    return [one for one in asked if one["kind"] == "signature"]


def assert_answers(root, folder: Path) -> None:
    """Ask the signatures of a loaded model, in order; the answers are those of the writer, bit for bit."""
    import tensorflow as tf

    for one in requests(folder):
        given = tensors.load(folder / "io" / one["inputs"])
        inputs = {name: tf.constant(tensor.array) for name, tensor in given.items()}
        answer = root.signatures[one["signature"]](**inputs)
        expected = tensors.load(folder / "io" / one["outputs"])
        assert set(answer) == set(expected), (folder, one["id"])
        for name, tensor in expected.items():
            np.testing.assert_array_equal(answer[name].numpy(), tensor.array, str(folder))


@pytest.mark.parametrize("release", RELEASES)
def test_the_reference_reads_every_artifact_of_a_release(release):
    import reference_impl

    for case, _ in collection.wanted(release):
        folder = collection.artifact(case, release)
        assert_answers(reference_impl.load(folder / "model"), folder)


@pytest.mark.parametrize("release", [RELEASES[0], "2.8", "2.15", RELEASES[-1]])
def test_tensorflow_reads_every_artifact_of_a_release(release):
    """The matrix asks it about all releases (`tox -e compat`)."""
    import tensorflow as tf

    for case, _ in collection.wanted(release):
        folder = collection.artifact(case, release)
        if case != KERAS_2:
            assert_answers(tf.saved_model.load(str(folder / "model")), folder)
