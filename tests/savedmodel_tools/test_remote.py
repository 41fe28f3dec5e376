"""Models with a URL, on a file system in memory that TensorFlow has for tests (``ram://``)."""

from __future__ import annotations

import pytest

import reference_impl
from reference_impl.errors import FileAccessError, MissingFileError

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture
def model(tf, tmp_path):
    (tmp_path / "words.txt").write_text("a\nb\n")
    root = tf.Module()
    root.v, root.file = tf.Variable(2.0), tf.saved_model.Asset(str(tmp_path / "words.txt"))
    root.f = tf.function(
        lambda x: (x * root.v, tf.io.read_file(root.file.asset_path)),
        input_signature=[tf.TensorSpec([])],
    )
    return root


@pytest.mark.clause("API-01")
def test_a_url_is_saved_to_and_loaded_from_by_both(tf, model, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for save in (reference_impl.save, tf.saved_model.save):
        url = f"ram://{tmp_path.name}/{save.__module__}/model"
        save(model, url)
        for load in (reference_impl.load, tf.saved_model.load):
            loaded = load(url)
            product, text = loaded.f(3.0)
            assert (product.numpy(), text.numpy()) == (6.0, b"a\nb\n")
    reference_impl.save(model, (tmp_path / "m").as_uri())
    assert reference_impl.load((tmp_path / "m").as_uri()).v.numpy() == 2.0
    assert not list((tmp_path / "here").iterdir())


def test_a_url_that_leads_nowhere_is_reported(model, tmp_path):
    with pytest.raises(MissingFileError, match=f"ram://{tmp_path.name}/nothing"):
        reference_impl.load(f"ram://{tmp_path.name}/nothing")
    with pytest.raises(MissingFileError, match="nowhere://x/m"):
        reference_impl.load("nowhere://x/m")
    with pytest.raises(FileAccessError, match="nowhere://x/m: "):
        reference_impl.save(model, "nowhere://x/m")
