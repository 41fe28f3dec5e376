"""Edits and downgrades write copies of models in one way: what did not change is the same in the
copy.
"""

import shutil

import pytest
from model_edits import fixture

from reference_impl.format.container import layout
from reference_impl.format.container.fingerprint import fingerprint
from reference_impl.format.schema import serialize
from reference_impl.format.schema.ordered import ordered_bytes
from savedmodel_tools.downgrade import model as downgrade
from savedmodel_tools.edits.run import edit
from savedmodel_tools.skew.history import history


@pytest.fixture
def exported(tmp_path):
    """A model with assets of both kinds, and the fingerprint that reference_impl.save writes: names
    below assets/ are bare.
    """
    model = tmp_path / "model"
    shutil.copytree(fixture("module_functions"), model)
    (model / "assets.extra").mkdir()
    (model / "assets.extra" / "note").write_text("beside")
    found = layout.read(model)
    assets = {file.name: file for file in (model / "assets").iterdir()}
    assert assets
    made = fingerprint(
        found.saved_model,
        ordered_bytes(found.saved_model),
        found.checkpoint_prefix,
        {**assets, "assets.extra/note": model / "assets.extra" / "note"},
    )
    (model / "fingerprint.pb").write_bytes(serialize(made))
    return model


def edited(model, out):
    edit(model, out, lambda draft: None)


def downgraded(model, out):
    found, releases = layout.read(model), history().releases
    plan = downgrade.plan(found, len(releases) - 1)
    assert plan.changes == () and plan.message == found.saved_model
    downgrade.write(found, plan, out)


@pytest.mark.parametrize("copied", [edited, downgraded])
def test_a_copy_without_changes_has_the_same_files_and_the_same_fingerprint(
    copied, exported, tmp_path
):
    copied(exported, tmp_path / "out")
    names = {path.relative_to(exported) for path in exported.rglob("*")}
    assert {path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*")} == names
    for name in ("fingerprint.pb", "assets.extra/note", "variables/variables.index"):
        assert (tmp_path / "out" / name).read_bytes() == (exported / name).read_bytes(), name
