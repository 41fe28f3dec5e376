"""State that a registered checkpoint saver wrote (`tensorflow.python.saved_model.registration`, as
its users call it).
"""

from __future__ import annotations

import pytest

import reference_impl

tf = pytest.importorskip("tensorflow")
from saver_world import World  # noqa: E402

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("strict", [True, False])
def test_what_a_registered_saver_wrote_is_restored_by_it(tmp_path, strict):
    world = World(strict)
    tf.saved_model.save(world.model([1.0, 2.0]), str(tmp_path / "m"))
    assert tf.saved_model.load(str(tmp_path / "m")).deep.v.numpy().tolist() == [1.0, 2.0]
    with world.registered():
        loaded = reference_impl.load(tmp_path / "m")
        assert type(loaded.deep) is world.holder and type(loaded.deep.v) is world.part
        assert loaded.deep.v.numpy().tolist() == [1.0, 2.0] and float(loaded.plain) == 5.0
        assert loaded.f(2.0).numpy().tolist() == [2.0, 4.0]
        reference_impl.save(loaded, tmp_path / "again")
        assert reference_impl.load(tmp_path / "again").deep.v.numpy().tolist() == [1.0, 2.0]
    assert tf.saved_model.load(str(tmp_path / "again")).deep.v.numpy().tolist() == [1.0, 2.0]


def test_the_root_itself_may_be_such_an_object(tmp_path):
    world = World(strict=True)
    tf.saved_model.save(world.model([1.0, 2.0]).deep, str(tmp_path / "m"))
    with world.registered():
        assert reference_impl.load(tmp_path / "m").v.numpy().tolist() == [1.0, 2.0]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("strict", [True, False])
def test_what_no_saver_restores_is_an_error_and_never_a_variable_without_a_value(tmp_path, strict):
    """TensorFlow passes over it where it does not find the saver."""
    world = World(strict)
    tf.saved_model.save(world.model([1.0, 2.0]), str(tmp_path / "m"))
    errors = reference_impl.errors
    with pytest.raises(
        errors.MissingValueError,
        match=rf"root\.deep.*{world.name}.*the class by reference_impl\.register",
    ):
        reference_impl.load(tmp_path / "m")
    with world.unregistered():
        assert tf.saved_model.load(str(tmp_path / "m")).deep.v.numpy().tolist() == [0.0, 0.0]
        with pytest.raises(
            errors.MissingValueError, match=rf"root\.deep.*{world.name}.*register the saver"
        ):
            reference_impl.load(tmp_path / "m")
        for option in ("skip_checkpoint", "allow_partial_checkpoint"):
            loaded = reference_impl.load(
                tmp_path / "m", options=reference_impl.LoadOptions(**{option: True})
            )
            assert not loaded.deep.v.is_initialized()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_in_a_graph_no_saver_runs(tmp_path):
    tf.saved_model.save(World(strict=False).model([1.0, 2.0]), str(tmp_path / "m"))
    with tf.Graph().as_default():
        with pytest.raises(NotImplementedError, match="in graph mode"):
            tf.saved_model.load(str(tmp_path / "m"))
        with pytest.raises(reference_impl.errors.UnsupportedModelError, match="in graph mode"):
            reference_impl.load(tmp_path / "m")
