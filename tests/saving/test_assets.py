"""Files in assets.extra/, which no graph knows of: kept on the way through load and save, given to
a save, left out.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

import reference_impl
from reference_impl.errors import MissingFileError, SaveError
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow

WARM_UP = "tf_serving_warmup_requests"


@pytest.fixture(scope="module")
def tf() -> Any:
    import tensorflow

    return tensorflow


@pytest.fixture
def served(tf, tmp_path) -> Path:
    """An export that somebody put two files into."""
    module = tf.Module()
    module.double = tf.function(lambda x: 2 * x, input_signature=[tf.TensorSpec([None])])
    path = tmp_path / "served"
    tf.saved_model.save(module, str(path))
    (path / "assets.extra" / "sub").mkdir(parents=True)
    (path / "assets.extra" / WARM_UP).write_bytes(b"records")
    (path / "assets.extra" / "sub" / "note").write_bytes(b"note")
    return path


def extra(path: Path) -> dict[str, bytes]:
    return {
        name: (path / "assets.extra" / name).read_bytes() for name in layout.read(path).extra_assets
    }


def test_they_are_kept_by_load_and_save(served, tmp_path):
    before = extra(served)
    root = reference_impl.load(served)
    assert sorted(root.extra_assets) == ["sub/note", WARM_UP]
    reference_impl.save(root, tmp_path / "again")
    assert extra(tmp_path / "again") == before
    reference_impl.save(root, served)  # in their own place
    assert extra(served) == before


@pytest.mark.parametrize("make", [list, dict, tuple])
def test_a_container_as_the_root_has_them_too(tf, make, tmp_path):
    path = tmp_path / "served"
    wrap = tf.__internal__.tracking.wrap
    held = {"one": tf.Variable(1.0)} if make is dict else make([tf.Variable(1.0)])
    reference_impl.save(
        wrap(held), path, options=reference_impl.SaveOptions(extra_assets={"note": __file__})
    )
    reference_impl.save(reference_impl.load(path), tmp_path / "again")
    assert extra(tmp_path / "again") == {"note": Path(__file__).read_bytes()}


def test_what_is_saved_can_be_chosen(served, tmp_path):
    root = reference_impl.load(served)
    (tmp_path / "mine").write_bytes(b"mine")
    options = reference_impl.SaveOptions(extra_assets={"a/b": tmp_path / "mine"})
    reference_impl.save(root, tmp_path / "given", options=options)
    assert extra(tmp_path / "given") == {"a/b": b"mine"}
    reference_impl.save(
        root, tmp_path / "none", options=reference_impl.SaveOptions(extra_assets={})
    )
    assert extra(tmp_path / "none") == {}
    del root.extra_assets["sub/note"]
    reference_impl.save(root, tmp_path / "less")
    assert extra(tmp_path / "less") == {WARM_UP: b"records"}


def test_they_are_part_of_what_identifies_an_export(served, tmp_path):
    root = reference_impl.load(served)
    reference_impl.save(root, tmp_path / "one")
    reference_impl.save(
        root, tmp_path / "other", options=reference_impl.SaveOptions(extra_assets={})
    )
    one, other = (layout.read(tmp_path / name).fingerprint for name in ("one", "other"))
    assert one.uuid != other.uuid


def test_RES_06_one_that_has_gone_is_reported(served, tmp_path):
    root = reference_impl.load(served)
    (served / "assets.extra" / WARM_UP).unlink()
    with pytest.raises(MissingFileError, match=f"assets.extra/{WARM_UP}"):
        reference_impl.save(root, tmp_path / "again")
    assert not (tmp_path / "again").exists()
    with pytest.warns(UserWarning, match=f"assets.extra/{WARM_UP}"):
        reference_impl.save(
            root, tmp_path / "again", options=reference_impl.SaveOptions(strict=False)
        )
    assert extra(tmp_path / "again") == {"sub/note": b"note"}


def test_a_name_that_leads_out_is_refused(served, tmp_path):
    with pytest.raises(SaveError, match="leads out"):
        reference_impl.save(
            reference_impl.load(served),
            tmp_path / "again",
            options=reference_impl.SaveOptions(extra_assets={"../out": served / "saved_model.pb"}),
        )


def test_a_link_out_of_the_model_is_not_followed(served, tmp_path, caplog):
    (tmp_path / "secret").write_bytes(b"secret")
    (served / "assets.extra" / "link").symlink_to(tmp_path / "secret")
    with caplog.at_level(logging.WARNING, "reference_impl"):
        root = reference_impl.load(served)
    assert "link" not in root.extra_assets
    assert "symbolic link" in caplog.text


def test_an_attribute_of_that_name_is_the_models_own(tf, tmp_path):
    module = tf.Module()
    module.extra_assets = tf.Variable(3.0)
    reference_impl.save(module, tmp_path / "model")
    root = reference_impl.load(tmp_path / "model")
    assert root.extra_assets.numpy() == 3.0
    reference_impl.save(root, tmp_path / "again")
    assert extra(tmp_path / "again") == {}
