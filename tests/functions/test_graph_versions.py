"""A GraphDef may say which releases of TensorFlow must not read it (VersionDef)."""

from __future__ import annotations

import logging
import shutil

import pytest
from model_edits import edited, fixture

import reference_impl
from reference_impl import errors

tf = pytest.importorskip("tensorflow")
CURRENT = tf.version.GRAPH_DEF_VERSION
REFUSED = {
    "later": (
        {"min_consumer": CURRENT + 1},
        f"GraphDef min consumer version {CURRENT + 1} above current version {CURRENT} for Tens",
    ),
    "bad": ({"bad_consumers": [7, CURRENT]}, f"GraphDef disallows consumer version {CURRENT}"),
    "negative": (
        {"producer": -1},
        "GraphDef producer version -1 below min producer 0 supported by TensorFlow",
    ),
}
TAKEN = {
    "current": {"min_consumer": CURRENT},
    "other bad": {"bad_consumers": [CURRENT - 1, CURRENT + 1]},
    "later producer": {"producer": CURRENT + 1000},
    "none": {"producer": 0, "min_consumer": 0},
}


def versions(model, folder, given):
    """Return a copy of a model whose graphs have the given fields of a VersionDef."""

    def change(saved_model):
        for meta_graph in saved_model.meta_graphs:
            for field, value in given.items():
                if isinstance(value, list):
                    meta_graph.graph_def.versions.bad_consumers.extend(value)
                else:
                    setattr(meta_graph.graph_def.versions, field, value)

    return edited(model, folder, change)


@pytest.fixture(scope="module")
def tf2_model(tmp_path_factory):
    root = tf.Module()
    root.f = tf.function(lambda x: x + 1.0, input_signature=[tf.TensorSpec([], tf.float32)])
    path = tmp_path_factory.mktemp("tf2") / "model"
    tf.saved_model.save(root, str(path))
    return path


@pytest.mark.parametrize(
    "load", [tf.saved_model.load, reference_impl.load], ids=["tensorflow", "reference"]
)
@pytest.mark.parametrize("given, text", REFUSED.values(), ids=list(REFUSED))
def test_a_TF1_graph_that_excludes_this_release_is_refused(tmp_path, load, given, text):
    path = versions(fixture("half_plus_two"), tmp_path / "model", given)
    with pytest.raises(ValueError, match=text) as raised:
        load(str(path))
    if load is reference_impl.load:
        assert (
            type(raised.value) is errors.UnsupportedModelError
            and raised.value.node == "graph_def.versions"
        )


@pytest.mark.parametrize("given", TAKEN.values(), ids=list(TAKEN))
def test_a_TF1_graph_for_other_releases_too_is_loaded(tmp_path, given):
    path = versions(fixture("half_plus_two"), tmp_path / "model", given)
    x = tf.constant([2.0])
    answers = [
        load(str(path)).signatures["serving_default"](x)
        for load in (tf.saved_model.load, reference_impl.load)
    ]
    assert [float(answer["y"][0]) for answer in answers] == [3.0, 3.0]


@pytest.mark.parametrize("given, text", REFUSED.values(), ids=list(REFUSED))
def test_an_object_graph_is_loaded_with_a_warning_since_its_main_graph_is_not_imported(
    tmp_path, caplog, tf2_model, given, text
):
    path = versions(tf2_model, tmp_path / "model", given)
    assert float(tf.saved_model.load(str(path)).f(1.0)) == 2.0
    with caplog.at_level(logging.WARNING, "reference_impl"):
        assert float(reference_impl.load(path).f(1.0)) == 2.0
    assert [record for record in caplog.records if text in record.getMessage()]


def test_an_object_graph_for_this_release_is_loaded_without_a_warning(tmp_path, caplog, tf2_model):
    shutil.copytree(tf2_model, tmp_path / "model")
    with caplog.at_level(logging.WARNING, "reference_impl"):
        reference_impl.load(tmp_path / "model")
    assert not caplog.records
