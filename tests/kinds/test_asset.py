"""The kind `asset`: a file in assets/, which the object names by its position."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tensorflow


def test_an_asset_is_copied_and_has_the_path_of_the_copy(tf, round_trip, by_name, tmp_path):
    (tmp_path / "words.txt").write_text("one\n")
    model = tf.Module()
    model.words = tf.saved_model.Asset(str(tmp_path / "words.txt"))
    loaded = round_trip(model)
    path = tmp_path / "model" / "assets" / "words.txt"
    assert loaded.words.asset_path.numpy().decode() == str(path)
    assert path.read_text() == "one\n"
    assert by_name("words").asset.asset_file_def_index == 0
