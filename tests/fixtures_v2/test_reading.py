"""TensorFlow and `reference_impl` read what every TensorFlow 2 release wrote, and give its answers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fixtures_v2 import collection
from savedmodel_common import tensors

pytestmark = [
    pytest.mark.tensorflow,
    # The type of `tf2_extension_type` is one of its author, which a reader need not have.
    pytest.mark.filterwarnings("ignore:The type 'fixtures_v2.Pair.Spec' has not been registered"),
]

RELEASES = list(collection.releases())
# Its class is registered by Keras 2 alone: TensorFlow 2.16 and later cannot load it.
KERAS_2 = "tf2_optimizer_slots"


def requests(folder: Path) -> list[dict]:
    asked = json.loads((folder / "io" / "io.json").read_text(encoding="utf-8"))["requests"]
    return [one for one in asked if one["kind"] == "signature"]


def assert_answers(root, folder: Path) -> None:
    """Ask the signatures of a loaded model, in order; the answers are those of the writer, bit for bit."""
    import tensorflow as tf

    asked = requests(folder)
    assert asked
    for one in asked:
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

    wanted = collection.wanted(release)
    assert wanted
    for case, _ in wanted:
        folder = collection.artifact(case, release)
        assert_answers(reference_impl.load(folder / "model"), folder)


@pytest.mark.parametrize("release", RELEASES)
def test_tensorflow_reads_every_artifact_of_a_release(release):
    import tensorflow as tf

    wanted = [case for case, _ in collection.wanted(release) if case != KERAS_2]
    assert wanted
    for case in wanted:
        folder = collection.artifact(case, release)
        assert_answers(tf.saved_model.load(str(folder / "model")), folder)
