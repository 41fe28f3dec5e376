"""Code that catches an error of `tf.saved_model` about a file also catches ours."""

from __future__ import annotations

import pickle
import shutil

import pytest

import reference_impl
from reference_impl import errors

pytestmark = pytest.mark.tensorflow
SHARD = "variables/variables.data-00000-of-00001"


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="module")
def model(tf):
    root = tf.Module()
    root.v = tf.Variable([1.0, 2.0])
    root.f = tf.function(lambda x: x + root.v, input_signature=[tf.TensorSpec([])])
    return root


@pytest.fixture(scope="module")
def export(tf, model, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "model"
    tf.saved_model.save(model, str(path))
    return path


DAMAGES = {
    "no directory": shutil.rmtree,
    "no model": lambda path: (path / "saved_model.pb").unlink(),
    "no variables": lambda path: shutil.rmtree(path / "variables"),
    "no index": lambda path: (path / "variables/variables.index").unlink(),
    "no shard": lambda path: (path / SHARD).unlink(),
    "an empty model": lambda path: (path / "saved_model.pb").write_bytes(b""),
    "a part of a model": lambda path: (path / "saved_model.pb").write_bytes(
        (path / "saved_model.pb").read_bytes()[:100]
    ),
    "another file as the model": lambda path: (path / "saved_model.pb").write_bytes(b"\xff" * 50),
    "another file as the index": lambda path: (path / "variables/variables.index").write_bytes(
        b"\xff" * 50
    ),
    "an empty index": lambda path: (path / "variables/variables.index").write_bytes(b""),
    "a part of a shard": lambda path: (path / SHARD).write_bytes(b"\xff" * 5),
    "a changed byte": lambda path: (path / SHARD).write_bytes(
        b"\xff" + (path / SHARD).read_bytes()[1:]
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_loading_a_damaged_model(tf, tmp_path, export, damage):
    path = tmp_path / "model"
    shutil.copytree(export, path)
    DAMAGES[damage](path)
    with pytest.raises(Exception) as wanted:
        tf.saved_model.load(str(path))
    with pytest.raises(errors.SavedModelError) as raised:
        reference_impl.load(path)
    assert isinstance(raised.value, wanted.type)
    again = pickle.loads(pickle.dumps(raised.value))  # as a process pool sends it
    assert str(again) == str(raised.value) and isinstance(again, wanted.type)
    assert (again.file, again.node) == (raised.value.file, raised.value.node)


def test_saving_where_nothing_can_be_saved(tf, tmp_path, model):
    (tmp_path / "file").write_text("in the way")
    for path in (tmp_path / "file" / "model", "/proc/nowhere/model"):
        with pytest.raises(tf.errors.OpError) as wanted:
            tf.saved_model.save(model, str(path))
        with pytest.raises(
            OSError,
            match=str(path.parent if path == tmp_path / "file" else path).split("/model")[0],
        ) as raised:
            reference_impl.save(model, path)
        assert isinstance(raised.value, wanted.type)
        assert isinstance(raised.value, errors.SavedModelError)
