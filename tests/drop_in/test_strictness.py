"""Strictness for programs whose calls of `save` cannot be edited: in the environment, or for the
process.
"""

from __future__ import annotations

import threading
import warnings

import pytest

import reference_impl
from reference_impl import errors
from reference_impl.drop_in.strict_mode import VARIABLE

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture
def losing(tf):
    """A module of which a save loses an untraced function and an element of a list."""
    root = tf.Module()
    root.f, root.held = tf.function(lambda x: x), [tf.Variable(1.0), 3]
    return root


@pytest.fixture(autouse=True)
def _unset(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)


def _edited_by_nobody(tf, model, path):
    """The call of another package: no options, and those of TensorFlow."""
    for options in (None, tf.saved_model.SaveOptions()):
        reference_impl.save(model, path, options=options)


def test_without_a_choice_a_loss_is_an_error(tf, tmp_path, losing):
    with pytest.raises(errors.UntracedFunctionError):
        _edited_by_nobody(tf, losing, tmp_path / "m")


def test_the_environment_decides(tf, tmp_path, losing, monkeypatch):
    monkeypatch.setenv(VARIABLE, "0")
    with pytest.warns(UserWarning) as warned:
        _edited_by_nobody(tf, losing, tmp_path / "m")
    assert {
        named
        for named in ("root.f", "root.held[1]")
        for item in warned
        if named in str(item.message)
    } == {
        "root.f",
        "root.held[1]",
    }
    with pytest.raises(errors.UntracedFunctionError):
        reference_impl.save(losing, tmp_path / "m", options=reference_impl.SaveOptions(strict=True))
    monkeypatch.setenv(VARIABLE, "perhaps")
    with pytest.raises(ValueError, match=f"{VARIABLE}.*'perhaps'.*give 0"):
        reference_impl.save(losing, tmp_path / "m")


def test_the_process_decides_before_the_environment_and_for_all_threads(
    tf, tmp_path, losing, monkeypatch
):
    monkeypatch.setenv(VARIABLE, "1")
    raised = []

    def work():
        try:
            _edited_by_nobody(tf, losing, tmp_path / "m")
        except errors.SaveError as error:
            raised.append(error)

    with warnings.catch_warnings(), reference_impl.strictness(False):
        warnings.simplefilter("ignore")
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert not raised
        assert not reference_impl.SaveOptions().strict
        with reference_impl.strictness(True):
            work()
        assert len(raised) == 1
    assert reference_impl.SaveOptions().strict
    try:
        reference_impl.strictness(False)
        assert not reference_impl.SaveOptions().strict
    finally:
        reference_impl.strictness(None)
    assert reference_impl.SaveOptions().strict
    with pytest.raises(ValueError, match="True, False"):
        reference_impl.strictness("no")
