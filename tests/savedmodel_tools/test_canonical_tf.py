"""Exports by the installed TensorFlow: several of one model are equal in canonical form, whatever
their bytes.
"""

from pathlib import Path

import fresh_tensorflow
import pytest
from model_edits import differences

from reference_impl.format.container import layout
from savedmodel_tools.canonical.form import canonical

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """Folders of models, written by two processes."""
    found = []
    for arguments in ([], ["quick"]):
        folder = tmp_path_factory.mktemp("exports")
        program = Path(__file__).parents[1] / "support" / "export_models.py"
        fresh_tensorflow.printed(program, folder, *arguments)
        found.append(folder)
    return found


def same(one, other):
    first, second = canonical(one), canonical(other)
    assert differences(first, second) == []
    assert first.hash == second.hash
    assert layout.read(one).saved_model != layout.read(other).saved_model


@pytest.mark.parametrize("name", ["again", "rebuilt"])
def test_twice_in_one_process(exports, name):
    same(exports[0] / "first", exports[0] / name)


def test_in_two_processes(exports):
    same(exports[0] / "first", exports[1] / "first")


def test_saving_what_was_loaded_is_a_fixed_point(exports):
    import tensorflow as tf

    if not tf.__version__.startswith(
        "2.12."
    ):  # which saves the custom gradients of what it loaded in the second round only
        same(exports[0] / "loaded_2", exports[0] / "loaded_3")
    same(exports[0] / "loaded_3", exports[0] / "loaded_4")


def test_a_loaded_model_is_another(exports):
    """Some of what the first export holds does not survive loading (untraced functions become
    callable, …).
    """
    assert canonical(exports[0] / "first").hash != canonical(exports[0] / "loaded_2").hash


def test_a_graph_exported_twice(exports):
    same(exports[0] / "session_1", exports[0] / "session_2")


def test_stripped_defaults(exports):
    same(exports[0] / "session_1", exports[0] / "stripped")
    kept, stripped = (
        canonical(exports[0] / name, ignore_defaults=False) for name in ("session_1", "stripped")
    )
    assert kept.sections["graph"] != stripped.sections["graph"]
