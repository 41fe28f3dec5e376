"""What the tests of functions share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture
def reloaded(tf, tmp_path):
    """Save an object with TensorFlow, and return what our `load` makes of it."""
    import reference_impl

    def save_and_load(root, **options):
        folder = str(tmp_path / "model")
        tf.saved_model.save(root, folder, **options)
        return reference_impl.load(folder)

    return save_and_load
